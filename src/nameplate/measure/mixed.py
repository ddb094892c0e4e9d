"""Mixed prefill: what one long prompt costs the streams that decode beside it, and what they cost it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from nameplate.evidence.rows import RequestRow
from nameplate.evidence.timeline import Timeline
from nameplate.measure.cell import token_totals
from nameplate.measure.held import Held
from nameplate.measure.trial_evidence import TrialEvidence
from nameplate.measure.windows import Window, tokens_an_event, tokens_inside

# Of the timeline: fine enough to see a stall of a chunk of prefill, coarse enough to hold several tokens a stream.
SLICE_NS = 250_000_000


class Part(Struct, frozen=True):
    """Hold the streams' output tokens over one stretch of time."""

    name: str
    window: Window
    tokens: float
    rate: float


class Mixed(Struct, frozen=True, kw_only=True):
    """Hold a mixed-prefill trial: the arrival's TTFT under load, and the streams' rate around it.

    `before` is from the streams' readiness to the arrival's send, `during` from there to its first output, `after` the
    fixed time from then on. `timeline` holds tokens a second of all streams in slices of `slice_ns`, the first one
    beginning with `before`.
    """

    arrival_prompt_tokens: int | None = None
    arrival_cached_tokens: int | None = None
    ttft_ns: int | None = None
    before: Part | None = None
    during: Part | None = None
    after: Part | None = None
    slice_ns: int = SLICE_NS
    timeline: tuple[float, ...] = ()
    estimated: bool = False


def arrival_of(evidence: TrialEvidence) -> RequestRow | None:
    """Return the row of the request that arrived beside the streams."""
    return next((row for row in evidence.rows if row.phase == "arrival"), None)


def measure_mixed(evidence: TrialEvidence, held: Held | None) -> Mixed:
    """Measure a mixed-prefill trial from its evidence."""
    arrival, hold = arrival_of(evidence), evidence.plan.hold
    if arrival is None or hold is None or hold.arrival is None or held is None or held.begin_ns is None:
        return Mixed()
    told = Mixed(
        arrival_prompt_tokens=arrival.prompt_tokens,
        arrival_cached_tokens=arrival.cached_tokens,
        ttft_ns=arrival.ttft_ns,
    )
    sent, first = arrival.sent_ns, arrival.first_output_ns
    if sent is None or first is None or first + hold.arrival.after_ns > evidence.ended_ns:
        return told
    rows = evidence.measured
    timelines = [timeline for timeline in evidence.timelines if timeline.times_ns]
    totals = token_totals(rows)
    estimated = False

    def part(name: str, begin_ns: int, end_ns: int, begins: str, ends: str) -> Part | None:
        nonlocal estimated
        if end_ns <= begin_ns:
            return None
        window = Window(begin_ns, end_ns, begins, ends)
        counted = tokens_inside(window, timelines, totals)
        estimated = estimated or counted.estimated
        return Part(name, window, counted.tokens, counted.tokens * 1e9 / window.length_ns)

    end = first + hold.arrival.after_ns
    before = part("before", held.begin_ns, sent, "streams ready", "long prompt sent")
    during = part("during", sent, first, "long prompt sent", "its first output")
    after = part("after", first, end, "its first output", "fixed length after it")
    return Mixed(
        arrival_prompt_tokens=told.arrival_prompt_tokens,
        arrival_cached_tokens=told.arrival_cached_tokens,
        ttft_ns=told.ttft_ns,
        before=before,
        during=during,
        after=after,
        timeline=_slices(held.begin_ns, end, timelines, totals),
        estimated=estimated,
    )


def _slices(
    begin_ns: int, end_ns: int, timelines: Sequence[Timeline], tokens_of: Mapping[int, int | None]
) -> tuple[float, ...]:
    """Return tokens a second in whole slices from a moment on, in one pass over the events."""
    tokens = [0.0] * max(0, (end_ns - begin_ns) // SLICE_NS)
    for timeline in timelines:
        if timeline.index not in tokens_of:
            continue
        each = tokens_an_event(timeline, tokens_of[timeline.index])
        for at, t_ns in enumerate(timeline.times_ns):
            number = (t_ns - begin_ns) // SLICE_NS
            if 0 <= number < len(tokens):
                tokens[number] += timeline.tokens[at] if timeline.tokens is not None else each
    return tuple(count * 1e9 / SLICE_NS for count in tokens)
