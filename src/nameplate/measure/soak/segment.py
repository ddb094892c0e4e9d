"""What one segment of a soak comes to: one process of the client, from its first request to its last evidence."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from nameplate.contract.contract import Contract
from nameplate.contract.identity import Identity, IdentityChange
from nameplate.contract.plan import TrialPlan
from nameplate.evidence.header import Clock, ClockPair
from nameplate.measure.rates import Rate
from nameplate.measure.soak.window import Spread, WindowResult
from nameplate.statistics.sketch import SketchState
from nameplate.verdict.soak import SloCount

SEGMENT_VERSION = 1

Fate = Literal["queued", "accepted", "decoding"]


class Counts(Struct, frozen=True, kw_only=True):
    """Count measured requests by what became of them.

    sent = ok + failed + cancelled + unfinished. Indices are given away in order, so how many were is known without
    them: `untraced` indices below the highest have neither a row nor a record of a send, which only a killed process
    can leave, of its last second. `failed_by` is by the gate that each counts under, `outcomes` by the row's own word.
    `recovered` ended, but their rows were lost with the process and were rebuilt from raw reads. `never_sent` were due
    and had not been sent when the process ended. `duplicates` are further rows of an index that already had one: there
    must be none. `broken` counts answers that break the contract, by the gate's name.
    """

    sent: int = 0
    ok: int = 0
    failed: int = 0
    cancelled: int = 0
    unfinished: int = 0
    failed_by: dict[str, int] = {}
    outcomes: dict[str, int] = {}
    recovered: int = 0
    never_sent: int = 0
    duplicates: int = 0
    untraced: int = 0
    broken: dict[str, int] = {}

    @property
    def open(self) -> int:
        """Count those that were left when observation ended: cut by us, or alive when we were killed."""
        return self.cancelled + self.unfinished

    @property
    def balanced(self) -> bool:
        return self.sent == self.ok + self.failed + self.cancelled + self.unfinished and not self.duplicates


class Tokens(Struct, frozen=True, kw_only=True):
    """Sum up the tokens of measured requests: those of ok ones, and what others got before they were cut."""

    input_ok: int = 0
    output_ok: int = 0
    output_partial: int = 0
    cached_ok: int | None = None
    estimated: bool = False


class Unfinished(Struct, frozen=True, kw_only=True):
    """Name one request that was left when observation ended: cut by our own client, or alive when that was killed.

    `fate` is how far it had come: `queued` (not a byte of an answer: in the server's queue or in prefill, and only the
    server could tell which), `accepted` (the answer's head had come, but no output), `decoding` (output was coming).
    `waited_ns` is from its send to `watched_until_ns`. `tokens` so far are `counted` by the server or are output
    events; null where the bytes were not kept (`bytes_kept`), and then its fate is at least the one named. Where it
    was read off the wire's history, `reads` and `wire_bytes` are how often and how much of an answer came, kept or
    not. `rebuilt` says that this was read off the wire's history, because the process did not live to write a row.
    """

    segment: str
    index: int
    fate: Fate
    outcome: str
    scheduled_ns: int
    sent_ns: int | None
    sent_wall_ns: int | None
    watched_until_ns: int
    waited_ns: int | None
    first_output_ns: int | None = None
    last_output_ns: int | None = None
    last_byte_ns: int | None = None
    reads: int | None = None
    wire_bytes: int | None = None
    tokens: int | None = None
    counted: bool = False
    bytes_kept: bool = True
    rebuilt: bool = False


class ServerAtEnd(Struct, frozen=True, kw_only=True):
    """Hold the server's last gauges before the unfinished were given up: the only evidence for queue against prefill.

    `age_ns` is how long before that the sample was taken.
    """

    t_ns: int
    age_ns: int
    running: int | None
    waiting: int | None
    kv_usage: float | None


class Part(Struct, frozen=True, kw_only=True):
    """Hold one part of a segment: the life of one server process, with its own identity and KV pool.

    `changes` are against the part before it, in this segment or an earlier one. `equivalents_full` is the pool over
    input + output of a request: a planning ratio. Beside it stands what was really resident: `resident_tokens`, the
    mean KV use times the pool, which is `equivalents_resident` full budgets, over a mean of `running` requests.
    """

    segment: str
    number: int
    begin_ns: int
    end_ns: int
    begins: str
    ends: str
    identity: Identity
    changes: tuple[IdentityChange, ...] = ()
    process_start_time_s: float | None = None
    kv_tokens: int | None = None
    full_budget_tokens: int
    equivalents_full: float | None = None
    running: Spread | None = None
    kv_usage: Spread | None = None
    resident_tokens: float | None = None
    equivalents_resident: float | None = None
    tokens_per_running: float | None = None
    ok: int = 0
    failed: int = 0


class Outage(Struct, frozen=True, kw_only=True):
    """Hold one loss of the server: from the last success before it to the first success after it.

    `away_ns` is how long the server was away by the first and last sign of it; `recovery_ns` from the first failure
    (without one: the loss) to the first success after it, null while there was none. `failures` ended between
    the two successes.
    """

    segment: str
    lost_ns: int
    back_ns: int | None
    restarted: bool | None
    sign: str
    away_ns: int | None
    last_success_ns: int | None
    first_failure_ns: int | None
    first_output_ns: int | None
    first_success_ns: int | None
    recovery_ns: int | None
    failures: int
    failed_by: dict[str, int] = {}


class ClockStep(Struct, frozen=True, kw_only=True):
    """Hold one step of the wall clock against the monotonic one, seen between two readings of both."""

    segment: str
    after_ns: int
    before_ns: int
    step_ns: int


class Course(Struct, frozen=True, kw_only=True):
    """Hold one series over the whole segment, thinned to a bounded number of points, for a chart.

    Point i covers samples from `t_ns[i]` on; mean, smallest and largest of them. Times are the segment's own.
    """

    name: str
    unit: str
    t_ns: tuple[int, ...]
    mean: tuple[float, ...]
    min: tuple[float, ...]
    max: tuple[float, ...]


class SegmentResult(Struct, frozen=True, kw_only=True):
    """Hold the measurement of one segment; the text of `result` is the format.

    `sealed` says that its manifest stands, `ended` that its load came to its end in order; `ended_by` says why nothing
    more was submitted (`soak_events.EndReason`). `submitted_ns` to `submit_ended_ns` is the submission, `drained_ns`
    the drain's end, `opening_ended_ns` the last end of the requests that started together, `observed_ns` the last
    moment that evidence speaks of; the time axis is cut into steps of `step_ns`. `latencies` are sketches of all
    measured requests, open and failed ones included, by metric. `torn` are sentences about tails that were lost with a
    process, `damage` about evidence that contradicts itself.
    """

    version: int = SEGMENT_VERSION
    segment: str
    plan: TrialPlan
    contract: Contract
    clock: Clock
    tool_version: str
    started: ClockPair
    sealed: bool
    ended: bool
    ended_by: str | None
    submitted_ns: int
    submit_ended_ns: int | None
    drained_ns: int | None
    opening_ended_ns: int | None
    observed_ns: int
    step_ns: int
    window_ns: int
    counts: Counts
    tokens: Tokens
    rates: tuple[Rate, ...]
    latencies: dict[str, SketchState]
    slos: tuple[SloCount, ...]
    windows: tuple[WindowResult, ...]
    courses: tuple[Course, ...]
    parts: tuple[Part, ...]
    outages: tuple[Outage, ...]
    unfinished: tuple[Unfinished, ...]
    server_at_end: ServerAtEnd | None
    clock_steps: tuple[ClockStep, ...]
    lateness_budget_ns: int
    torn: tuple[str, ...]
    damage: tuple[str, ...]

    @property
    def began_wall_ns(self) -> int:
        """Return when submission began, by the wall clock as it was read at the segment's start."""
        return self.submitted_ns - self.started.monotonic_ns + self.started.wall_ns

    @property
    def observed_wall_ns(self) -> int:
        """Return the last moment that evidence speaks of, by the same clock."""
        return self.observed_ns - self.started.monotonic_ns + self.started.wall_ns
