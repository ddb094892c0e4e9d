"""What the journal of a soak tells beside what every trial's does: the events that begin and end its denominators.

=================  ==============================================  ===========================================
`what`             `t_ns`                                          detail
=================  ==============================================  ===========================================
`submit_began`     the first measured request was due              {}
`submit_ended`     nothing was started from this moment on         `SubmitEnded`
`drain_began`      the same moment                                 {}
`drain_ended`      nothing of ours was in flight any more          `DrainEnded`
`server_lost`      the first sign that the server was away         `ServerLost`
`server_back`      it answered again, and told its identity anew   `ServerBack`
`raw_kept`         from here on, less (or all) of raw reads        `RawKept`
=================  ==============================================  ===========================================

All moments are of the trial's monotonic clock. An entry may be written later than the moment it names.
"""

from __future__ import annotations

from typing import Final, Literal

from msgspec import Struct

from nameplate.contract.identity import Identity

SUBMIT_BEGAN: Final = "submit_began"
SUBMIT_ENDED: Final = "submit_ended"
DRAIN_BEGAN: Final = "drain_began"
DRAIN_ENDED: Final = "drain_ended"
SERVER_LOST: Final = "server_lost"
SERVER_BACK: Final = "server_back"
RAW_KEPT: Final = "raw_kept"


# Why nothing more was started: the time was over, a person asked for it, as many requests were unanswered as the plan
# allows, or the load broke off.
EndReason = Literal["duration", "interrupted", "outstanding_limit", "broke_off"]
OUTSTANDING_LIMIT: Final = "outstanding_limit"


class SubmitEnded(Struct, frozen=True):
    """Say why nothing more was started."""

    reason: EndReason


class DrainEnded(Struct, frozen=True):
    """Say how many requests were cancelled at the deadline (or by a person), none if all ended by themselves."""

    cancelled: int


class ServerLost(Struct, frozen=True):
    """Say what was noticed: `failures` of requests, failed `scrapes`, or a `restart` that nothing failed in.

    A restart shows as another process start time, or as counters that fell.
    """

    sign: Literal["failures", "scrapes", "restart"]
    detail: str = ""


class ServerBack(Struct, frozen=True, kw_only=True):
    """Hold what the server said when it was there again.

    `lost_ns` is the moment of the `server_lost` before it, and `restarted` whether it is another process: by its start
    time or its counters; None where it tells neither.
    """

    lost_ns: int
    identity: Identity
    restarted: bool | None = None


class RawKept(Struct, frozen=True, kw_only=True):
    """Say what is kept of requests that start from now on: `all`, one in `sample_every` by index, or `none`.

    `reads_bytes` is how large the compressed raw reads were then, `reason` why less is kept. Of several workers each
    decides for the requests that it starts, by its share of the budget.
    """

    reads: Literal["all", "sample", "none"]
    sample_every: int = 1
    reads_bytes: int
    reason: Literal["budget", "disk"]
    worker: int = 0
