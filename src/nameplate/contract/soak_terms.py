"""The terms of a soak: the load that stays the same for hours, and the limits that it must keep."""

from __future__ import annotations

from msgspec import Struct

from nameplate.contract.arrivals import ArrivalPlan
from nameplate.contract.soak import Soak


class SoakTerms(Struct, frozen=True, kw_only=True):
    """Fix a soak before its first request.

    `soak` holds the whole duration and the whole budget; a segment of a soak that goes on is planned for what is left
    of both. `concurrency`
    requests are in flight in a closed loop; with `arrivals` they are how many may be outstanding. `max_error_rate` is
    the largest share of failed requests that still holds; `max_drift` is the share of its level by which no series may
    ever be worse than it began. None is no limit.
    """

    soak: Soak
    concurrency: int
    arrivals: ArrivalPlan | None = None
    max_error_rate: float | None = None
    max_drift: float | None = None
