"""The live views: what they say, how seldom, and that none of their faults reaches a trial."""

from __future__ import annotations

import io
from pathlib import Path

import msgspec
import pytest
from rich.console import Console

from nameplate.client.order import Progress
from nameplate.contract.arrivals import ArrivalPlan
from nameplate.contract.errors import Interrupted
from nameplate.contract.plan import TrialPlan
from nameplate.contract.rates import RateLevel
from nameplate.engines.state import ServerSample
from nameplate.measure.tests.trials import MS, SHAPE
from nameplate.report.course import Course
from nameplate.report.live import LiveView, QuietView
from nameplate.report.plain import PlainView
from nameplate.report.progress import last_sample
from nameplate.report.redrawn import RedrawnView
from nameplate.report.tests.rendering import CONTRACT, run_trial, text_of

PLAN = TrialPlan("confirm.c8.t1", "confirmation", SHAPE, 8, 64, 2)


class Clock:
    """A clock that stands until it is moved."""

    def __init__(self) -> None:
        self.now = 0

    def __call__(self) -> int:
        return self.now

    def move(self, seconds: float) -> None:
        self.now += round(seconds * 1e9)


def report(ended: int, stage: str = "measured") -> Progress:
    return Progress(t_ns=0, stage=stage, started=ended + 8, ended=ended, in_flight=8)


def console() -> Console:
    return Console(file=io.StringIO(), width=100, markup=False)


def said(view_console: Console) -> str:
    assert isinstance(view_console.file, io.StringIO)
    return view_console.file.getvalue()


def test_a_log_gets_few_lines(tmp_path: Path) -> None:
    """A line when a trial begins and ends, at most one progress line each ten seconds."""
    clock, out = Clock(), console()
    view = PlainView(out, CONTRACT, expected_trials=14, now_ns=clock)
    view.step(PLAN, "writing prompts")
    view.step(PLAN, "load")
    for ended in range(50):
        clock.move(0.5)
        view.progress(PLAN, report(ended), dict.fromkeys(range(ended), 200 * MS), tmp_path)
    view.finished(PLAN, run_trial("confirmation", 8, 1))
    lines = said(out).splitlines()
    assert lines[0] == "trial 1 of about 14: confirm 1000/11 at C=8, trial 1 of 3"
    assert [line[:12] for line in lines[1:3]] == ["  requests 1", "  requests 3"]
    assert "TTFT so far: p50 200.0 ms, p95 200.0 ms* (< 12 s), n 19" in lines[1]
    assert len(lines) == 4 and "pass" in lines[3] and "ttft p95 11.64 s" in lines[3]


def test_a_slow_step_is_named() -> None:
    """A step that begins after a wait has its line."""
    clock, out = Clock(), console()
    view = PlainView(out, CONTRACT, now_ns=clock)
    view.step(PLAN, "quiet for 15 s")
    clock.move(15)
    view.step(PLAN, "waiting for an idle server")
    assert "waiting for an idle server" in said(out)


def test_the_block_says_which_trial_and_how_long(tmp_path: Path) -> None:
    """The redrawn lines hold the trial, its requests, TTFT beside its limit, the server and the time left."""
    clock, out = Clock(), console()
    view = RedrawnView(out, CONTRACT, expected_trials=14, now_ns=clock)
    sample = ServerSample(1, running=6, waiting=2, kv_usage_mean=0.25)
    (tmp_path / "server.jsonl").write_bytes(msgspec.json.encode(sample) + b'\n{"t_ns":2,"runn')
    view.step(PLAN, "load")
    view.progress(PLAN, report(0), {}, tmp_path)
    clock.move(10)
    view.progress(PLAN, report(16), dict.fromkeys(range(24), 200 * MS), tmp_path)
    text = text_of(view.block(), 100)
    assert "trial 1 of about 14: confirm 1000/11 at C=8, trial 1 of 3" in text
    assert "requests 16 of 64 done, 8 in flight" in text
    assert "TTFT so far: p50 200.0 ms, p95 200.0 ms (< 12 s), n 24" in text
    assert "server: running 6, waiting 2, KV 25%" in text
    assert "10 s in this trial, about 30 s left of its requests" in text


def test_the_study_says_roughly_what_is_left() -> None:
    """After a trial that took a minute, thirteen more are expected to take thirteen."""
    clock = Clock()
    view = RedrawnView(console(), CONTRACT, expected_trials=14, now_ns=clock)
    view.step(PLAN, "load")
    clock.move(60)
    view.finished(PLAN, run_trial("confirmation", 8, 1))
    view.step(PLAN, "load")
    text = text_of(view.block(), 100)
    assert "study about 13 min more" in text and "trial 2 of 3" in text


def test_a_failed_scrape_is_unknown_and_a_missing_file_is_no_fault(tmp_path: Path) -> None:
    """What the server does not tell is never zero."""
    assert last_sample(tmp_path) is None
    path = tmp_path / "server.jsonl"
    path.write_bytes(b"{torn")
    assert last_sample(tmp_path) is None
    path.write_bytes(msgspec.json.encode(ServerSample(1, error="timed out")) + b"\nnot json\n\xff\xfe\n")
    sample = last_sample(tmp_path)
    assert sample is not None and sample.error == "timed out"


def test_a_huge_sample_file_is_read_at_its_end_only(tmp_path: Path) -> None:
    """A long run's samples cost no more than its last lines."""
    line = msgspec.json.encode(ServerSample(1, running=1)) + b"\n"
    (tmp_path / "server.jsonl").write_bytes(
        line * 5000 + msgspec.json.encode(ServerSample(2, running=7)) + b"\n"
    )
    sample = last_sample(tmp_path)
    assert sample is not None and sample.running == 7


@pytest.mark.parametrize("kind", [PlainView, RedrawnView])
def test_no_fault_of_a_view_reaches_the_trial(kind: type[PlainView | RedrawnView], tmp_path: Path) -> None:
    """A closed terminal, a broken report: the trial goes on."""
    out = console()
    view = kind(out, CONTRACT)
    out.file.close()
    view.start()
    view.tell("x")
    view.step(PLAN, "load")
    view.progress(PLAN, None, None, tmp_path)  # type: ignore[arg-type]
    view.finished(PLAN, None)  # type: ignore[arg-type]
    view.stop()


@pytest.mark.parametrize("kind", [PlainView, RedrawnView])
def test_an_interrupt_is_never_swallowed(
    kind: type[PlainView | RedrawnView], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A person's interrupt that falls into a view's call goes up."""

    def interrupt() -> int:
        raise Interrupted("Interrupted.")

    view = kind(console(), CONTRACT)
    monkeypatch.setattr(view, "_now_ns", interrupt)
    with pytest.raises(Interrupted):
        view.step(PLAN, "load")


def test_a_view_without_a_contract_shows_p95() -> None:
    """Without limits the values stand alone."""
    clock = Clock()
    view = RedrawnView(console(), None, now_ns=clock)
    view.step(PLAN, "load")
    view.progress(PLAN, report(5), dict.fromkeys(range(5), 200 * MS), Path("/nonexistent"))
    assert "TTFT so far: p50 200.0 ms, p95 200.0 ms*, n 5" in text_of(view.block(), 100)
    assert "server tells nothing" in text_of(view.block(), 100)


def test_the_view_fits_its_console(tmp_path: Path) -> None:
    """A pipe gets plain lines, and quiet shows nothing."""
    out = console()
    with LiveView(out, CONTRACT) as view:
        view.tell("probing \x1b[2J[red]")
        view.step(PLAN, "load")
    assert said(out).splitlines()[0] == "probing \\x1b[2J[red]"
    with QuietView() as quiet:
        quiet.tell("x")
        quiet.step(PLAN, "load")
        quiet.progress(PLAN, report(1), {}, tmp_path)
        quiet.finished(PLAN, run_trial("single", 2, 1))


def test_a_fast_load_is_not_redrawn_for_every_report(tmp_path: Path) -> None:
    """Reports within a quarter of a second cost next to nothing: the numbers of the first stay."""
    clock = Clock()
    view = RedrawnView(console(), CONTRACT, now_ns=clock)
    view.step(PLAN, "load")
    clock.move(1)
    view.progress(PLAN, report(1), {}, tmp_path)
    clock.move(0.1)
    view.progress(PLAN, report(2), {}, tmp_path)
    assert "requests 1 of 64" in text_of(view.block(), 100)
    clock.move(0.2)
    view.progress(PLAN, report(3), {}, tmp_path)
    assert "requests 3 of 64" in text_of(view.block(), 100)


def test_a_trial_of_a_rate_says_how_long_its_requests_take_to_arrive() -> None:
    """Before it begins, with the rate and the number of requests."""
    arrivals = ArrivalPlan(rate=2.5)
    plan = TrialPlan(
        "x", "confirmation", SHAPE, 4096, 1000, 8, arrivals=arrivals, rate_level=RateLevel(21, 0.05, True)
    )
    said = Course(CONTRACT, None).announced(plan)
    assert said == "confirm 1000/11 at 2.5 requests/s, trial 1 of 3: 1,000 requests in 7 min"
