"""Load processes: steered through a pipe, sealed whatever ends them, and always reaped."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from nameplate.client import process as process_module
from nameplate.client.order import LoadOrder, Progress
from nameplate.client.process import Command, LoadProcess, carry
from nameplate.client.tests.orders import order_of, plan_of
from nameplate.client.tests.servers import keep_alive, serving
from nameplate.contract.errors import CallerError, ClientError, ServerError
from nameplate.evidence.reader import TrialReader
from nameplate.evidence.records import Kind
from nameplate.evidence.rows import RequestRow
from nameplate.sim.process import SimProcess, running

pytestmark = pytest.mark.live


def body(tokens: int) -> bytes:
    """Ask the metronome for so many tokens."""
    return (
        b'{"model":"metronome","messages":[{"role":"user","content":"hello there"}],"max_tokens":%d,'
        b'"stream":true,"stream_options":{"include_usage":true}}' % tokens
    )


@pytest.fixture(scope="module")
def metronome() -> Iterator[SimProcess]:
    """Serve a metronome: first token after 20 ms, then one each 10 ms."""
    with running("metronome", "--ttft-ms", "20", "--itl-ms", "10") as server:
        yield server


def rows_of(directory: Path) -> list[RequestRow]:
    """Read the rows; everything must be whole."""
    reader = TrialReader(directory)
    rows = reader.rows()
    timelines = sum(1 for _ in reader.timelines())
    records = sum(1 for record in reader.records() if record.kind == Kind.SCHEDULED)
    assert reader.torn == [] and timelines == len(rows) == records
    return rows


def unsteered(_progress: Progress) -> Command | None:
    """Let the load run."""
    return None


def ending(worker: LoadProcess) -> process_module._LastWord:
    """Read a process to its last word."""
    while worker.last_word is None:
        worker.reports()
    worker.reports()
    return worker.last_word


def started(worker: LoadProcess, requests: int) -> None:
    """Wait until so many requests of a stage have started."""
    while not any(report.started >= requests for report in worker.reports()):
        assert worker.last_word is None


@pytest.mark.parametrize("start", ["burst", "handover"])
def test_two_workers_carry_one_load(metronome: SimProcess, tmp_path: Path, start: str) -> None:
    """Every index starts once over both workers, after a warm-up that is over for both, and nothing is left behind."""
    plan = plan_of(5, 40, 2, start)  # type: ignore[arg-type]
    seen: list[Progress] = []

    def watch(progress: Progress) -> Command | None:
        seen.append(progress)
        return None

    order = order_of(plan, metronome.url, tmp_path, body=body(4), workers=2)
    finished = carry(order, watch)
    rows = rows_of(tmp_path)
    assert finished.failure is None and not finished.cancelled and finished.reads >= 5 * 40
    assert sorted(row.index for row in rows if row.measured) == list(range(2, 42))
    assert len({row.index for row in rows}) == len(rows) and {row.outcome for row in rows} == {"ok"}
    assert {row.worker for row in rows} == {0, 1}
    warmed = max(row.end_ns or 0 for row in rows if row.phase == "warmup")
    assert min(row.sent_ns or 0 for row in rows if row.phase != "warmup") >= warmed
    if start == "burst":
        opening = [row.sent_ns or 0 for row in rows if row.phase == "opening"]
        assert len(opening) == 5 and max(opening) - min(opening) < 100_000_000
    assert {row.index for progress in seen for row in progress.rows} == {row.index for row in rows}
    assert not (tmp_path / ".counter").exists()


def test_five_hundred_streams(metronome: SimProcess, tmp_path: Path) -> None:
    """500 concurrent streams are opened before they are due, and every one is whole."""
    finished = carry(order_of(plan_of(500, 500), metronome.url, tmp_path, body=body(6)), unsteered)
    rows = rows_of(tmp_path)
    assert Counter(row.outcome for row in rows) == {"ok": 500}
    assert all(row.output_tokens == 6 and row.connect_ns is not None for row in rows)
    assert finished.peak_memory_bytes < 150 << 20


def test_stop_awaits_and_cancel_ends(metronome: SimProcess, tmp_path: Path) -> None:
    """`stop` lets what is in flight end well; `cancel` ends it at once; both leave sealed files."""
    for command, outcome in (("stop", "ok"), ("cancel", "cancelled")):
        directory = tmp_path / command
        directory.mkdir()
        worker = LoadProcess(order_of(plan_of(3, 300), metronome.url, directory, body=body(40)))
        started(worker, 3)
        worker.tell(command)  # type: ignore[arg-type]
        word = ending(worker)
        worker.close()
        rows = rows_of(directory)
        assert word.finished is not None and word.finished.cancelled == (command == "cancel")
        assert 3 <= len(rows) < 300 and rows[-1].outcome == outcome
        assert {row.outcome for row in rows} <= {"ok", outcome}


def test_a_closed_pipe_cancels_and_seals(metronome: SimProcess, tmp_path: Path) -> None:
    """When the parent is gone, the load ends by itself and what it recorded is whole."""
    worker = LoadProcess(order_of(plan_of(3, 300), metronome.url, tmp_path, body=body(4000)))
    started(worker, 3)
    worker.close()
    assert worker.process.returncode == 0
    assert [row.outcome for row in rows_of(tmp_path)] == ["cancelled"] * 3


def test_commands_may_follow_the_order_at_once(metronome: SimProcess, tmp_path: Path) -> None:
    """A command that comes together with the order is obeyed, not taken for a part of it."""
    worker = LoadProcess(order_of(plan_of(3, 300), metronome.url, tmp_path, body=body(4)))
    worker.tell("cancel")
    word = ending(worker)
    worker.close()
    assert word.finished is not None and word.finished.cancelled and len(rows_of(tmp_path)) <= 3


def test_the_terminals_interrupt_is_ignored(metronome: SimProcess, tmp_path: Path) -> None:
    """SIGINT and SIGHUP, at the very start or later, end nothing: that is the parent's business."""
    worker = LoadProcess(order_of(plan_of(2, 8), metronome.url, tmp_path, body=body(10)))
    worker.process.send_signal(signal.SIGINT)
    started(worker, 2)
    worker.process.send_signal(signal.SIGINT)
    worker.process.send_signal(signal.SIGHUP)
    word = ending(worker)
    worker.close()
    assert word.finished is not None and not word.finished.cancelled
    assert [row.outcome for row in rows_of(tmp_path)] == ["ok"] * 8
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, set())


def test_a_refused_connection_is_code_5_in_the_last_word(tmp_path: Path) -> None:
    """The process says whose fault it was, and its parent raises it as such."""
    with serving(keep_alive) as server:
        url = server.url
    worker = LoadProcess(order_of(plan_of(2, 4), url, tmp_path, body=body(4)))
    word = ending(worker)
    worker.close()
    assert word.exit_code == worker.process.returncode == 5
    assert "refused" in (word.error or "") and word.hint
    with pytest.raises(ServerError, match="refused"):
        process_module._combine([word])


def test_a_file_of_authorities_that_is_none_is_the_callers_mistake(tmp_path: Path) -> None:
    """A CA file that is missing is named as such, with the caller's exit code."""
    order = order_of(plan_of(1, 1), "https://127.0.0.1:1", tmp_path, body=body(4), ca_file="/no/such.pem")
    with pytest.raises(CallerError, match=r"/no/such\.pem"):
        carry(order, unsteered)


def killing(victim: int, order: LoadOrder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Carry an order and kill one of its processes with the third report."""
    workers: list[LoadProcess] = []
    real = LoadProcess.__init__

    def noted(worker: LoadProcess, one: LoadOrder) -> None:
        real(worker, one)
        workers.append(worker)

    reports = 0

    def kill(_progress: Progress) -> Command | None:
        nonlocal reports
        reports += 1
        if reports == 3:
            workers[victim].process.kill()
        return None

    monkeypatch.setattr(LoadProcess, "__init__", noted)
    carry(order, kill)


def test_a_killed_worker_ends_the_others(
    metronome: SimProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When one load process dies, the others cancel: half a load is not what was asked for, and nobody waits."""
    order = order_of(plan_of(4, 400), metronome.url, tmp_path, body=body(4000), workers=2)
    began = time.monotonic()
    with pytest.raises(ClientError, match="died with status -9"):
        killing(0, order, monkeypatch)
    assert time.monotonic() - began < 10
    reader = TrialReader(tmp_path)
    assert {(row.worker, row.outcome) for row in reader.rows()} == {(1, "cancelled")}


def test_a_parent_that_gives_up_leaves_nothing_behind(metronome: SimProcess, tmp_path: Path) -> None:
    """An exception in the steering ends all processes, with their evidence sealed."""

    class GaveUp(Exception):  # noqa: N818
        """Stand for an interrupt."""

    def give_up(progress: Progress) -> Command | None:
        if progress.started >= 4:
            raise GaveUp
        return None

    order = order_of(plan_of(4, 400), metronome.url, tmp_path, body=body(4000), workers=2)
    with pytest.raises(GaveUp):
        carry(order, give_up)
    assert {row.outcome for row in rows_of(tmp_path)} == {"cancelled"}


def test_a_process_that_hangs_is_ended(
    metronome: SimProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that neither writes nor ends is waited for only so long."""
    monkeypatch.setattr(process_module, "REAP_S", 0.3)
    worker = LoadProcess(order_of(plan_of(1, 1), metronome.url, tmp_path, body=body(4000)))
    started(worker, 1)
    worker.process.send_signal(signal.SIGSTOP)
    worker.close()
    assert worker.process.returncode == -signal.SIGKILL


def test_a_client_that_stood_still_shows_it(metronome: SimProcess, tmp_path: Path) -> None:
    """A process that was stopped for half a second has reads that say so: their socket was last seen empty that long
    ago, while the kernel's stamps still tell when bytes came."""
    worker = LoadProcess(order_of(plan_of(1, 1), metronome.url, tmp_path, body=body(120)))
    started(worker, 1)
    worker.process.send_signal(signal.SIGSTOP)
    timer = threading.Timer(0.5, os.kill, (worker.process.pid, signal.SIGCONT))
    timer.start()
    ending(worker)
    timer.join()
    worker.close()
    reads = [record for record in TrialReader(tmp_path).records() if record.kind == Kind.READ]
    worst = max(reads, key=lambda record: record.since_empty_ns)
    assert 450_000_000 < worst.since_empty_ns < 5_000_000_000
    assert worst.delay_ns < worst.since_empty_ns
    assert sorted(record.since_empty_ns for record in reads)[len(reads) // 2] < 50_000_000
    (row,) = rows_of(tmp_path)
    assert row.outcome == "ok" and row.output_events == 120
