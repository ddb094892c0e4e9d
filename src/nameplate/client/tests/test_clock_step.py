"""A wall clock that is stepped while a load runs: arrival times stay those of the monotonic clock."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from nameplate.client import loop as loop_module
from nameplate.client.connection import USER_STAMPED, Connection
from nameplate.client.tests.orders import BODY, order_of, plan_of
from nameplate.client.tests.runs import Run, outcomes
from nameplate.client.tests.servers import keep_alive, serving
from nameplate.evidence.records import Kind

pytestmark = pytest.mark.live

HOUR_NS = 3600 * 10**9


@pytest.mark.skipif(sys.platform != "linux", reason="only there the kernel stamps what it receives")
@pytest.mark.parametrize("step_ns", [HOUR_NS, -HOUR_NS, 5_000_000])
def test_a_step_of_the_wall_clock_moves_no_arrival(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step_ns: int
) -> None:
    """Stamps of the pass in which the clock moved are not used; no others are lost, and none is off by the step."""
    world = SimpleNamespace(step_ns=0)
    receive = Connection.receive

    def stepped(connection: Connection) -> tuple[bytes, int]:
        data, stamp_ns = receive(connection)
        return data, stamp_ns if stamp_ns == USER_STAMPED else stamp_ns + world.step_ns

    def wall() -> int:
        return time.time_ns() + world.step_ns  # type: ignore[no-any-return]

    monkeypatch.setattr(Connection, "receive", stepped)
    monkeypatch.setattr(loop_module, "time", SimpleNamespace(monotonic_ns=time.monotonic_ns, time_ns=wall))
    with serving(keep_alive) as server:
        one = Run(order_of(plan_of(2, 400), server.url, tmp_path, body=BODY))

        def housekeeping() -> None:
            if one.load.agenda.started > 100:
                world.step_ns = step_ns

        monkeypatch.setattr(one, "housekeeping", housekeeping)
        assert outcomes(one.run()) == {"ok": 400}
    assert world.step_ns == step_ns, "the load was over before its clock was stepped"
    reads = [record for record in one.records() if record.kind == Kind.READ]
    assert all(record.delay_ns == USER_STAMPED or 0 <= record.delay_ns < 10**9 for record in reads)
    stamped = sum(record.delay_ns != USER_STAMPED for record in reads)
    if stamped:
        assert stamped > 0.9 * len(reads)


@pytest.mark.skipif(sys.platform != "linux", reason="only there the kernel stamps what it receives")
def test_a_stamp_from_before_a_step_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What waited in its socket while the clock was stepped has a stamp that cannot be: its read's time stands."""
    receive = Connection.receive
    count = 0

    def odd(connection: Connection) -> tuple[bytes, int]:
        nonlocal count
        data, stamp_ns = receive(connection)
        count += 1
        shift = {1: HOUR_NS, 2: -HOUR_NS}.get(count % 10, 0)
        return data, stamp_ns if stamp_ns == USER_STAMPED else stamp_ns + shift

    monkeypatch.setattr(Connection, "receive", odd)
    with serving(keep_alive) as server:
        one = Run(order_of(plan_of(1, 60), server.url, tmp_path, body=BODY))
        assert outcomes(one.run()) == {"ok": 60}
    reads = [record for record in one.records() if record.kind == Kind.READ]
    assert all(record.delay_ns == USER_STAMPED or 0 <= record.delay_ns < 10**9 for record in reads)
    assert any(record.delay_ns == USER_STAMPED for record in reads)
