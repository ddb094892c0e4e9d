"""After the load: what still runs for connections that we closed is stopped, and the server must still be there."""

from __future__ import annotations

from nameplate.contract.errors import ServerError
from nameplate.contract.plan import TrialPlan
from nameplate.engines.adapter import Adapter, FlushReply
from nameplate.engines.clock import Clock
from nameplate.engines.idle import wait_idle

# A server that recovers from a load may miss one health check.
LOST_TRIES = 5
LOST_INTERVAL_NS = 10**9
# Engines that notice a closed connection do so within a step or two.
ABORT_AFTER_NS = 3 * 10**9


def abort_what_goes_on(adapter: Adapter, plan: TrialPlan) -> FlushReply | None:
    """Have an engine stop what it still generates for connections that we closed, where it can be told to.

    It stops everything that it holds, so it is not told to where that is more than ours. None where nothing goes on.
    """
    idle = wait_idle(adapter, limit_ns=ABORT_AFTER_NS)
    if idle.status != "busy":
        return None
    hold = plan.hold
    ours = plan.concurrency + (hold is not None and hold.arrival is not None)
    held = (idle.running or 0) + (idle.waiting or 0)
    if held > ours:
        return FlushReply(
            None, False, f"not asked for: {held} requests are held, and at most {ours} are ours"
        )
    return adapter.abort_all()


def still_there(adapter: Adapter, clock: Clock) -> bool:
    """Say whether the server answers its health check, asked a few times."""
    for tried in range(LOST_TRIES):
        if adapter.healthy():
            return True
        if tried + 1 < LOST_TRIES:
            clock.sleep_ns(LOST_INTERVAL_NS)
    return False


def require_server(adapter: Adapter, clock: Clock) -> None:
    """Raise ServerError where the server is gone after the load: what failed then is no verdict on its capacity."""
    if not still_there(adapter, clock):
        raise ServerError(
            f"{adapter.target.url} was lost during the trial: it no longer answers its health check.",
            why="What failed then says nothing of the load that it can take.",
            hint="See the server's log. What was measured is on disk; a study goes on with --resume.",
        )
