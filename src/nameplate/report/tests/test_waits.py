"""Queue and prefill in words: figures with their n, intervals as such, estimates called that, causes only if seen."""

from __future__ import annotations

import pytest
from msgspec import structs
from rich.console import RenderableType

from nameplate.engines.state import Histogram, Histograms
from nameplate.measure.limit import Behind, Limit, Made, Name, limit_of
from nameplate.measure.tests.served import trial
from nameplate.measure.tests.trials import MS, closed_loop, evidence
from nameplate.measure.waits import Waits, estimate, measure_waits
from nameplate.report.limit import limit_section, limit_words
from nameplate.report.tests.rendering import text_of
from nameplate.report.waits import between, waits_table
from nameplate.statistics.buckets import Interval

ALONE = trial(1, 101 * MS, 0, role="baseline")
NAMES = {"alone": "alone", "pass": "C=3", "fail": "C=4"}


def shown(body: RenderableType | None, width: int = 120) -> str:
    assert body is not None
    return " ".join(text_of(body, width).split())


def waits_of(queue_ns: int | None, ttft_ns: int = 401 * MS) -> Waits:
    waits = trial(4, ttft_ns, queue_ns).measurement.waits
    assert waits is not None
    return waits


def limit_at(*, queue_ns: int | None, waiting: int | None = None) -> Limit:
    found = limit_of([ALONE], [], [trial(4, 401 * MS, queue_ns, waiting=waiting)])
    assert found is not None
    return found


def test_the_parts_stand_over_their_sum() -> None:
    """Queue, prefill and rest with their n, and the TTFT that they add up to."""
    text = shown(waits_table(waits_of(200 * MS)))
    for line in ("queue 64 200.0 ms", "prefill 64 100.0 ms", "rest 64 101.0 ms", "= TTFT, ours 64 401.0 ms"):
        assert line in text
    assert "Means are exact" in text and "below zero" not in text


def test_a_rest_below_zero_is_explained_and_a_rounding_is_none() -> None:
    """A negative rest is shown; a nanosecond is the rounding of sums."""
    assert "-9.000 ms" in shown(waits_table(waits_of(310 * MS)))
    assert "difference of two clocks" in shown(waits_table(waits_of(310 * MS)))
    assert "rest 64 0 ms" in shown(waits_table(structs.replace(waits_of(301 * MS), rest_mean_ns=-1)))


def test_what_is_not_of_the_measured_requests_is_said() -> None:
    """Warm-up in the means, requests that were not timed, and a reason why no rest is shown."""
    waits = structs.replace(
        waits_of(200 * MS), unmeasured=8, unobserved=1, rest_mean_ns=None, reason="of others"
    )
    text = shown(waits_table(waits))
    assert "8 requests of warm-up" in text and "1 request that did not finish" in text and "of others" in text
    assert "= TTFT" not in text


def test_an_estimate_is_called_one_with_its_range() -> None:
    """No histograms: the reason first, then the estimate and what it is made from."""
    waits = structs.replace(
        waits_of(None), source="estimated", estimate=estimate(401 * MS, (90.0 * MS, 100.0 * MS, 120.0 * MS))
    )
    text = shown(waits_table(waits))
    assert "Not told: the server was not seen idle" in text
    assert "Estimated: 301.0 ms of the mean TTFT are queue or a slower prefill (281.0 to 311.0 ms)" in text


@pytest.mark.parametrize(
    ("interval", "said"),
    [
        (None, "-"),
        (Interval(0.0, 3e8), "0 to 300 ms"),
        (Interval(5e9, 10e9), "5 to 10 s"),
        (Interval(1e9, None), "above 1 s"),
    ],
)
def test_an_interval_is_written_with_its_open_end(interval: Interval | None, said: str) -> None:
    """Above the last edge there is no upper end to write."""
    assert between(interval) == said


def test_a_hostile_page_cannot_break_the_table() -> None:
    """Odd edges are numbers like any other."""
    held = Histograms(queue=Histogram(20.0, 66, ((1e-9, 0), (1e300, 60))))
    case = evidence(closed_loop(4, 64))
    bad = structs.replace(case, histograms_before=Histograms(queue=Histogram(0.0, 0, held.queue.buckets)))  # type: ignore[union-attr]
    waits = measure_waits(structs.replace(bad, histograms_after=held))
    assert waits is not None and shown(waits_table(waits))


def test_the_limit_is_said_with_its_figures() -> None:
    """Who grew, by how much, from where to where, and why the mean is what is taken apart."""
    lines = limit_words(limit_at(queue_ns=250 * MS, waiting=2), "C=4")
    assert lines[0] == "The limit is made of queue."
    assert lines[1].startswith(
        "Of the 300.0 ms by which the mean TTFT grew from one request alone to C=4 (101.0 ms to 401.0 ms): "
        "250.0 ms (83%) queue, 0 ms (0%) prefill, 50.00 ms (17%) network, client and the server's front"
    )
    assert "Requests waited in 8 of 8 samples of the server; how many it runs at once is not told." in lines
    assert any("quantiles do not add up; judged is ttft p95" in line for line in lines)


def test_an_estimated_limit_says_that_it_is_one() -> None:
    """The word stands in the first line."""
    assert limit_words(limit_at(queue_ns=None, waiting=2), "C=4")[0] == (
        "The limit is made of queue or slower prefill, by an estimate."
    )


def test_an_unknown_limit_says_why() -> None:
    """Not known, with the reason; the figures stand all the same."""
    text = shown(limit_section(limit_at(queue_ns=None), NAMES))
    assert "What the limit is made of is not known: neither histograms nor samples" in text
    assert "C=4" in text and "- : the server was not seen idle" in text


@pytest.mark.parametrize("behind", list(Behind))
def test_every_cause_has_its_words(behind: Behind) -> None:
    """What is behind a part stands in brackets after it."""
    for name in Name:
        found = structs.replace(limit_at(queue_ns=250 * MS), made_of=(Made(name, (behind,)),))
        first = limit_words(found, "C=4")[0]
        assert first.startswith("The limit is made of ") and first.endswith(").")


@pytest.mark.parametrize("width", [60, 80, 120])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    """Nothing wraps by itself."""
    for body in (
        waits_table(waits_of(200 * MS)),
        limit_section(limit_at(queue_ns=250 * MS, waiting=2), NAMES),
    ):
        assert body is not None
        assert max(map(len, text_of(body, width).splitlines())) <= width
