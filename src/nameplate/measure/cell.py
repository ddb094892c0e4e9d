"""One decode cell: what held streams produced in their window, and the server's own view of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct, structs

from nameplate.engines.state import ServerSample
from nameplate.evidence.rows import RequestRow
from nameplate.evidence.timeline import Timeline
from nameplate.measure.correctness import range_of
from nameplate.measure.held import Held
from nameplate.measure.kv_claim import KvClaim, claim_of
from nameplate.measure.parts import gaps_of, parts_of, silent_streams
from nameplate.measure.ramp_cache import RampCache, ramp_cache
from nameplate.measure.readiness import Restarts, below, told
from nameplate.measure.server_side import Gauge, delta, gauge_of
from nameplate.measure.trial_evidence import TrialEvidence
from nameplate.measure.window_times import WindowTimes, times_in
from nameplate.measure.windows import TokenCount, Window, longest_without, tokens_inside
from nameplate.statistics.percentile import Distribution, summarise
from nameplate.verdict.facts import PromptRange
from nameplate.verdict.tolerances import UNKNOWN_BLOCK_TOKENS
from nameplate.wire.outcome import Outcome

BEGINS, ENDS = "streams ready", "fixed length after it"
# TTFT is warm where at least this share of every prompt came from the cache, and cold where at most so much did: a
# template's head and a block are a few percent of the shortest prompts.
WARM_SHARE, COLD_SHARE = 0.9, 0.1

# Of the samples in a window, the first and the last such part may serve as the ends of a comparison, up to so many.
EDGE_SHARE = 4
EDGE_SAMPLES = 100
# What is in doubt of every sample, however fast its page came: a counter moves by whole steps of the engine.
STEP_NS = 10_000_000

# Their counter of generated tokens moves when a request ends (their own sources), which says nothing of a window.
COUNT_AT_THE_END = ("sglang", "llama.cpp")

Warmth = Literal["cold", "warm", "partly warm", "unknown"]
# How many tokens a chunk holds where the server does not count along: as in the answers that ended, as the server's own
# counter grew, or one.
EstimatedBy = Literal["answers", "counter", "chunks"]


class CounterView(Struct, frozen=True):
    """Hold the growth of the server's token counter between two samples in the window, and ours between them.

    `doubt_tokens` are those of ours that arrived while one of the two pages was fetched: the server may have counted
    them in it or not.
    """

    begin_ns: int
    end_ns: int
    server_tokens: int
    our_tokens: float
    doubt_tokens: float = 0.0

    @property
    def difference(self) -> float | None:
        """Return (server - ours) / server; None where the server counted nothing."""
        return (self.server_tokens - self.our_tokens) / self.server_tokens if self.server_tokens else None


class Speculation(Struct, frozen=True):
    """Hold what drafts came to between two samples within the window, by the server's counters."""

    drafts: int | None
    draft_tokens: int
    accepted_tokens: int

    @property
    def acceptance(self) -> float | None:
        return self.accepted_tokens / self.draft_tokens if self.draft_tokens else None


class Cell(Struct, frozen=True, kw_only=True):
    """Hold the numbers of one decode cell; latencies in nanoseconds, null is absent and never zero.

    `itl`, `chunk_gaps` and `per_user` are of what arrived within the window: ITL is (last - first event) / tokens after
    the first event of each request's part in it, and a silence at an edge of the window that is longer than every gap
    of the part belongs to the part. A stream of which nothing arrived in it stands in `itl` at its worst and in
    `per_user` as 0. A gap belongs to the window in which it ends; a silence that outlasts the window and every gap of
    its request in it stands in `chunk_gaps` at its worst.

    `ttft`, `second_output` are of the ramp, the first request of each stream; `warmth` says whether their prompts were
    cached, `cached_mean` is the mean by the server's counter. `completed` counts requests that ended well within the
    window, `e2e_per_user` is output tokens / E2E of each. Gauges are over the server's samples in the window.
    `restarts` counts streams that started again within it, `starting_share` is the share of the streams' time between
    such a send and its first output, `prefill_inside` says that some of those were not cached, null where that is not
    known. `stalled_streams` counts those that sent nothing any more well before the window ended, or nothing at all.
    `unseen_ns` is the longest stretch of the window without a sample that tells what runs.
    `estimated_by` says what estimated tokens rest on, `times` are what the server says of requests that it observed to
    queue, prefill and finish within the window.
    """

    streams: int
    window: Window | None
    ready_ns: int | None
    ready_deadline_ns: int | None
    tokens: TokenCount | None = None
    estimated_by: EstimatedBy | None = None
    rate: float | None = None
    itl: Distribution
    chunk_gaps: Distribution
    per_user: Distribution
    tokens_per_chunk: float | None = None
    ttft: Distribution
    second_output: Distribution
    warmth: Warmth = "unknown"
    prompt_tokens: PromptRange | None = None
    cached_tokens: PromptRange | None = None
    cached_mean: float | None = None
    completed: int = 0
    e2e_per_user: Distribution
    output_tokens: int = 0
    in_flight: float | None = None
    running: Gauge | None = None
    waiting: Gauge | None = None
    kv_usage: Gauge | None = None
    samples: int = 0
    scrape_failures: int = 0
    unseen_ns: int | None = None
    queue_share: float | None = None
    below_samples: int = 0
    extra_samples: int = 0
    preemptions: int | None = None
    counter: CounterView | None = None
    speculation: Speculation | None = None
    times: WindowTimes | None = None
    kv: KvClaim | None = None
    restarts: int = 0
    starting_share: float | None = None
    prefill_inside: bool | None = False
    stalled_streams: int = 0
    judged_streams: int = 0
    looped_streams: int = 0


def measure_cell(evidence: TrialEvidence, held: Held | None) -> Cell:
    """Measure one cell from its evidence; without a window only what came before it is known."""
    window = _window(evidence, held)
    measured = evidence.measured
    opening = [row for row in measured if row.phase == "opening"]
    timelines = [t for t in evidence.timelines if t.times_ns]
    streams = evidence.plan.concurrency
    inside = [s for s in evidence.samples if window and window.begin_ns <= s.t_ns < window.end_ns]
    tell, readable = told(inside), [sample for sample in inside if sample.error is None]
    counting = [] if evidence.identity_before.text("engine") in COUNT_AT_THE_END else readable
    totals, basis = _totals(measured, timelines, counting)
    counted = [structs.replace(row, output_tokens=totals[row.index]) for row in measured]
    parts = parts_of(window, timelines, totals, measured) if window else []
    tokens = tokens_inside(window, timelines, totals) if window else None
    restarts = Restarts.of(measured, evidence.ended_ns)
    ended = [row for row in measured if window and _ended_inside(row, window)]
    again = [row for row in measured if row.phase == "steady" and window and _sent_inside(row, window)]
    events = sum(part.events for part in parts)
    silent = silent_streams(streams, measured, parts) if window else 0
    judged, looped = _loops(measured)
    ramp = ramp_cache(evidence)
    return Cell(
        streams=streams,
        window=window,
        ready_ns=held.waited_ns if held and held.begin_ns is not None else None,
        ready_deadline_ns=held.deadline_ns - held.streams_began_ns if held else None,
        tokens=tokens,
        estimated_by=basis if tokens is not None and tokens.estimated else None,
        rate=tokens.tokens * 1e9 / window.length_ns if tokens and window else None,
        itl=summarise((part.itl_ns for part in parts if part.itl_ns is not None), censored=silent),
        chunk_gaps=gaps_of(parts, silent),
        per_user=summarise([*(1e9 / part.itl_ns for part in parts if part.itl_ns), *[0.0] * silent], "1/s"),
        tokens_per_chunk=tokens.tokens / events if tokens and events and not tokens.estimated else None,
        ttft=_since_sent(opening, "first_output_ns"),
        second_output=_since_sent(opening, "second_output_ns"),
        warmth=_warmth(evidence, opening, ramp),
        prompt_tokens=range_of(row.prompt_tokens for row in opening),
        cached_tokens=range_of(row.cached_tokens for row in opening),
        cached_mean=ramp.mean if ramp is not None else None,
        completed=len(ended),
        e2e_per_user=summarise(
            (row.output_tokens * 1e9 / row.e2e_ns for row in ended if row.output_tokens and row.e2e_ns), "1/s"
        ),
        output_tokens=sum(row.output_tokens or 0 for row in measured),
        in_flight=_in_flight(measured, window, evidence.ended_ns),
        running=gauge_of(sample.running for sample in tell),
        waiting=gauge_of(sample.waiting for sample in tell),
        kv_usage=gauge_of(sample.kv_usage_mean for sample in tell),
        samples=len(tell),
        scrape_failures=sum(sample.error is not None for sample in inside),
        unseen_ns=longest_without(window, (sample.t_ns for sample in tell)) if window and tell else None,
        queue_share=_queue_share(tell),
        below_samples=sum(below(s, streams, restarts) for s in tell),
        extra_samples=sum((s.running or 0) > streams for s in tell),
        preemptions=delta(tell[0], tell[-1], "preemptions_total") if len(tell) > 1 else None,
        counter=_counter(counting, timelines, totals),
        speculation=_speculation(readable),
        times=times_in(readable),
        kv=claim_of(evidence, counted, timelines, window, readable),
        restarts=len(again),
        starting_share=_starting_share(measured, window, streams, evidence.ended_ns),
        prefill_inside=_prefill_inside(evidence, again),
        stalled_streams=silent + sum(part.stalled for part in parts),
        judged_streams=judged,
        looped_streams=looped,
    )


def token_totals(rows: Sequence[RequestRow], tokens_an_event: float = 1.0) -> dict[int, int | None]:
    """Return each request's output tokens by index, for those whose events carry no counts of their own.

    A cut request without counts is taken to hold as many tokens an event as the ended ones did on average, and
    `tokens_an_event` where none told.
    """
    counted = [row for row in rows if row.output_tokens_source == "usage" and row.output_events]
    events = sum(row.output_events for row in counted)
    mean = sum(row.output_tokens or 0 for row in counted) / events if events else tokens_an_event
    return {
        row.index: row.output_tokens
        if row.output_tokens_source == "usage"
        else round(mean * row.output_events)
        for row in rows
    }


def _totals(
    rows: Sequence[RequestRow], timelines: Sequence[Timeline], samples: Sequence[ServerSample]
) -> tuple[dict[int, int | None], EstimatedBy]:
    """Return each request's output tokens, and what they rest on where the server does not count along."""
    totals = token_totals(rows)
    if any(row.output_tokens_source == "usage" and row.output_events for row in rows):
        return totals, "answers"
    # With one token an event, ours are the events.
    view = _counter(samples, timelines, totals)
    if view is None or not view.our_tokens or view.server_tokens <= 0:
        return totals, "chunks"
    return token_totals(rows, view.server_tokens / view.our_tokens), "counter"


def warmth_of(rows: Sequence[RequestRow]) -> Warmth:
    """Say whether the prompts of these requests came from the cache, by the server's cached-token counts."""
    known = [
        row.cached_tokens / row.prompt_tokens
        for row in rows
        if row.cached_tokens is not None and row.prompt_tokens
    ]
    return _warmth_of_shares(known)


def _warmth(evidence: TrialEvidence, opening: Sequence[RequestRow], ramp: RampCache | None) -> Warmth:
    """Say it by usage, else by the server's counter over the ramp; requests that were cut never came to their usage."""
    by_usage = warmth_of(opening)
    if by_usage != "unknown" or ramp is None:
        return by_usage
    prompts = [row.prompt_tokens for row in opening if row.prompt_tokens is not None]
    mean = sum(prompts) / len(prompts) if prompts else evidence.plan.shape.input_tokens
    return _warmth_of_shares([ramp.mean / mean]) if mean else by_usage


def warmth_from(cached: PromptRange | None, prompts: PromptRange | None) -> Warmth:
    """Say the same from the ranges of cached and prompt tokens."""
    if cached is None or prompts is None or not prompts.high:
        return "unknown"
    return _warmth_of_shares([cached.low / prompts.high, cached.high / prompts.high])


def _warmth_of_shares(shares: Sequence[float]) -> Warmth:
    if not shares:
        return "unknown"
    if min(shares) >= WARM_SHARE:
        return "warm"
    return "cold" if max(shares) <= COLD_SHARE else "partly warm"


def _window(evidence: TrialEvidence, held: Held | None) -> Window | None:
    if held is None or held.begin_ns is None or held.end_ns is None:
        return None
    return Window(held.begin_ns, held.end_ns, BEGINS, ENDS) if held.end_ns <= evidence.ended_ns else None


def _since_sent(
    rows: Sequence[RequestRow], field: Literal["first_output_ns", "second_output_ns"]
) -> Distribution:
    """Summarise a moment since the send; who was cut before it is censored, an answer without it is no member."""
    known = [
        getattr(r, field) - r.sent_ns for r in rows if getattr(r, field) is not None and r.sent_ns is not None
    ]
    without = sum(getattr(r, field) is None and r.outcome == Outcome.ok for r in rows)
    return summarise(known, censored=len(rows) - len(known) - without)


def _ended_inside(row: RequestRow, window: Window) -> bool:
    return (
        row.outcome == Outcome.ok and row.end_ns is not None and window.begin_ns <= row.end_ns < window.end_ns
    )


def _sent_inside(row: RequestRow, window: Window) -> bool:
    return row.sent_ns is not None and window.begin_ns <= row.sent_ns < window.end_ns


def _in_flight(rows: Sequence[RequestRow], window: Window | None, until_ns: int) -> float | None:
    if window is None:
        return None
    total = 0
    for row in rows:
        if row.sent_ns is not None:
            end = row.end_ns if row.end_ns is not None else until_ns
            total += max(0, min(end, window.end_ns) - max(row.sent_ns, window.begin_ns))
    return total / window.length_ns


def _queue_share(samples: Sequence[ServerSample]) -> float | None:
    waiting = [sample.waiting for sample in samples if sample.waiting is not None]
    return sum(map(bool, waiting)) / len(waiting) if waiting else None


def _counter(
    samples: Sequence[ServerSample], timelines: Sequence[Timeline], tokens_of: dict[int, int | None]
) -> CounterView | None:
    pair = _surest_pair([sample for sample in samples if sample.output_tokens_total is not None])
    grown = delta(*pair, "output_tokens_total") if pair is not None else None
    if pair is None or grown is None:
        return None
    between = Window(pair[0].t_ns, pair[1].t_ns, "an early sample", "a late sample")
    ours = tokens_inside(between, timelines, tokens_of).tokens
    fetches = [
        Window(one.t_ns - (one.scrape_ns or 0), one.t_ns, "page asked for", "page whole") for one in pair
    ]
    doubt = sum(tokens_inside(fetch, timelines, tokens_of).tokens for fetch in fetches)
    return CounterView(between.begin_ns, between.end_ns, grown, ours, doubt)


def _surest_pair(samples: Sequence[ServerSample]) -> tuple[ServerSample, ServerSample] | None:
    """Return an early and a late sample between which the time is known best.

    A page tells of some moment while it was fetched, and a busy server takes hundreds of milliseconds for it.
    """
    few = min(-(-len(samples) // EDGE_SHARE), EDGE_SAMPLES)
    pairs = [(a, b) for a in samples[:few] for b in samples[-few:] if a.t_ns < b.t_ns]

    def doubt(pair: tuple[ServerSample, ServerSample]) -> tuple[float, int]:
        span_ns = pair[1].t_ns - pair[0].t_ns
        return sum((one.scrape_ns or 0) + STEP_NS for one in pair) / span_ns, -span_ns

    return min(pairs, key=doubt) if pairs else None


def _speculation(samples: Sequence[ServerSample]) -> Speculation | None:
    if len(samples) < 2:
        return None
    first, last = samples[0], samples[-1]
    drafted = delta(first, last, "spec_draft_tokens_total")
    accepted = delta(first, last, "spec_accepted_tokens_total")
    if drafted is None or accepted is None:
        return None
    return Speculation(delta(first, last, "spec_drafts_total"), drafted, accepted)


def _starting_share(
    rows: Sequence[RequestRow], window: Window | None, streams: int, until_ns: int
) -> float | None:
    """Return the share of the streams' time in the window between a later request's send and its first output."""
    if window is None:
        return None
    total = 0
    for row in rows:
        if row.phase == "steady" and row.sent_ns is not None:
            ends = (row.first_output_ns, row.end_ns, until_ns)
            end = next(moment for moment in ends if moment is not None)
            total += max(0, min(end, window.end_ns) - max(row.sent_ns, window.begin_ns))
    return total / (streams * window.length_ns)


def _prefill_inside(evidence: TrialEvidence, again: Sequence[RequestRow]) -> bool | None:
    """Say whether streams that started again had to be prefilled anew: by usage, else by whether there is a cache."""
    if not again:
        return False
    known = [row for row in again if row.cached_tokens is not None and row.prompt_tokens is not None]
    if not known:
        caches = evidence.identity_before.value("prefix_caching")
        return None if caches is None else caches is not True
    block = evidence.identity_before.integer("block_size_tokens") or UNKNOWN_BLOCK_TOKENS
    return any((row.prompt_tokens or 0) - (row.cached_tokens or 0) > 2 * block for row in known)


def _loops(rows: Sequence[RequestRow]) -> tuple[int, int]:
    """Count the streams with a text that is long enough to judge, and those of which one looped."""
    judged, looped = set(), set()
    for row in rows:
        if row.loop is not None:
            looped.add(row.slot)
        if row.long_enough_to_loop:
            judged.add(row.slot)
    return len(judged | looped), len(looped)
