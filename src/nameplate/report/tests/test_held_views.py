"""The live views of held streams: the ramp, the window, the arrival, samples of prefill, and the study's estimate."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from msgspec import structs

from nameplate.client.order import Progress
from nameplate.contract.matrix import PrefillRule
from nameplate.contract.plan import Arrival, Hold, Role, TrialPlan
from nameplate.contract.shape import Shape
from nameplate.engines.state import ServerSample
from nameplate.evidence.journal import JournalEntry
from nameplate.measure.held import Held
from nameplate.measure.mixed import Mixed, Part
from nameplate.measure.prefill import Prefill
from nameplate.measure.readiness import Look
from nameplate.measure.result import TrialResult
from nameplate.measure.speed_trial import SpeedTrial
from nameplate.measure.windows import Window
from nameplate.report.course import Course
from nameplate.report.held import HeldCourse, HeldShot, read_held, say_held
from nameplate.report.plain import PlainView
from nameplate.report.redrawn import RedrawnView
from nameplate.report.tests.rendering import run_trial, text_of
from nameplate.report.tests.test_views import Clock, console, said
from nameplate.verdict.cell import CellStatus, CellVerdict

S, MS = 10**9, 10**6
HOLD = Hold(window_ns=30 * S, stable_ns=3 * S, ready_ns=90 * S)
PLAN = TrialPlan("decode.8K.c4", "decode", Shape(8192, 4096), 4, 4, 0, hold=HOLD)
MIXED = TrialPlan(
    "mixed.32K.c4",
    "mixed",
    Shape(2048, 1024),
    4,
    4,
    0,
    hold=structs.replace(HOLD, arrival=Arrival(Shape(32768, 1), 5 * S, 5 * S, 600 * S)),
)


def report(t_s: float, waiting: dict[int, float] | None = None) -> Progress:
    asked = tuple((index, round(at * S)) for index, at in (waiting or {}).items())
    return Progress(
        t_ns=round(t_s * S), stage="measured", started=4, ended=0, in_flight=4, waiting_since=asked
    )


def held(begin_s: float | None, end_s: float | None, gave_up: str | None = None) -> Held:
    return Held(
        streams_began_ns=0,
        decided_ns=20 * S,
        deadline_ns=90 * S,
        saw=Look(streams=4, produced=4, running=4, waiting=0, server_tells=True),
        server_tells=True,
        begin_ns=None if begin_s is None else round(begin_s * S),
        end_ns=None if end_s is None else round(end_s * S),
        gave_up=gave_up,
    )


def note(directory: Path, entry: Held) -> None:
    line = msgspec.json.encode(JournalEntry(1, "held", msgspec.to_builtins(entry)))
    other = msgspec.json.encode(JournalEntry(0, "started"))
    (directory / "journal.jsonl").write_bytes(other + b'\n{torn "held"}\n' + line + b"\n")


def sample(directory: Path, t_s: float, tokens: int, running: int = 4) -> None:
    line = msgspec.json.encode(
        ServerSample(
            round(t_s * S), running=running, waiting=1, kv_usage_mean=0.5, output_tokens_total=tokens
        )
    )
    (directory / "server.jsonl").write_bytes(line + b"\n")


def speed_trial(role: Role, status: CellStatus = CellStatus.valid, **more: object) -> TrialResult:
    base = run_trial("single", 2, 1)
    verdict = CellVerdict(status, "9 running of 8 \x1b[2J")
    trial = SpeedTrial(verdict=verdict, **more)  # type: ignore[arg-type]
    return structs.replace(base, plan=structs.replace(PLAN, role=role), speed=trial)


def test_the_ramp_is_told(tmp_path: Path) -> None:
    """While streams get ready: how many have produced, what the server runs and keeps waiting, the deadline."""
    clock, out = Clock(), console()
    view = RedrawnView(out, None, now_ns=clock)
    view.step(PLAN, "load")
    sample(tmp_path, 0, 0, running=2)
    view.progress(PLAN, report(0), {}, tmp_path)
    clock.move(12)
    view.progress(PLAN, report(12), {0: S, 1: 2 * S}, tmp_path)
    text = text_of(view.block(), 100)
    assert "decode 8K x 4" in text
    assert "ramp: 2 of 4 streams have produced output, 78 s to the ready deadline" in text
    assert "server: running 2, waiting 1, KV 50%" in text
    assert "TTFT so far: p50 1.500 s, n 2" in text


def test_the_window_is_told(tmp_path: Path) -> None:
    """In the window: how much of it is over, and the rate so far by the server's counter."""
    clock = Clock()
    view = RedrawnView(console(), None, now_ns=clock)
    view.step(PLAN, "load")
    view.progress(PLAN, report(0), {}, tmp_path)
    note(tmp_path, held(20, 50))
    for at, tokens in ((21, 1000), (31, 3000)):
        clock.move(21 if at == 21 else 10)
        sample(tmp_path, at, tokens)
        view.progress(PLAN, report(at), dict.fromkeys(range(4), S), tmp_path)
    text = text_of(view.block(), 100)
    assert "window: 11 s of 30 s over; 200.0 tok/s so far by the server's counter" in text


def test_a_log_tells_a_held_load_too(tmp_path: Path) -> None:
    """The plain view's lines say the same, without a guess of the time left from completions."""
    clock, out = Clock(), console()
    view = PlainView(out, None, now_ns=clock)
    view.step(PLAN, "load")
    clock.move(11)
    view.progress(PLAN, report(11), {}, tmp_path)
    assert "  ramp: 0 of 4 streams have produced output, 90 s to the ready deadline; TTFT: none yet" in said(
        out
    )


def test_a_stream_that_started_again_has_produced(tmp_path: Path) -> None:
    """A first output that fell between two looks is known by the stream's next request."""
    course = HeldCourse()
    shot = course.shot(PLAN, report(5, {4: 4.0}), {1: S}, tmp_path, None)
    assert shot is not None and shot.produced == 2


def test_another_trial_begins_anew(tmp_path: Path) -> None:
    """What one trial has shown is not the next one's; a load without a hold has nothing to show."""
    course = HeldCourse()
    course.shot(PLAN, report(5), dict.fromkeys(range(4), S), tmp_path, None)
    other = structs.replace(PLAN, name="decode.8K.c8", concurrency=8)
    shot = course.shot(other, report(1), {}, tmp_path, None)
    assert shot is not None and shot.produced == 0
    assert course.shot(structs.replace(PLAN, hold=None), report(1), {}, tmp_path, None) is None
    warm = structs.replace(report(1), stage="warmup")
    assert course.shot(PLAN, warm, {}, tmp_path, None) is None


def test_a_load_that_was_never_ready_says_so(tmp_path: Path) -> None:
    """The gate's last look stands where the window would."""
    note(tmp_path, held(None, None, "not ready within 90 s"))
    shot = HeldCourse().shot(PLAN, report(91), {}, tmp_path, None)
    assert shot is not None and not shot.in_window
    assert say_held(shot).startswith("never ready, not ready within 90 s: 4 of 4 streams had produced")


def test_the_long_prompt_is_told(tmp_path: Path) -> None:
    """Of a mixed cell: when the long prompt comes, how long it waits, and its first output."""
    note(tmp_path, held(20, None))
    course = HeldCourse()

    def look(t_s: float, waiting: dict[int, float] | None = None, *more: int) -> str:
        ttfts = dict.fromkeys((*range(4), *more), 2074 * MS)
        shot = course.shot(MIXED, report(t_s, waiting), ttfts, tmp_path, None)
        assert shot is not None
        return say_held(shot)

    assert "the long prompt comes in 3.0 s; no rate yet" in look(22)
    assert "the long prompt has waited 1.5 s for its first output" in look(26.5, {4: 25.0})
    assert "the long prompt had its first output after 2.07 s" in look(28, None, 4)


@pytest.mark.parametrize("content", [b"", b"{\n", b'{"t_ns":1,"what":"held","detail":{"x":1}}\n', b"\xff\n"])
def test_a_journal_without_a_hold_is_no_fault(tmp_path: Path, content: bytes) -> None:
    """Nothing yet, torn lines and strange entries are taken for nothing."""
    assert read_held(tmp_path) is None
    (tmp_path / "journal.jsonl").write_bytes(content)
    assert read_held(tmp_path) is None


def test_the_share_of_a_ramp_and_a_window() -> None:
    """The bar shows streams that have produced, then the window's time; nothing where its end is open."""
    ramp = HeldShot(streams=4, produced=1, since_ns=0, left_ns=1)
    window = structs.replace(ramp, held=held(0, 10), since_ns=4, left_ns=6)
    assert ramp.share == 0.25 and window.share == 0.4
    assert structs.replace(window, left_ns=None).share is None


def test_prefill_samples_are_told(tmp_path: Path) -> None:
    """Of prefill: how many samples there are and how many are wanted, and the rate so far."""
    plan = structs.replace(
        PLAN, name="prefill.8K", role="prefill", concurrency=1, requests=8, hold=None, until=PrefillRule()
    )
    clock = Clock()
    view = RedrawnView(console(), None, now_ns=clock)
    view.step(plan, "load")
    clock.move(2)
    view.progress(plan, structs.replace(report(2), ended=2), {0: 512 * MS, 1: 512 * MS}, tmp_path)
    text = text_of(view.block(), 100)
    assert "prefill 8K" in text and "samples: 2 done, 3 to 8 wanted" in text
    assert "TTFT so far: p50 512.0 ms, n 2: about 16,000 tok/s" in text
    assert "left of its" not in text


def test_the_studys_own_estimate_replaces_the_rough_one() -> None:
    """The time left and the count are the study's; a note is said once."""
    clock, out = Clock(), console()
    view = PlainView(out, None, expected_trials=14, now_ns=clock)
    for _ in range(2):
        view.estimate(1500.0, 4, 48, "11 cells were \x1b[2J trimmed")
    clock.move(60)
    view.step(PLAN, "load")
    lines = said(out).splitlines()
    assert lines == ["11 cells were \\x1b[2J trimmed", "5 of 48: decode 8K x 4 (study about 24 min more)"]
    redrawn = RedrawnView(console(), None, now_ns=clock)
    redrawn.estimate(90.0, 4, 48, "")
    redrawn.step(PLAN, "load")
    clock.move(30)
    assert "study about 60 s more" in text_of(redrawn.block(), 100)


def test_the_warm_up_is_none_of_the_counted() -> None:
    """A discarded warm-up has no number among the study's cells."""
    course = Course(None, None)
    course.estimate(90.0, 0, 48, "", 0)
    assert course.counter(structs.replace(PLAN, role="warmup")) == ""
    assert course.counter(PLAN) == "1 of 48: "


@pytest.mark.parametrize(
    ("role", "title"),
    [
        ("warmup", "warm-up at 8K, discarded"),
        ("prefill", "prefill 8K"),
        ("decode", "decode 8K x 4"),
        ("burst", "burst 8K x 4, 4 requests"),
    ],
)
def test_each_role_has_its_title(role: Role, title: str) -> None:
    """A trial of the matrix is named as its table names it."""
    assert Course(None, None).title(structs.replace(PLAN, role=role)) == title
    assert Course(None, None).title(MIXED) == "mixed prefill 32K among 4 streams"


def test_a_finished_cell_says_its_status_and_its_rate() -> None:
    """The line that stays holds the rate of a valid cell, and of another why it is not."""

    def line(role: Role, status: CellStatus = CellStatus.valid, **more: object) -> str:
        result = speed_trial(role, status, **more)
        return Course(None, None).line(result.plan, result, 42.0, False).plain

    prefill = Prefill(samples=(), n=3, median=15_900.0, ttft_median_ns=515e6)
    assert line("prefill", prefill=prefill).endswith("15,900 tok/s, TTFT 515.0 ms, n 3")
    part = Part("during", Window(0, S, "", ""), 292.0, 292.0)
    mixed = line("mixed", mixed=Mixed(ttft_ns=2074 * MS, during=part))
    assert mixed.endswith("TTFT 2.074 s, the streams 292.0 tok/s during")
    assert "tok/s" in line("burst")
    bad = line("decode", CellStatus.extra_traffic)
    assert "extra traffic" in bad and bad.endswith("9 running of 8 \\x1b[2J")
