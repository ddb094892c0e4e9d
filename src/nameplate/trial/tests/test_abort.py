"""What a load that was cut does to requests which the server still holds."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from nameplate.contract.plan import Hold, TrialPlan
from nameplate.contract.shape import Shape
from nameplate.engines.adapter import FlushReply
from nameplate.engines.state import ServerState
from nameplate.trial.draining import abort_what_goes_on

S = 10**9


class StillBusy:
    """Stand for a server that holds requests until it is told to abort them."""

    table = object()

    def __init__(self, held: int) -> None:
        self.held = held
        self.aborts = 0
        self.now_ns = 0
        self.clock = SimpleNamespace(now_ns=lambda: self.now_ns, sleep_ns=self.sleep)

    def sleep(self, ns: int) -> None:
        self.now_ns += ns

    def state(self) -> ServerState:
        return ServerState(t_ns=self.now_ns, running=min(self.held, 2), waiting=max(0, self.held - 2))

    def abort_all(self) -> FlushReply:
        self.aborts += 1
        return FlushReply(True, True, "aborted")


@pytest.mark.parametrize(("held", "aborts"), [(0, 0), (1, 1), (4, 1), (5, 0)])
def test_only_what_can_be_ours_is_aborted(held: int, aborts: int) -> None:
    """A server that goes on after our cut is told to abort all, unless it holds more than ours could be."""
    server: Any = StillBusy(held)
    hold = Hold(window_ns=S, stable_ns=S, ready_ns=S)
    reply = abort_what_goes_on(server, TrialPlan("t", "decode", Shape(8, 8), 4, 4, 0, hold=hold))
    assert server.aborts == aborts
    assert (reply is None) == (not held) and (reply is None or bool(reply.accepted) == bool(aborts))
