"""A soak over real sockets: the server, the load or the whole client is killed, and what was written stands."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from nameplate.contract.errors import ClientError
from nameplate.evidence import layout
from nameplate.evidence.reader import TrialReader
from nameplate.measure.from_disk import ENDED, INTERRUPTED
from nameplate.sim.process import SimProcess, running
from nameplate.trial.tests.soaks import SECOND_NS as S
from nameplate.trial.tests.soaks import live
from nameplate.trial.tests.test_open_loop_live import load_of

pytestmark = pytest.mark.live


@pytest.fixture(scope="module")
def server() -> Iterator[SimProcess]:
    with running("demo") as process:
        yield process


def wait_for(what: Callable[[], object], timeout_s: float = 30.0) -> None:
    """Wait until something holds."""
    until = time.monotonic() + timeout_s
    while not what():
        assert time.monotonic() < until
        time.sleep(0.02)


def has_rows(directory: Path) -> bool:
    path = directory / layout.REQUESTS
    return path.exists() and path.stat().st_size > 0


@pytest.mark.parametrize("workers", [1, 2])
def test_at_the_outstanding_limit_every_worker_drains(
    tmp_path: Path, server: SimProcess, workers: int
) -> None:
    """The first that comes to its share ends the submission of all, and nothing that is out is cut off."""
    options = {"seconds": 60, "rate": 40.0, "limit": 12, "shape": "64/200", "workers": workers}
    run = live(tmp_path / "s", server.url, **options).carry()
    assert run.entry("submit_ended").detail == {"reason": "outstanding_limit"}
    assert run.entry("drain_ended").detail == {"cancelled": 0}
    rows = run.reader.rows()
    assert len(rows) >= 12 // workers and {row.outcome for row in rows} == {"ok"}


def test_a_server_that_comes_back_is_used_again(tmp_path: Path) -> None:
    """Its restart is in the journal with both sides of the gap, and requests succeed before and after."""
    with running("demo", "--fault", "restart:1.5@60") as server:
        run = live(tmp_path / "s", server.url, seconds=5, concurrency=4).carry()
    lost, back = run.entry("server_lost"), run.entry("server_back")
    assert back.t_ns - lost.t_ns > S and back.detail["restarted"] is True
    rows = run.reader.rows()
    for side in (
        [row for row in rows if (row.end_ns or 0) < lost.t_ns],
        [row for row in rows if row.scheduled_ns > back.t_ns],
    ):
        assert side and {row.outcome for row in side} == {"ok"}
    assert run.entry("submit_ended").detail == {"reason": "duration"} and run.journal(ENDED)
    load, parent = run.samples("load"), run.samples("parent")
    assert len(load) >= 4 and len(parent) >= 4
    # Both clocks are read together by both processes, so that a step of one shows, and a late report does not.
    offsets = [(sample.wall_ns or 0) - sample.t_ns for sample in (*load, *parent)]
    assert max(offsets) - min(offsets) < S // 50


def test_a_load_process_that_is_killed_ends_the_segment_by_name(tmp_path: Path, server: SimProcess) -> None:
    """The parent says so; rows written until then are whole, and what was in flight has no row and no end."""
    run = live(tmp_path / "s", server.url, seconds=60, concurrency=4)

    def kill() -> None:
        pid = load_of(os.getpid())
        wait_for(lambda: has_rows(run.directory))
        os.kill(pid, signal.SIGKILL)

    threading.Thread(target=kill, daemon=True).start()
    with pytest.raises(ClientError, match="died with status -9"):
        run.carry()
    assert run.journal("submit_began") and not run.journal("submit_ended") and not run.journal(ENDED)
    assert "died" in run.entry(INTERRUPTED).detail["error"]
    assert len(run.reader.rows()) > 10


def test_a_client_that_is_killed_leaves_no_load_behind(tmp_path: Path, server: SimProcess) -> None:
    """Its load process notices the closed pipe, cancels what is in flight and writes that down."""
    directory = tmp_path / "s"
    script = (
        "import sys; from pathlib import Path; from nameplate.trial.tests.soaks import live;"
        "live(Path(sys.argv[1]), sys.argv[2], seconds=60, concurrency=4, shape='64/200').carry()"
    )
    client = subprocess.Popen(
        [sys.executable, "-c", script, str(directory), server.url], start_new_session=True
    )
    try:
        load = load_of(client.pid)
        wait_for(lambda: has_rows(directory))
    finally:
        client.kill()
        client.wait()
    wait_for(lambda: not Path(f"/proc/{load}").exists())
    reader = TrialReader(directory)
    rows = reader.rows()
    assert [row.outcome for row in rows].count("cancelled") == 4 and not reader.torn
    assert [row.index for row in rows] == list(range(len(rows)))
    assert any(row.output_events for row in rows if row.outcome == "cancelled")
