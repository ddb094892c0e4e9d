"""The status of one cell of the speed matrix: facts in, one status with its reason out."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct


class CellStatus(StrEnum):
    """Name what became of a planned cell; only `valid` carries a rate."""

    valid = "valid"
    over_capacity = "over_capacity"
    over_limit = "over_limit"
    not_ready = "not_ready"
    underfilled = "underfilled"
    extra_traffic = "extra_traffic"
    looped = "looped"
    client_limited = "client_limited"
    server_error = "server_error"
    skipped = "skipped"
    interrupted = "interrupted"


# A cell may have fewer running than asked, or fewer of our own in flight, in this share of its samples; and so many of
# its streams may fall silent.
UNDERFILLED_SHARE = 0.05
# So many of the streams may wait on average: short answers that start again spend a few percent of their time so.
KEPT_WAITING_SHARE = 0.1
# A pool this full while a claim says that there was room contradicts the claim.
FULL_POOL = 0.9


class CellVerdict(Struct, frozen=True):
    """Hold a cell's status, why it has it, and what else a reader must know (`notes`)."""

    status: CellStatus
    reason: str
    notes: tuple[str, ...] = ()

    @property
    def valid(self) -> bool:
        return self.status is CellStatus.valid


class CellFacts(Struct, frozen=True, kw_only=True):
    """Hold what a cell's status is judged by; None is unknown, never zero.

    `failures` counts requests of ours that failed, and `failure` tells the first. `refused_length` says that the
    server refused the prompt as too long, or read less of it. `saw` is what the readiness gate saw last. Shares are of
    `samples` of the server's gauges within the window; `in_flight_below` is our own share of time. `kv_claim_tokens`
    is what the cell's prompts need by the planned sharing, `kv_held_share` the fullest that the pool was.
    `other_traffic` tells of requests beyond ours where the gauges are not held against the number of streams.
    `starting_share` is the share of the streams' time between a later request's send and its first output.
    `stalled_streams` are those that fell silent while they ran, with none starting again that could hold them up.
    `counted_requests` is set for a load that is counted instead of held.
    """

    streams: int
    interrupted: bool = False
    failures: int = 0
    failure: str = ""
    refused_length: str = ""
    server_changed: str = ""
    damaged: str = ""
    ready: bool = False
    gave_up: str = ""
    saw: str = ""
    saw_running: int | None = None
    window_whole: bool = True
    client_late: str = ""
    samples: int = 0
    below_samples: int = 0
    extra_samples: int = 0
    other_traffic: str = ""
    most_running: int | None = None
    mean_running: float | None = None
    mean_waiting: float | None = None
    starting_share: float | None = None
    in_flight_below: float | None = None
    stalled_streams: int = 0
    judged_streams: int = 0
    looped_streams: int = 0
    loop_limit: float = 0.05
    tokens: float = 0.0
    kv_claim_tokens: int | None = None
    kv_tokens: int | None = None
    kv_held_share: float | None = None
    counted_requests: int | None = None


def judge_cell(facts: CellFacts) -> CellVerdict:
    """Judge one cell that ran; the first condition that is broken gives its status."""
    status, reason = _status(facts)
    return CellVerdict(status, reason)


def _status(facts: CellFacts) -> tuple[CellStatus, str]:
    streams = facts.streams
    if facts.interrupted:
        return CellStatus.interrupted, "the trial was interrupted before its window was over"
    if facts.refused_length:
        return CellStatus.over_limit, facts.refused_length
    if facts.failures:
        return CellStatus.server_error, f"{facts.failures} requests failed, the first: {facts.failure}"
    if facts.server_changed:
        return CellStatus.server_error, f"the server changed during the cell: {facts.server_changed}"
    if facts.damaged:
        return CellStatus.client_limited, f"the evidence is damaged: {facts.damaged}"
    if not facts.ready:
        return _not_ready(facts)
    if not facts.window_whole:
        return CellStatus.interrupted, "the load ended before its window was over"
    if facts.client_late:
        return CellStatus.client_limited, facts.client_late
    # A gauge that is summed over engines can be one ahead for a moment; what stays is somebody else's.
    if facts.extra_samples > 1 or facts.extra_samples == facts.samples > 0:
        return (
            CellStatus.extra_traffic,
            f"{facts.most_running} running of {streams} ours, in {facts.extra_samples} of {facts.samples} samples",
        )
    if facts.other_traffic:
        return CellStatus.extra_traffic, facts.other_traffic
    if facts.samples and facts.below_samples > UNDERFILLED_SHARE * facts.samples:
        return (
            CellStatus.underfilled,
            f"fewer than {streams} running in {facts.below_samples} of {facts.samples} samples",
        )
    if _kept_waiting(facts):
        seen = f"{facts.mean_running:.1f} of {streams} running and {facts.mean_waiting:.1f} waiting"
        return (
            CellStatus.underfilled,
            f"on average {seen}; with a longer --output streams start again less often",
        )
    if facts.in_flight_below is not None and facts.in_flight_below > UNDERFILLED_SHARE:
        return (
            CellStatus.underfilled,
            f"fewer than {streams} of our requests in flight for {facts.in_flight_below:.0%} of the window",
        )
    texts = streams if facts.counted_requests is None else facts.counted_requests
    if facts.looped_streams > facts.loop_limit * texts:
        what = "streams" if facts.counted_requests is None else "answers"
        return (
            CellStatus.looped,
            f"{facts.looped_streams} of {texts} {what} repeated themselves, {facts.loop_limit:.0%} may",
        )
    if facts.tokens and facts.stalled_streams > UNDERFILLED_SHARE * streams:
        return (
            CellStatus.server_error,
            f"{facts.stalled_streams} of {streams} streams fell silent for good; its log may tell why the server hangs",
        )
    if not facts.tokens:
        return CellStatus.server_error, "no output arrived within the window"
    if facts.counted_requests is not None:
        return CellStatus.valid, f"all {facts.counted_requests} requests came to their end"
    return CellStatus.valid, f"{streams} streams over the whole window"


def _kept_waiting(facts: CellFacts) -> bool:
    """Say that the server did not run all at once: with short answers each look alone is excused by restarts."""
    running, waiting, streams = facts.mean_running, facts.mean_waiting, facts.streams
    if running is None or waiting is None:
        return False
    # A few samples can overstate it; our own records of how long streams took to start again do not.
    if facts.starting_share is not None and facts.starting_share <= KEPT_WAITING_SHARE:
        return False
    return waiting > KEPT_WAITING_SHARE * streams and running < (1 - KEPT_WAITING_SHARE) * streams


def _not_ready(facts: CellFacts) -> tuple[CellStatus, str]:
    if facts.saw_running is not None and facts.saw_running > facts.streams:
        return (
            CellStatus.extra_traffic,
            f"{facts.saw_running} running of {facts.streams} ours while the cell waited to be ready: {facts.saw}",
        )
    reason = f"{facts.gave_up or 'the streams were never ready'}: {facts.saw}"
    claim, pool, share = facts.kv_claim_tokens, facts.kv_tokens, facts.kv_held_share
    if claim is not None and pool and share is not None and share >= FULL_POOL and claim < FULL_POOL * pool:
        reason += f"; KV claim contradicted: {claim:,} of {pool:,} tokens by the plan, with the pool {share:.0%} full"
    return CellStatus.not_ready, reason
