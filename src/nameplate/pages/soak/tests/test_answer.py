"""The answer of a soak: what it lost is in it, what it did not show is not, and the client is told apart."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from nameplate.contract.soak import Soak
from nameplate.contract.soak_terms import SoakTerms
from nameplate.measure.soak.segment import SegmentResult
from nameplate.measure.soak.tests.test_combine import piece
from nameplate.measure.soak.tests.test_lives import restarted
from nameplate.pages.report import report_page
from nameplate.pages.soak.answer import sentence
from nameplate.pages.soak.tests.soaks import subject
from nameplate.pages.subject import SoakSubject
from nameplate.pages.tests.reading import Page
from nameplate.report.soak_words import client_words, conclusion, limit_words, losses
from nameplate.verdict.collapse import Collapse
from nameplate.verdict.drift import Drift, SeriesPoints, judge_drift
from nameplate.verdict.soak import GateJudged, SoakVerdict

_PASS = SoakVerdict(status="pass", reasons=(), gates=(), slos=(), exit_code=0)


@pytest.fixture(scope="module")
def lost(tmp_path_factory: pytest.TempPathFactory) -> SegmentResult:
    """Return half an hour in which the server was lost and came back."""
    return restarted(tmp_path_factory.mktemp("lost") / "soak.s1")


@pytest.fixture(scope="module")
def calm(tmp_path_factory: pytest.TempPathFactory) -> SoakSubject:
    """Return a soak of one segment."""
    return subject([piece(tmp_path_factory.mktemp("calm") / "soak.s1", window_s=120)])


def judged(of: SoakSubject, verdict: SoakVerdict, drift: Drift | None = None, **terms: Any) -> SoakSubject:
    """Return the soak with this verdict and drift, and with limits in its contract."""
    result, contract = of.record.result, of.record.contract
    assert result is not None
    soak = SoakTerms(soak=Soak(duration_ns=3600 * 10**9), concurrency=8, **terms)
    result = structs.replace(result, verdict=verdict, drift=drift or result.drift)
    contract = structs.replace(contract, slos=(), soak=soak)
    return structs.replace(of, record=structs.replace(of.record, result=result, contract=contract))


def said(of: SoakSubject) -> str:
    assert of.record.result is not None
    return sentence(of.record, of.record.result)


def drift(share: float | None = None, **values: float) -> Drift:
    """Return the drift of series that go from one to the given multiple of a level, in twenty windows."""
    starts = tuple(300.0 * at for at in range(20))
    return judge_drift(
        [
            SeriesPoints(
                series=name,  # type: ignore[arg-type]
                stretch="all",
                times_s=starts,
                starts_s=starts,
                values=tuple(1e9 * (1 + (to - 1) * at / 19) for at in range(20)),
            )
            for name, to in values.items()
        ],
        material_share=share,
    )


def test_a_loss_that_was_allowed_is_in_the_answer(lost: SegmentResult) -> None:
    """How long the server was lost, how many requests failed, and by what that is allowed."""
    of = judged(subject([lost]), _PASS, max_error_rate=0.5)
    result = of.record.result
    assert result is not None and result.counts.failed
    failed = f"{result.counts.failed:,} of {result.counts.sent:,} requests failed"
    assert said(of).startswith("The server was lost for ") and "No failure" not in said(of)
    assert f"{failed}, which --max-error-rate 50% allows" in said(of)
    assert losses(of.record.contract, result) in f"{said(of).partition(', in ')[0]}."
    assert "While it answered: " in Page(report_page([of])).text


def test_a_soak_without_a_failure_says_so(calm: SoakSubject) -> None:
    """Nothing was lost, and nothing is said of losses."""
    assert said(judged(calm, _PASS)).startswith("No request failed in ")


def test_a_soak_in_which_no_request_ended_shows_nothing(calm: SoakSubject) -> None:
    """Whatever else is known of it: not one end is no pass."""
    result = calm.record.result
    assert result is not None
    counts = structs.replace(result.counts, sent=38, ok=0, failed=0, cancelled=38, unfinished=0)
    nothing = structs.replace(
        calm.record, result=structs.replace(result, counts=counts, verdict=_with("ended", "inconclusive"))
    )
    of = structs.replace(calm, record=nothing)
    assert said(of).startswith("Nothing was shown: not one of 38 requests ended")


def _with(gate: str, status: str) -> SoakVerdict:
    gates = (GateJudged(gate=gate, status=status, detail="x"),)  # type: ignore[arg-type]
    return structs.replace(_PASS, status=status, gates=gates, reasons=(f"{gate}: x",))


def test_the_clients_own_memory_does_not_decide_of_the_server() -> None:
    """A load process that grows is told apart, and the server is steady all the same."""
    found = drift(ttft_p50=1.0, client_memory=3.0)
    assert found.conclusion == "drifting up" and conclusion(found).startswith("steady: ")
    assert client_words(found).startswith("Client memory drifting up") and "not the server" in client_words(
        found
    )
    assert client_words(drift(ttft_p50=1.0)) == ""


def test_a_limit_that_only_the_client_breaks_is_not_laid_to_the_server(calm: SoakSubject) -> None:
    """The sentence names the load process."""
    grown = judged(
        calm, _with("max_drift", "fail"), drift(0.2, ttft_p50=1.0, client_memory=3.0), max_drift=0.2
    )
    assert said(grown).startswith("The load process, not the server, drifted beyond the limit")
    slower = judged(calm, _with("max_drift", "fail"), drift(0.2, ttft_p50=3.0), max_drift=0.2)
    assert said(slower).startswith("The server drifted beyond its limit")


def test_a_collapse_is_said_beside_what_is_undecided() -> None:
    """The worst series comes first, and those that are not decided are named after it."""
    starts = tuple(300.0 * at for at in range(20))
    found = judge_drift(
        [
            SeriesPoints(
                series="output_tokens_per_s", stretch="all", times_s=starts, starts_s=starts,
                values=(*(100.0,) * 15, *(0.0,) * 5),
            ),
            SeriesPoints(series="ttft_p50", stretch="all", times_s=starts[:5], starts_s=starts[:5], values=(1e9,) * 5),
        ]
    )  # fmt: skip
    fell = found.series[0].collapse
    assert isinstance(fell, Collapse) and found.conclusion == "collapsed"
    assert conclusion(found).startswith("output collapsed at 1:15:00, to the end")
    assert conclusion(found).endswith("; not decided: TTFT p50")


def test_the_share_that_was_asked_for_stands_beside_floors(calm: SoakSubject) -> None:
    """A series whose floor is above the share is named with its floor."""
    found = drift(0.2, ttft_p50=1.0)
    low = structs.replace(found.series[0], level=1e6, material=10e6)
    of = judged(calm, _PASS, structs.replace(found, series=(low,)), max_drift=0.2)
    assert of.record.result is not None
    words = limit_words(of.record.contract, of.record.result)
    assert words == (
        "--max-drift 20% of a series' level, or its floor where that is more (TTFT p50 10.00 ms)"
    )
    page = Page(report_page([of])).text
    assert words in page and "10.00 ms (floor; 20% is less)" in page
