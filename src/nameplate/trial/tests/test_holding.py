"""Holding streams in made-up time: ready, too late, failed, crowded, the window, the arrival, and the samples' file."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from msgspec import structs

from nameplate.client.order import Progress
from nameplate.client.process import Command
from nameplate.contract.errors import Interrupted
from nameplate.engines.state import ServerSample
from nameplate.evidence.journal import JournalEntry
from nameplate.measure.held import HELD, Held, held_of
from nameplate.measure.tests.held_cells import WINDOW, hold_plan, sample
from nameplate.measure.tests.trials import S, ok_row
from nameplate.trial.holding import HoldSteering, SampleTail
from nameplate.trial.interruption import Interruption

STEP = S // 5


class Course:
    """Drive a steering by reports a fifth of a second apart, with a server whose samples are written as they come."""

    def __init__(self, path: Path, streams: int = 2, *, arrival: bool = False, tells: bool = True) -> None:
        self.path = path / "server.jsonl"
        self.path.touch()
        self.interruption = Interruption()
        self.decided: list[Held] = []
        self.shown = 0
        self.now_ns = 100 * S
        self.running, self.waiting = streams, 0
        self.tells = tells
        self.steering = HoldSteering(
            hold_plan(streams, arrival=arrival),
            self.interruption,
            SampleTail(self.path, 6 * S),
            self.decided.append,
            self._show,
            server_tells=tells,
        )

    def _show(self, _progress: Progress, _ttfts: object) -> None:
        self.shown += 1

    def report(self, **more: object) -> Command | None:
        """Let a fifth of a second pass, with a look at the server, and report."""
        self.now_ns += STEP
        if self.tells:
            with self.path.open("ab") as file:
                look = sample(self.now_ns - 1, self.running, self.waiting)
                file.write(msgspec.json.encode(look) + b"\n")
        values: dict[str, object] = {"stage": "measured", "started": 2, "ended": 0, "in_flight": 2}
        return self.steering(Progress(t_ns=self.now_ns, **{**values, **more}))  # type: ignore[arg-type]

    def produce(self, *indices: int) -> Command | None:
        """Report first outputs."""
        return self.report(first_outputs=tuple((index, S) for index in indices))

    def quiet(self, most: int = 1000, **more: object) -> tuple[int, Command | None]:
        """Report until there is a command or as often as told; return after how many reports, and the command."""
        for number in range(1, most + 1):
            command = self.report(**more)
            if command is not None:
                return number, command
        return most, None


def test_streams_are_ready_after_the_stable_time_and_then_a_window_passes(tmp_path: Path) -> None:
    """A second after both have produced the window begins, and the load is cancelled when its length is over."""
    course = Course(tmp_path)
    assert course.report() is None and course.produce(0) is None and course.produce(1) is None
    produced_ns = course.now_ns
    reports, command = course.quiet()
    assert command == "cancel"
    (held,) = course.decided
    assert held.begin_ns is not None and held.end_ns == held.begin_ns + WINDOW
    assert held.begin_ns == held.decided_ns == produced_ns + S
    assert course.now_ns - STEP < held.end_ns <= course.now_ns and reports == (S + WINDOW) // STEP
    assert held.gave_up is None and held.server_tells and held.saw.produced == 2
    assert held.streams_began_ns == 100 * S + STEP and held.deadline_ns == held.streams_began_ns + 60 * S
    assert course.report() is None and len(course.decided) == 1
    assert course.shown == reports + 4


def test_what_is_decided_survives_the_journal(tmp_path: Path) -> None:
    """The account of a hold is read back from the journal as it was written."""
    course = Course(tmp_path)
    course.produce(0, 1)
    course.quiet(7)
    (held,) = course.decided
    entry = JournalEntry(1, HELD, msgspec.json.decode(msgspec.json.encode(msgspec.to_builtins(held))))
    assert held_of([JournalEntry(0, "other"), entry]) == held and held_of([]) is None
    assert held.waited_ns == held.decided_ns - held.streams_began_ns > 0


def test_streams_that_are_never_ready_are_given_up_at_the_deadline(tmp_path: Path) -> None:
    """One stream that does not produce: at the deadline, not before, the load is cancelled, with what was seen."""
    course = Course(tmp_path)
    course.running, course.waiting = 1, 1
    assert course.produce(0) is None
    _, command = course.quiet()
    (held,) = course.decided
    assert command == "cancel" and held.begin_ns is None and held.end_ns is None
    assert held.gave_up == "not ready within 60 s"
    assert held.deadline_ns <= course.now_ns < held.deadline_ns + STEP
    assert (held.saw.produced, held.saw.running, held.saw.waiting) == (1, 1, 1)


@pytest.mark.parametrize(
    "change",
    [{"outcome": "http_error"}, {"outcome": "reset"}, {"output_events": 0}, {"outcome": "timed_out_silence"}],
)
def test_a_failure_while_ramping_ends_the_load(tmp_path: Path, change: dict[str, object]) -> None:
    """A request that fails, or has an empty answer, ends the wait at once, and says so."""
    course = Course(tmp_path)
    assert course.produce(0) is None
    row = structs.replace(ok_row(1, S, phase="opening", slot=1), **change)
    assert course.report(rows=(row,)) == "cancel"
    (held,) = course.decided
    assert held.gave_up is not None and "failed or had an empty answer" in held.gave_up
    assert course.report() is None


def test_a_failure_while_warming_ends_the_load_without_a_decision(tmp_path: Path) -> None:
    """Before the streams began there is nothing to decide: the load is cancelled."""
    course = Course(tmp_path)
    row = ok_row(0, S, phase="warmup", outcome="http_error")
    assert course.report(stage="warmup", rows=(row,)) == "cancel" and course.decided == []


def test_a_failure_within_the_window_ends_it(tmp_path: Path) -> None:
    """A window in which a request failed is void, and need not be awaited."""
    course = Course(tmp_path)
    course.produce(0, 1)
    assert course.quiet(10) == (10, None)
    row = ok_row(0, S, phase="opening", outcome="stream_error")
    assert course.report(rows=(row,)) == "cancel" and len(course.decided) == 1


def test_somebody_elses_traffic_is_not_waited_for(tmp_path: Path) -> None:
    """More running than ours for three stable times: the load is cancelled long before its deadline."""
    course = Course(tmp_path)
    course.running = 3
    course.produce(0, 1)
    reports, command = course.quiet()
    (held,) = course.decided
    assert command == "cancel" and held.gave_up == "more than ours ran on and on" and held.saw.running == 3
    assert reports * STEP <= 4 * S


def test_a_stranger_who_leaves_is_waited_for(tmp_path: Path) -> None:
    """More than ours for a second only delays readiness."""
    course = Course(tmp_path)
    course.running = 3
    course.produce(0, 1)
    assert course.quiet(5) == (5, None)
    course.running = 2
    gone_ns = course.now_ns
    course.quiet(12)
    (held,) = course.decided
    assert held.begin_ns is not None and held.begin_ns > gone_ns + S - STEP


def test_a_person_ends_it_at_once(tmp_path: Path) -> None:
    """One interrupt cancels, whether the streams are ready or not: a cell cut short is void."""
    for reports in (1, 9):
        course = Course(tmp_path)
        course.path.write_bytes(b"")
        with course.interruption.loading():
            course.produce(0, 1)
            course.quiet(reports)
            course.interruption.interrupt()
            assert course.report() == "cancel" and course.report() is None
        with pytest.raises(Interrupted):
            course.interruption.interrupt()


def test_a_server_that_tells_nothing_is_ready_by_output(tmp_path: Path) -> None:
    """Without gauges the window begins when every stream has produced for the stable time."""
    course = Course(tmp_path, tells=False)
    course.produce(0, 1)
    produced_ns = course.now_ns
    course.quiet(8)
    (held,) = course.decided
    assert held.begin_ns == produced_ns + S and not held.server_tells
    assert held.saw.running is None and "does not tell" in str(held.saw)


def test_a_server_whose_page_is_lost_is_never_ready(tmp_path: Path) -> None:
    """One that told at first and then only fails is unknown, and not taken for full."""
    course = Course(tmp_path)
    course.tells = False
    course.produce(0, 1)
    _, command = course.quiet()
    assert command == "cancel" and course.decided[0].gave_up == "not ready within 60 s"


def test_streams_that_start_again_while_others_ramp_are_no_reason(tmp_path: Path) -> None:
    """A stream that has started again and waits for its first output may be missing in the gauges for a moment."""
    course = Course(tmp_path)
    course.produce(0, 1)
    course.running, course.waiting = 1, 1
    assert course.report(waiting_since=((2, course.now_ns),)) is None
    course.running, course.waiting = 2, 0
    assert course.produce(2) is None
    course.quiet(4)
    (held,) = course.decided
    assert held.begin_ns is not None and held.begin_ns <= 100 * S + STEP + S + STEP


def test_a_stream_that_is_kept_waiting_is_a_reason(tmp_path: Path) -> None:
    """A restart that the server keeps in its queue for seconds means that it does not run all of ours."""
    course = Course(tmp_path)
    course.produce(0, 1)
    course.running, course.waiting = 1, 1
    since = course.now_ns - 2 * S
    assert course.quiet(50, waiting_since=((2, since),)) == (50, None)
    assert course.decided == []


def test_the_arrival_is_released_once_and_the_window_follows_its_first_output(tmp_path: Path) -> None:
    """A second after readiness comes the release, and a second after the arrival's first output the end."""
    course = Course(tmp_path, arrival=True)
    course.produce(0, 1)
    course.quiet(5)
    (held,) = course.decided
    assert held.begin_ns is not None and held.end_ns is None
    _, command = course.quiet()
    assert command == "release" and course.now_ns == held.begin_ns + S
    assert course.quiet(20) == (20, None)
    assert course.produce(2) is None
    output_ns = course.now_ns
    assert course.quiet()[1] == "cancel" and course.now_ns == output_ns + S
    assert len(course.decided) == 1


def test_an_arrival_that_gets_no_output_has_a_deadline(tmp_path: Path) -> None:
    """Thirty seconds after its release the load is cancelled without it."""
    course = Course(tmp_path, arrival=True)
    course.produce(0, 1)
    _, command = course.quiet()
    released_ns = course.now_ns
    assert command == "release"
    assert course.quiet()[1] == "cancel" and course.now_ns == released_ns + 30 * S


def test_restarts_do_not_pass_for_the_arrival(tmp_path: Path) -> None:
    """With an arrival at index 2 the streams' later requests are 3, 4, 6, ...: none of them ends the wait for it."""
    course = Course(tmp_path, arrival=True)
    course.produce(0, 1)
    assert course.quiet()[1] == "release"
    assert course.produce(3, 4, 6) is None
    assert course.quiet(20) == (20, None)


LINE = msgspec.json.encode(sample(S, 4)) + b"\n"


def test_a_tail_reads_what_is_new(tmp_path: Path) -> None:
    """Each look returns all samples kept, the new ones last; a file that is not there yet has none."""
    path = tmp_path / "server.jsonl"
    tail = SampleTail(path, 100 * S)
    assert tail.read(S) == []
    path.write_bytes(LINE)
    assert len(tail.read(S)) == 1 and len(tail.read(S)) == 1
    with path.open("ab") as file:
        file.write(LINE * 2)
    assert len(tail.read(S)) == 3


def test_a_tail_waits_for_the_rest_of_a_line(tmp_path: Path) -> None:
    """A line that is written in pieces is one sample, once it is whole."""
    path = tmp_path / "server.jsonl"
    tail, seen = SampleTail(path, 100 * S), []
    for at in range(len(LINE)):
        with path.open("ab") as file:
            file.write(LINE[at : at + 1])
        seen.append(len(tail.read(S)))
    assert seen == [0] * (len(LINE) - 1) + [1]


@pytest.mark.parametrize(
    "garbage", [b"\n", b"{}\n", b"null\n", b"\xff\xfe\n", b'{"t_ns": "x"}\n', b"[" * 5000 + b"\n"]
)
def test_a_tail_skips_what_is_no_sample(tmp_path: Path, garbage: bytes) -> None:
    """Garbage between samples costs nothing but itself."""
    path = tmp_path / "server.jsonl"
    path.write_bytes(LINE + garbage + LINE)
    assert len(SampleTail(path, 100 * S).read(S)) == 2


def test_a_tail_survives_a_file_that_shrinks(tmp_path: Path) -> None:
    """A file that was cut gives nothing new and breaks nothing."""
    path = tmp_path / "server.jsonl"
    path.write_bytes(LINE * 3)
    tail = SampleTail(path, 100 * S)
    assert len(tail.read(S)) == 3
    path.write_bytes(LINE)
    assert len(tail.read(S)) == 3
    path.unlink()
    assert len(tail.read(S)) == 3


def test_a_tail_forgets_what_is_old(tmp_path: Path) -> None:
    """Only the last stretch is kept, so that memory does not grow with the wait; failed scrapes are kept as such."""
    path = tmp_path / "server.jsonl"
    lines = [sample(at * S, 4) for at in range(50)] + [ServerSample(t_ns=50 * S, error="timed out")]
    path.write_bytes(b"".join(msgspec.json.encode(each) + b"\n" for each in lines))
    kept = SampleTail(path, 6 * S).read(50 * S)
    assert [each.t_ns // S for each in kept] == [44, 45, 46, 47, 48, 49, 50]
    assert kept[-1].error == "timed out"
