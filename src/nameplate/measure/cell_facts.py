"""From evidence to the facts that decide a cell's status, and to the notes that its reader needs."""

from __future__ import annotations

from collections.abc import Sequence

from nameplate.contract.plan import TrialPlan
from nameplate.evidence.rows import RequestRow
from nameplate.measure.cell import Cell, EstimatedBy
from nameplate.measure.held import Held
from nameplate.measure.prefill import Prefill
from nameplate.measure.trial_evidence import TrialEvidence
from nameplate.verdict.cell import CellFacts
from nameplate.verdict.gate import TOO_LONG, Gate, GateResult
from nameplate.verdict.tolerances import prompt_length
from nameplate.wire.outcome import Outcome

_CUT = (Outcome.cancelled, Outcome.unfinished)
# What the server held may differ by this share from the claim before a note says so: blocks, and tokens in flight.
KV_TOLERANCE = 0.15
COUNTER_TOLERANCE = 0.02
# A page that told nothing for so much of the window does not speak for the whole of it.
UNSEEN_SHARE = 0.25
# Half of the gaps shorter than this share of the mean time a chunk: what was sent one by one came in bunches.
BUNCHED_SHARE = 0.05
_ESTIMATED: dict[EstimatedBy, str] = {
    "answers": "tokens estimated: the server does not count along, spread evenly over the chunks",
    "counter": "tokens estimated: no answer that ended told them, so as many a chunk as the server's own counter says",
    "chunks": "tokens estimated: one a chunk, for nothing tells how many a chunk holds; there may be several",
}
_NOTED = (
    Gate.input_length,
    Gate.unique_prompts,
    Gate.output_length,
    Gate.finish_reason,
    Gate.server_counters,
)


def cell_facts(
    evidence: TrialEvidence, cell: Cell, held: Held | None, gates: Sequence[GateResult]
) -> CellFacts:
    """Collect the facts of a held load."""
    plan = evidence.plan
    assert plan.hold is not None
    window, failed = cell.window, _failed(evidence.rows)
    share = None
    if window is not None and cell.in_flight is not None:
        share = max(0.0, 1 - cell.in_flight / cell.streams)
    return CellFacts(
        streams=cell.streams,
        interrupted=evidence.interrupted,
        failures=len(failed),
        failure=_first(failed),
        refused_length=refused_length(evidence.rows, plan),
        server_changed=_broken(gates, Gate.identity),
        damaged=_broken(gates, Gate.evidence),
        ready=held is not None and held.begin_ns is not None,
        gave_up=(held.gave_up or "") if held else "",
        saw=str(held.saw) if held else "the load ended before anything was seen",
        saw_running=held.saw.running if held else None,
        window_whole=window is not None or plan.hold.arrival is not None,
        client_late=_broken(gates, Gate.client_lateness),
        samples=cell.samples,
        below_samples=cell.below_samples,
        extra_samples=cell.extra_samples,
        # With an arrival there is no fixed window to look at the gauges in.
        other_traffic=_broken(gates, Gate.no_other_traffic) if plan.hold.arrival is not None else "",
        most_running=round(cell.running.max) if cell.running else None,
        mean_running=cell.running.mean if cell.running else None,
        mean_waiting=cell.waiting.mean if cell.waiting else None,
        starting_share=cell.starting_share,
        in_flight_below=share,
        # What starts again is prefilled before it produces, and holds up the others meanwhile.
        stalled_streams=0 if cell.restarts or plan.hold.arrival is not None else cell.stalled_streams,
        judged_streams=cell.judged_streams,
        looped_streams=cell.looped_streams,
        loop_limit=plan.hold.loop_limit,
        tokens=cell.tokens.tokens if cell.tokens else 1.0 if plan.hold.arrival is not None else 0.0,
        kv_claim_tokens=cell.kv.prompt_tokens if cell.kv else None,
        kv_tokens=cell.kv.pool_tokens if cell.kv else None,
        kv_held_share=cell.kv.held_share_max if cell.kv else None,
    )


def counted_facts(evidence: TrialEvidence, gates: Sequence[GateResult], prefill: Prefill | None) -> CellFacts:
    """Collect the facts of a counted load: prefill samples, a burst, or a number of requests."""
    plan, matrix = evidence.plan, evidence.contract.speed
    ok, failed = sum(row.outcome == Outcome.ok for row in evidence.measured), _failed(evidence.rows)
    samples = prefill.n if prefill is not None else ok
    return CellFacts(
        streams=plan.concurrency,
        interrupted=evidence.interrupted,
        failures=len(failed),
        failure=_first(failed),
        refused_length=refused_length(evidence.rows, plan),
        server_changed=_broken(gates, Gate.identity),
        damaged=_broken(gates, Gate.evidence),
        ready=True,
        client_late=_broken(gates, Gate.client_lateness),
        other_traffic=_broken(gates, Gate.no_other_traffic),
        looped_streams=sum(row.loop is not None for row in evidence.measured if row.outcome == Outcome.ok),
        loop_limit=matrix.loop_limit if matrix is not None else 1.0,
        tokens=float(samples),
        counted_requests=samples,
    )


def refused_length(rows: Sequence[RequestRow], plan: TrialPlan) -> str:
    """Say that the server refused prompts as too long, or read less than it was sent; empty where it did not."""
    cut = []
    for row in rows:
        asked, counted = _asked(row, plan), row.prompt_tokens
        if row.outcome == Outcome.http_error and row.http_status in TOO_LONG:
            words = row.error or f"HTTP {row.http_status}"
            return f"the server refused a prompt of {asked:,} tokens: {words}"
        short = row.phase != "warmup" and counted is not None and counted < asked
        if short and counted is not None and prompt_length(asked, counted) == "wrong":
            cut.append(f"the server read {counted:,} of {asked:,} prompt tokens")
    return cut[0] if cut else ""


def _asked(row: RequestRow, plan: TrialPlan) -> int:
    if row.phase == "arrival" and plan.hold is not None and plan.hold.arrival is not None:
        return plan.hold.arrival.shape.input_tokens
    return plan.shape.input_tokens


def cell_notes(cell: Cell, gates: Sequence[GateResult], *, looped: bool = False) -> tuple[str, ...]:
    """Say what else a reader of a cell must know; that it `looped` stands in its reason."""
    notes = []
    if cell.tokens is not None and cell.tokens.estimated:
        notes.append(_ESTIMATED[cell.estimated_by or "answers"])
    notes += _bunched(cell)
    if cell.itl.censored:
        notes.append(f"{cell.itl.censored} of {cell.streams} streams sent nothing within the window")
    stalled = cell.stalled_streams - cell.itl.censored
    if stalled > 0:
        notes.append(f"{stalled} of {cell.streams} streams fell silent well before the window ended")
    if cell.window is not None and not cell.samples and cell.scrape_failures:
        notes.append(f"unobserved: all {cell.scrape_failures} looks at the server within the window failed")
    elif cell.window is not None and not cell.samples:
        notes.append("the server does not tell what it runs: ready once every stream had produced output")
    if cell.window is not None and (cell.unseen_ns or 0) > UNSEEN_SHARE * cell.window.length_ns:
        unseen_s, whole_s = (cell.unseen_ns or 0) / 1e9, cell.window.length_ns / 1e9
        notes.append(
            f"unobserved for {unseen_s:.1f} s on end of the window's {whole_s:g} s: what the server ran then is unknown"
        )
    if cell.extra_samples == 1:
        notes.append("one sample of the server showed more running than ours")
    if cell.prefill_inside is None:
        notes.append(
            f"prefill inside, perhaps: {cell.restarts} streams started again within the window, and the server does "
            "not tell whether it caches"
        )
    if cell.prefill_inside:
        notes.append("prefill inside: streams that started again within the window were not cached")
    if cell.preemptions:
        notes.append(f"{cell.preemptions} preemptions within the window")
    if cell.looped_streams and not looped:
        notes.append(f"{cell.looped_streams} of {cell.streams} streams looped")
    notes += _contradictions(cell)
    return (*notes, *gate_notes(gates))


def gate_notes(gates: Sequence[GateResult]) -> tuple[str, ...]:
    """Say which conditions were broken that give a cell no status of its own, whatever its kind."""
    cached = _broken(gates, Gate.cached_tokens)
    said = [f"sharing off target: {cached}"] if cached else []
    return (*said, *(words for words in (_broken(gates, gate) for gate in _NOTED) if words))


def _bunched(cell: Cell) -> list[str]:
    """Say that output came in bunches: something on the way held it back, and a window's edges cut whole bunches."""
    gaps = cell.chunk_gaps
    ended = gaps.n - gaps.censored
    if cell.window is None or gaps.p50 is None or not ended:
        return []
    mean_ns = cell.streams * cell.window.length_ns / ended
    if gaps.p50 >= BUNCHED_SHARE * mean_ns:
        return []
    each, half = mean_ns / 1e6, gaps.p50 / 1e6
    said = f"a chunk every {each:.1f} ms of a stream, and half of the gaps below {half:.2f} ms"
    exact = (
        "as a bunch"
        if gaps.max is None
        else f"to some {gaps.max / cell.window.length_ns:.0%}, a bunch in the window"
    )
    return [f"output came in bunches: {said}; gaps and ITL are not the server's, the rate is exact {exact}"]


def _contradictions(cell: Cell) -> list[str]:
    notes = []
    counter = cell.counter
    difference = counter.difference if counter else None
    if counter is not None and difference is not None and abs(difference) > COUNTER_TOLERANCE:
        # A sample may fall between the server's count of a step and our receipt of it, and a slow page anywhere.
        step = cell.streams * max(1.0, cell.tokens_per_chunk or 1.0)
        beyond = abs(counter.server_tokens - counter.our_tokens) > step + counter.doubt_tokens
        notes += [f"the server's own token counter differs by {difference:+.1%}"] * beyond
    if (
        counter is not None
        and not counter.server_tokens
        and counter.our_tokens > counter.doubt_tokens + cell.streams
    ):
        notes.append(
            f"the server's own token counter stood still while {counter.our_tokens:,.0f} tokens of ours arrived: its "
            "metrics page is stale, or counts when a request ends"
        )
    ratio = cell.kv.ratio if cell.kv else None
    if cell.kv is not None and ratio is not None and abs(ratio - 1) > KV_TOLERANCE:
        notes.append(
            f"KV claim contradicted: {cell.kv.claim_tokens:,} tokens by the plan, the server held "
            f"{cell.kv.held_tokens or 0:,.0f}"
        )
    return notes


def _failed(rows: Sequence[RequestRow]) -> list[RequestRow]:
    failed = [row for row in rows if _empty(row) or (row.outcome != Outcome.ok and row.outcome not in _CUT)]
    return sorted(failed, key=lambda row: row.end_ns or row.scheduled_ns)


def _first(failed: Sequence[RequestRow]) -> str:
    if not failed:
        return ""
    if _empty(failed[0]):
        return "an answer without any output"
    return f"{failed[0].outcome}, {failed[0].error or 'no words'}"


def _empty(row: RequestRow) -> bool:
    return row.outcome == Outcome.ok and row.output_events == 0


def _broken(gates: Sequence[GateResult], gate: Gate) -> str:
    return next((g.detail for g in gates if g.gate == gate and g.status == "invalid"), "")
