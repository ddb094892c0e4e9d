"""How long a trial's load may wait for anything, and how often its server is looked at: a function of what is asked."""

from __future__ import annotations

from msgspec import structs

from nameplate.contract.contract import Contract
from nameplate.contract.deadlines import Deadlines
from nameplate.contract.plan import TrialPlan
from nameplate.trial.ground import SECOND_NS

# The readiness gate needs several looks within its stable time, and a window many for shares of a few percent.
HOLD_SCRAPE_NS = 500_000_000


def deadlines_of(contract: Contract, plan: TrialPlan) -> Deadlines:
    """Return the deadlines of a load: a stream that waits for its turn in a ramp is the readiness gate's business."""
    if plan.hold is None:
        return contract.deadlines
    patience_ns = plan.hold.ready_ns + plan.hold.window_ns
    if plan.hold.arrival is not None:
        patience_ns += plan.hold.arrival.deadline_ns
    first_output_ns = max(contract.deadlines.first_output_ns, patience_ns)
    total_ns = max(contract.deadlines.total_ns, first_output_ns)
    return structs.replace(contract.deadlines, first_output_ns=first_output_ns, total_ns=total_ns)


def scrape_ns(plan: TrialPlan) -> int:
    """Return the time between two samples of the server."""
    if plan.soak is not None:
        return plan.soak.scrape_ns
    return SECOND_NS if plan.hold is None else min(HOLD_SCRAPE_NS, plan.hold.stable_ns // 6)
