"""A soak's segment in simulated time: what begins and ends it, what is left and kept, and that memory stays flat."""

from __future__ import annotations

import gc
import sys
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from nameplate.client.order import Progress
from nameplate.contract.errors import CallerError, ClientError
from nameplate.evidence.header import Keeping
from nameplate.evidence.records import Kind
from nameplate.measure.from_disk import ENDED, IDENTITY, INTERRUPTED, LOAD_ENDED
from nameplate.prompts.text import PromptKey
from nameplate.sim import virtual
from nameplate.sim.presets import DEMO
from nameplate.trial import feeding
from nameplate.trial.corpus import Prompt
from nameplate.trial.tests.soaks import SECOND_NS as S
from nameplate.trial.tests.soaks import SoakRun, Watching


@pytest.fixture(autouse=True)
def _small_stock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feeding, "STOCK", 256)


def test_a_segment_has_its_denominators_on_record(tmp_path: Path) -> None:
    """Submissions begin and end when the plan says; the drain ends with the last answer; nothing else is in the way."""
    run = SoakRun(tmp_path / "s", seconds=3, concurrency=3).carry()
    began, ended = run.entry("submit_began").t_ns, run.entry("submit_ended")
    assert ended.t_ns == run.entry("drain_began").t_ns == began + 3 * S
    assert ended.detail == {"reason": "duration"}
    rows = run.reader.rows()
    assert (
        began <= min(row.scheduled_ns for row in rows) and max(row.sent_ns or 0 for row in rows) < ended.t_ns
    )
    drained = run.entry("drain_ended")
    assert drained.t_ns == max(row.end_ns or 0 for row in rows) >= ended.t_ns
    assert drained.detail == {"cancelled": 0}
    assert [row.index for row in rows] == list(range(len(rows))) and len(rows) > 100
    assert {row.outcome for row in rows} == {"ok"}
    assert run.journal(ENDED) and not run.journal(INTERRUPTED) and not run.journal("server_lost")
    assert run.entry(IDENTITY).detail["moment"] == "after"


def test_what_is_left_at_the_deadline_is_named(tmp_path: Path) -> None:
    """Requests that are left are cancelled, and each row says how far it had come: no byte, headers, or tokens."""
    run = SoakRun(tmp_path / "s", seconds=1, concurrency=36, shape="300/300", drain_ns=S).carry()
    left = [row for row in run.reader.rows() if row.outcome == "cancelled"]
    assert run.entry("drain_ended").detail == {"cancelled": len(left)}
    assert run.entry("drain_ended").t_ns == pytest.approx(run.entry("drain_began").t_ns + S, abs=S // 4)
    assert len(left) > 30 and all(row.sent_ns is not None and row.end_ns is not None for row in left)
    decoding = [row for row in left if row.output_events]
    waiting = [row for row in left if not row.output_events]
    # It runs 32 at once.
    assert decoding and waiting
    assert all(0 < (row.output_tokens or 0) < 300 and row.http_status == 200 for row in decoding)
    assert all(row.first_output_ns is None and row.output_tokens is None for row in waiting)
    assert run.journal("abort") or run.entry("drained").detail["status"] == "idle"


@pytest.mark.parametrize("drain_ns", [30 * S, S // 2], ids=["in time", "cut"])
def test_the_outstanding_limit_ends_it_by_name_and_drains(tmp_path: Path, drain_ns: int) -> None:
    """With as many unanswered as may be nothing more is sent; all that is out ends, or is cancelled at the deadline."""
    run = SoakRun(tmp_path / "s", seconds=600, rate=40.0, limit=12, shape="64/200", drain_ns=drain_ns).carry()
    ended, drained, rows = run.entry("submit_ended"), run.entry("drain_ended"), run.reader.rows()
    assert ended.detail == {"reason": "outstanding_limit"}
    assert ended.t_ns == run.entry("drain_began").t_ns < run.entry("submit_began").t_ns + S
    unanswered = [row for row in rows if (row.end_ns or 0) > ended.t_ns]
    assert len(unanswered) == 12 and max(row.scheduled_ns for row in rows) <= ended.t_ns
    outcomes = Counter(row.outcome for row in unanswered)
    assert outcomes["ok"] + outcomes["cancelled"] == 12 and outcomes["ok"]
    assert bool(outcomes["cancelled"]) is (drain_ns < S)
    assert drained.detail == {"cancelled": outcomes["cancelled"]}
    assert drained.t_ns == max(row.end_ns or 0 for row in rows)
    assert run.entry(LOAD_ENDED).detail["overrun"] is True and run.journal(ENDED)


def test_a_restart_is_named_dated_and_survived(tmp_path: Path) -> None:
    """Failures while it is away, one entry for each side of the gap, the new identity, and work goes on."""
    run = SoakRun(tmp_path / "s", seconds=7, concurrency=4).faults("restart:4@60").carry()
    lost, back = run.entry("server_lost"), run.entry("server_back")
    rows = run.reader.rows()
    failed = [row for row in rows if row.outcome != "ok"]
    assert lost.t_ns == min(row.end_ns or 0 for row in failed)
    assert 4 * S <= back.t_ns - lost.t_ns <= 5 * S and back.detail["restarted"] is True
    assert Counter(row.outcome for row in failed) == {"reset": 4, "connect_failed": 12}
    assert all(row.outcome == "ok" for row in rows if row.scheduled_ns > back.t_ns)
    before = run.reader.header().identity.value("process_start_time_s")
    assert isinstance(before, float)
    after = back.detail["identity"]["facts"]["process_start_time_s"]["value"]
    assert after == pytest.approx(before + (lost.t_ns + 4 * S) / S, abs=0.01)
    assert run.entry("submit_ended").detail == {"reason": "duration"}


def test_a_server_that_stays_away_is_what_the_segment_tells(tmp_path: Path) -> None:
    """The load goes on to its end without it, and the segment is whole though nothing can be asked any more."""
    run = SoakRun(tmp_path / "s", seconds=10, concurrency=2).faults("die:2@50").carry()
    rows = run.reader.rows()
    assert run.journal("server_lost") and not run.journal("server_back")
    assert 10 <= sum(row.outcome == "connect_failed" for row in rows) <= 20
    assert run.entry("submit_ended").detail == {"reason": "duration"} and run.journal(ENDED)
    assert not run.journal(IDENTITY)


def test_raw_bytes_keep_within_their_budget(tmp_path: Path) -> None:
    """Whole, then a sample, then none: each change is told, and each request is kept whole or not at all."""
    run = SoakRun(tmp_path / "s", seconds=60, rate=8.0, raw_budget_bytes=60_000).carry()
    changes = run.journal("raw_kept")
    assert [entry.detail["reads"] for entry in changes][:1] == ["sample"]
    assert all(entry.detail["reason"] == "budget" for entry in changes)
    assert changes[0].detail["reads_bytes"] >= 30_000
    kinds: dict[int, set[int]] = {}
    for record in run.reader.records():
        if record.kind in (Kind.READ, Kind.BARE):
            kinds.setdefault(record.request, set()).add(record.kind)
    assert all(len(kind) == 1 for kind in kinds.values())
    whole = [index for index, kind in kinds.items() if kind == {Kind.READ}]
    (every,) = {entry.detail["sample_every"] for entry in changes if entry.detail["reads"] == "sample"}
    first_bare = min(index for index, kind in kinds.items() if kind == {Kind.BARE})
    assert all(index % every == 0 for index in whole if index > first_bare) and len(whole) < len(kinds)
    assert len(kinds) == len(run.reader.rows())


def test_a_budget_that_is_spent_keeps_no_bytes_at_all(tmp_path: Path) -> None:
    """Not even of the requests that begin it: the change is told, and each has its times and sizes."""
    run = SoakRun(tmp_path / "s", seconds=2, concurrency=8, raw_budget_bytes=0).carry()
    told = run.entry("raw_kept").detail
    assert (told["reads"], told["reason"], told["reads_bytes"]) == ("none", "budget", 0)
    kinds = {record.kind for record in run.reader.records()}
    assert Kind.BARE in kinds and Kind.READ not in kinds


def test_the_client_samples_itself(tmp_path: Path) -> None:
    """Both processes' lines, each second: memory, descriptors, what is in flight, how late sends were."""
    run = SoakRun(tmp_path / "s", seconds=5, concurrency=4).carry()
    load, parent = run.samples("load"), run.samples("parent")
    assert 4 <= len(load) <= 6 and 4 <= len(parent) <= 6
    gaps = [later.t_ns - earlier.t_ns for earlier, later in pairwise(load)]
    assert all(gap == pytest.approx(S, abs=S // 4) for gap in gaps)
    assert all((one.rss_bytes or 0) > 1 << 20 and (one.descriptors or 0) > 3 for one in (*load, *parent))
    assert all(one.in_flight == 4 and one.send_lag_max_ns == 0 and one.wall_ns is None for one in load)
    assert sum(one.sent or 0 for one in load) <= len(run.reader.rows())
    assert all((one.prompts_ahead or 0) > 0 for one in parent)


class Interrupting(Watching):
    """Interrupt once so much has started, and again later."""

    def __init__(self, run: SoakRun, *at: int) -> None:
        super().__init__()
        self._at = list(at)
        self._interruption = run.setup.interruption

    def progress(self, _plan: object, progress: Progress, ttfts_ns: Any, directory: object) -> None:
        super().progress(_plan, progress, ttfts_ns, directory)
        if self._at and progress.started >= self._at[0]:
            self._at.pop(0)
            self._interruption.interrupt()


@pytest.mark.parametrize("interrupts", [(8,), (8, 8)], ids=["once", "twice"])
def test_an_interrupt_drains_and_a_second_one_cancels(tmp_path: Path, interrupts: tuple[int, ...]) -> None:
    """A person's interrupt ends the submissions by that name; nothing that was recorded is lost."""
    run = SoakRun(tmp_path / "s", seconds=600, concurrency=4, shape="64/200")
    run.watch_with(Interrupting(run, *interrupts)).carry()
    assert run.entry("submit_ended").detail == {"reason": "interrupted"}
    outcomes = Counter(row.outcome for row in run.reader.rows())
    assert outcomes["ok"] + outcomes["cancelled"] == sum(outcomes.values())
    assert (
        run.entry("drain_ended").detail["cancelled"] == outcomes["cancelled"] == (4 if interrupts[1:] else 0)
    )
    assert run.entry(INTERRUPTED).detail == {"interrupts": len(interrupts)}


class Short:
    """Supply prompts until there are no more."""

    def __init__(self, run: SoakRun, prompts: int) -> None:
        self._corpus = run.corpus
        self.length, self.prefix = self._corpus.length, self._corpus.prefix
        self._left = prompts

    def prompt(self, key: PromptKey) -> Prompt:
        self._left -= 1
        if self._left < 0:
            raise CallerError("The data set has no more rows.")
        return self._corpus.prompt(key)


def test_a_corpus_that_ends_ends_the_load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the corpus said reaches the caller; what was recorded is noted as interrupted."""
    monkeypatch.setattr(feeding, "STOCK", 64)
    run = SoakRun(tmp_path / "s", seconds=600)
    run.corpus = Short(run, 200)
    with pytest.raises(CallerError, match="no more rows"):
        run.carry()
    assert "no more rows" in run.entry(INTERRUPTED).detail["error"]
    assert 30 <= len(run.reader.rows()) <= 200


def test_a_stock_that_runs_dry_is_a_fault_of_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With nothing written after the stock the load ends by name, and is not thinned."""
    monkeypatch.setattr(feeding, "STOCK", 16)
    feed = feeding.Feeder.feed
    monkeypatch.setattr(feeding.Feeder, "feed", lambda own, started, at=None: at or feed(own, started))
    run = SoakRun(tmp_path / "s", seconds=600)
    with pytest.raises(ClientError, match="prompt of request"):
        run.carry()
    assert run.entry("submit_ended").detail == {"reason": "broke_off"}
    assert "composes prompts more slowly" in run.entry(LOAD_ENDED).detail["failure"]
    assert [row.index for row in run.reader.rows()] == list(range(16))


def test_memory_stays_flat(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From 100 requests to 500 nothing is held for longer than its request lasts: by server, load and feeding."""
    held: list[int] = []

    class Weighing(Watching):
        """Count what is allocated at some points."""

        def progress(self, _plan: object, progress: Progress, ttfts_ns: Any, directory: object) -> None:
            super().progress(_plan, progress, ttfts_ns, directory)
            if progress.started >= 100 * (1 + len(held)) and len(held) < 5:
                gc.collect()
                held.append(sys.getallocatedblocks())

    watching = Weighing()
    # A buffer that waits for its ten seconds would be taken for growth.
    monkeypatch.setattr(virtual, "FLUSH_EVERY_NS", 1)
    # Its prefix cache is full before the first look.
    preset = structs.replace(DEMO, engine=structs.replace(DEMO.engine, kv_tokens=8192))
    run = SoakRun(
        tmp_path / "s", seconds=3, shape="48/2", concurrency=8, keeping=Keeping("none"), preset=preset
    )
    run.watch_with(watching).carry()
    assert len(held) == 5 and watching.most_shown <= 16
    # A request's row alone would be some forty.
    assert held[4] - held[1] < 600
