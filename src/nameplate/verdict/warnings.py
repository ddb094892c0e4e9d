"""What a plate or a trial warns about: a closed list, each with what, why and what to try."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from msgspec import Struct

from nameplate.contract.contract import Contract
from nameplate.contract.levels import Levels
from nameplate.contract.quantity import format_duration
from nameplate.verdict.boundary import Boundary
from nameplate.verdict.level import LevelStatus

# A median that grew by less than this while the judged percentile grew by more than that hides the queue.
FLAT_GROWTH = 1.10
CLIMB_GROWTH = 1.50

# Smaller differences of throughput between two levels are not called a rise.
RISE = 1.02


class Code(StrEnum):
    """Name a warning."""

    flat_median = "flat_median"
    throughput_rising = "throughput_rising"
    e2e_without_gate = "e2e_without_gate"
    unsupported_percentile = "unsupported_percentile"
    not_portable = "not_portable"
    cold_not_observed = "cold_not_observed"
    tokens_estimated = "tokens_estimated"
    above_running_limit = "above_running_limit"
    pass_above_fail = "pass_above_fail"
    prompt_length_off = "prompt_length_off"
    silent_tail = "silent_tail"
    looping = "looping"
    queue_rises = "queue_rises"
    latency_drifts = "latency_drifts"
    stalled = "stalled"
    unverified_gate = "unverified_gate"
    alternatives = "alternatives"


class Warned(Struct, frozen=True):
    """Hold one warning as sentences: what was seen, why it matters, what to try."""

    code: Code
    what: str
    why: str
    hint: str


class LevelPoint(Struct, frozen=True):
    """Hold one level's medians over its trials: TTFT-like latencies in nanoseconds, output tokens a second."""

    level: int
    p50_ns: float | None
    judged_ns: float | None
    output_tokens_per_s: float | None


def flat_median(metric: str, percent: float, points: Sequence[LevelPoint], levels: Levels) -> Warned | None:
    """Warn where the median stays flat from the lowest to the highest level while the judged percentile climbs."""
    known = sorted(
        (p.level, p.p50_ns, p.judged_ns) for p in points if p.p50_ns is not None and p.judged_ns is not None
    )
    if len(known) < 2:
        return None
    (low, p50_low, judged_low), (high, p50_high, judged_high) = known[0], known[-1]
    if p50_high > FLAT_GROWTH * p50_low or judged_high < CLIMB_GROWTH * judged_low:
        return None
    return Warned(
        Code.flat_median,
        f"From {levels.name(low)} to {levels.name(high)} the median {metric} stays at {format_duration(p50_high)} "
        f"while p{percent:g} climbs from {format_duration(judged_low)} to {format_duration(judged_high)}.",
        "A chart of medians looks healthy exactly while capacity disappears in the tail.",
        f"Watch p{percent:g} and the queue in operation, not the median.",
    )


def throughput_rising(boundary: Boundary, points: Sequence[LevelPoint], levels: Levels) -> Warned | None:
    """Warn where the failing level still produces more tokens a second than the passing one."""
    rate = {p.level: p.output_tokens_per_s for p in points}
    if boundary.pass_level is None or boundary.fail_level is None:
        return None
    passing, failing = rate.get(boundary.pass_level), rate.get(boundary.fail_level)
    if passing is None or failing is None or failing < RISE * passing:
        return None
    return Warned(
        Code.throughput_rising,
        f"Throughput still rises past the limit: {passing:.1f} tokens/s at "
        f"{levels.name(boundary.pass_level)}, {failing:.1f} at {levels.name(boundary.fail_level)}.",
        "A search for the highest throughput would choose a level that breaks the SLO.",
        f"Admit by {levels.admit_by}, not by tokens a second.",
    )


def e2e_without_gate(contract: Contract) -> Warned | None:
    """Warn where no SLO bounds the whole answer."""
    if any(slo.metric == "e2e" for slo in contract.slos):
        return None
    return Warned(
        Code.e2e_without_gate,
        "No SLO bounds the end-to-end latency.",
        "The rated level may answer first tokens in time and still finish answers arbitrarily late.",
        'Add one if it matters to you, e.g. --slo "e2e p95 < 60s".',
    )


def pass_above_fail(judged: Sequence[tuple[int, LevelStatus]], levels: Levels) -> Warned | None:
    """Warn where a level passed above one that did not."""
    bad = [level for level, status in judged if status in ("fail", "noisy")]
    above = [level for level, status in judged if status == "pass" and bad and level > min(bad)]
    if not above:
        return None
    return Warned(
        Code.pass_above_fail,
        f"{levels.name(max(above))} passed although {levels.name(min(bad))} did not.",
        "The boundary is not sharp here; the rated number stays below every level that did not pass.",
        "Raise --requests, or look for what differs between the levels (graph sizes, batch limits).",
    )


def above_running_limit(concurrency: int, running_limit: int | None) -> Warned | None:
    """Warn where a level is above what the server runs at once; it still counts, because waiting is included."""
    if running_limit is None or concurrency <= running_limit:
        return None
    return Warned(
        Code.above_running_limit,
        f"C={concurrency} is above the {running_limit} requests that the server runs at once.",
        "The rest waits in its queue, and that time is part of the TTFT.",
        "Nothing, if this is meant: client concurrency includes waiting requests.",
    )


def queue_rises(change: float) -> Warned:
    """Warn where the requests outstanding in an open loop rise on and on."""
    return Warned(
        Code.queue_rises,
        f"The outstanding requests rose by {change:.1f} over the measured part.",
        "The server does not keep up with this rate: a longer run has higher latencies, without bound.",
        "Measure a lower rate, or more requests.",
    )


def latency_drifts(thirds_ns: tuple[float, float, float]) -> Warned:
    """Warn where the TTFT from schedule differs between the thirds of an open loop."""
    said = ", ".join(format_duration(value) for value in thirds_ns)
    return Warned(
        Code.latency_drifts,
        f"The TTFT from schedule is {said} in the three parts of the trial (medians of means).",
        "Its percentiles belong to no steady state.",
        "Measure more requests, until the parts agree, or a lower rate.",
    )


def stalled(count: int, longest_ns: int, after_ns: int, waited: int, sent: int, ended: bool) -> Warned:
    """Warn where nothing came from the server for a long time while requests waited; of the longest such time."""
    meanwhile = f", {sent} of them sent meanwhile" if sent else ""
    others = f" So it was {count} times in all." if count > 1 else ""
    lasted = "" if ended else " It lasted to the end of the trial."
    return Warned(
        Code.stalled,
        f"Nothing came from the server for {format_duration(longest_ns)}, from {format_duration(after_ns)} after the "
        f"first request on, while {waited} requests waited{meanwhile}.{lasted}{others}",
        "The server, or what lies between, stood still: latencies of that time measure the stall and not the load.",
        "Look what happened then: the server's log, its host's memory and disk, the network.",
    )


def not_portable(missing: Sequence[str]) -> Warned | None:
    """Warn where facts are unknown without which the number belongs to this server alone."""
    if not missing:
        return None
    return Warned(
        Code.not_portable,
        f"Not portable: unknown are {', '.join(missing)}.",
        "Another machine cannot be compared with this one by what is recorded.",
        "Give them with --fact NAME=VALUE, or the server's own log with --server-log FILE.",
    )


def alternatives(shapes: int) -> Warned | None:
    """Warn where several shapes are rated, that their maxima do not add up."""
    if shapes < 2:
        return None
    return Warned(
        Code.alternatives,
        f"The {shapes} rated numbers are alternatives, not a sum.",
        "Each was measured with its shape alone on the server.",
        "Measure the real mixture before admitting one.",
    )
