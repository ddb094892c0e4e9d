"""From the trials of a speed study to its result: a row for every planned cell, whatever became of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from nameplate.contract.contract import Contract
from nameplate.contract.identity import Identity, compare
from nameplate.contract.limits import ServerLimits
from nameplate.contract.matrix import CellPlan, Matrix, label, planned_cells
from nameplate.hosts.description import HostDescription
from nameplate.measure.cell import Cell, warmth_from
from nameplate.measure.methodology import methods
from nameplate.measure.prefill import Prefill
from nameplate.measure.result import TrialResult
from nameplate.measure.speed_result import CellRow, CellValues, SpeedResult
from nameplate.verdict.cell import CellStatus, CellVerdict
from nameplate.verdict.cell_plan import preemption_warning
from nameplate.wire.loop import LEAST_CHARS

NOT_RUN = CellVerdict(CellStatus.interrupted, "not run yet")


class About(Struct, frozen=True, kw_only=True):
    """Hold what surrounds a speed study's numbers."""

    tool: str
    identity: Identity
    hosts: tuple[HostDescription, ...] = ()
    launch_command: str | None = None
    note: str | None = None


def build_speed(
    contract: Contract,
    about: About,
    results: Sequence[TrialResult],
    unrun: Mapping[CellPlan, CellVerdict],
    *,
    exit_code: int | None = None,
) -> SpeedResult:
    """Build the result; pure, so that who recomputes the trials gets the same rows."""
    matrix = contract.speed
    assert matrix is not None
    limits = ServerLimits.of(about.identity)
    attempts = _attempts(results)
    alone = {
        result.plan.shape.input_tokens: result.speed.prefill
        for result in results
        if result.plan.role == "prefill"
        and result.speed is not None
        and result.speed.verdict.valid
        and result.speed.prefill is not None
    }
    rows = tuple(
        _row(matrix, about.identity, cell, attempts.get(cell.name, ()), unrun.get(cell, NOT_RUN), alone)
        for cell in planned_cells(matrix)
    )
    return SpeedResult(
        tool=about.tool,
        contract=contract,
        target=contract.target.url,
        model=contract.target.model,
        limits=limits,
        identity=about.identity,
        hosts=about.hosts,
        launch_command=about.launch_command,
        note=about.note,
        rows=rows,
        methodology=methods(matrix),
        warnings=_warnings(results, rows),
        finished=exit_code is not None,
        exit_code=exit_code,
        spent_s=sum(result.elapsed_s for result in results),
    )


def exit_code_of(rows: Iterable[CellRow]) -> int:
    """Return the exit code of a study that came to its end.

    0 where any cell has a rate or none can be run on this server, 4 where cells ran and every one of them is void,
    3 where the time budget left no room for any.
    """
    rows = tuple(rows)
    if any(row.values is not None for row in rows):
        return 0
    if any(row.trials for row in rows):
        return 4
    return 3 if any(row.status is CellStatus.skipped for row in rows) else 0


def _attempts(results: Iterable[TrialResult]) -> dict[str, tuple[TrialResult, ...]]:
    found: dict[str, tuple[TrialResult, ...]] = {}
    for result in sorted(results, key=lambda result: result.plan.attempt):
        found[result.plan.name] = (*found.get(result.plan.name, ()), result)
    return found


def still_looped(earlier: Sequence[TrialResult], result: TrialResult) -> bool:
    """Say that a valid attempt cannot clear its cell of looping: an earlier one looped, and its own texts are short."""
    if result.speed is None or not result.speed.verdict.valid or result.speed.cell is None:
        return False
    looped = [e for e in earlier if e.speed is not None and e.speed.verdict.status is CellStatus.looped]
    return bool(looped) and not result.speed.cell.judged_streams


def _judged(identity: Identity, earlier: Sequence[TrialResult], result: TrialResult) -> CellVerdict | None:
    """Return a trial's verdict; void where it met another server, or cannot clear its cell of looping."""
    if result.speed is None:
        return None
    changed = [str(c) for c in compare(identity, result.identity_before) if c.kind == "changed"]
    if still_looped(earlier, result):
        return CellVerdict(
            CellStatus.looped, "the streams looped, and the texts of the second try are too short to tell"
        )
    if changed and result.speed.verdict.valid:
        return CellVerdict(
            CellStatus.server_error, f"measured on another server than the matrix is of: {'; '.join(changed)}"
        )
    return result.speed.verdict


def _row(
    matrix: Matrix,
    identity: Identity,
    cell: CellPlan,
    attempts: Sequence[TrialResult],
    unrun: CellVerdict,
    alone: Mapping[int, Prefill],
) -> CellRow:
    last = attempts[-1] if attempts else None
    speed = last.speed if last is not None else None
    verdict = (_judged(identity, attempts[:-1], last) if last is not None else None) or unrun
    limits = ServerLimits.of(identity)
    values = _values(cell, last, alone.get(cell.context_tokens)) if last is not None else None
    held = speed.cell if speed is not None else None
    notes = verdict.notes
    # A second attempt that is valid does not make the first one untold: the server may do so again.
    notes += tuple(
        f"tried before, and {earlier.speed.verdict.status.value.replace('_', ' ')}: {earlier.speed.verdict.reason}"
        for earlier in attempts[:-1]
        if earlier.speed is not None
    )
    if cell.kind == "mixed" and values is not None and values.alone_ttft_ns is None:
        notes = (*notes, "no slowdown: the long prompt alone could not be measured")
    warned = preemption_warning(matrix, cell, limits) if last is not None else None
    if warned is not None:
        notes = (*notes, warned)
    return CellRow(
        kind=cell.kind,
        label=label(cell.context_tokens),
        context_tokens=cell.context_tokens,
        concurrency=cell.concurrency,
        output_tokens=last.plan.shape.output_tokens if last is not None else None,
        status=verdict.status,
        reason=verdict.reason,
        notes=notes,
        prompt_tokens=last.measurement.correctness.prompt_tokens if last is not None else None,
        cached_tokens=held.cached_tokens if held else last.facts.cached if last is not None else None,
        cached_mean=held.cached_mean if held is not None else None,
        ready_s=held.ready_ns / 1e9 if held is not None and held.ready_ns is not None else None,
        ready_deadline_s=held.ready_deadline_ns / 1e9
        if held is not None and held.ready_deadline_ns is not None
        else None,
        trials=tuple(result.plan.key for result in attempts),
        values=values if verdict.valid else None,
        discarded=None if verdict.valid else values,
    )


def _values(cell: CellPlan, result: TrialResult, alone: Prefill | None) -> CellValues:
    speed = result.speed
    assert speed is not None
    if cell.kind == "prefill":
        return _prefill_values(result, speed.prefill)
    if cell.kind == "mixed":
        return _mixed_values(result, alone)
    if speed.cell is not None:
        return _cell_values(result, speed.cell)
    return _counted_values(result)


def _prefill_values(result: TrialResult, prefill: Prefill | None) -> CellValues:
    return CellValues(
        tokens_per_s=prefill.median if prefill is not None else None,
        requests=result.measurement.correctness.sent,
        completed=prefill.n if prefill is not None else None,
        ttft=result.measurement.latencies.whole.ttft if prefill is not None and prefill.n else None,
        warmth="cold",
        prefill=prefill,
    )


def _cell_values(result: TrialResult, cell: Cell) -> CellValues:
    tokens, window = cell.tokens, cell.window
    gpu = result.speed.gpu if result.speed is not None else None
    return CellValues(
        tokens_per_s=cell.rate,
        estimated=tokens.estimated if tokens is not None else False,
        window_s=window.length_ns / 1e9 if window is not None else None,
        output_tokens=tokens.tokens if tokens is not None else None,
        requests=result.measurement.correctness.sent,
        completed=cell.completed,
        ttft=cell.ttft,
        warmth=cell.warmth,
        second_output=cell.second_output,
        itl=cell.itl,
        chunk_gaps=cell.chunk_gaps,
        per_user=cell.per_user,
        e2e_per_user=cell.e2e_per_user,
        tokens_per_chunk=cell.tokens_per_chunk,
        speculation=cell.speculation,
        in_flight=cell.in_flight,
        running=cell.running,
        waiting=cell.waiting,
        kv_usage=cell.kv_usage,
        queue_share=cell.queue_share,
        samples=cell.samples,
        preemptions=cell.preemptions,
        counter=cell.counter,
        kv=cell.kv,
        restarts=cell.restarts,
        judged_streams=cell.judged_streams,
        looped_streams=cell.looped_streams,
        gpu=gpu,
        energy_per_token_j=gpu.energy_per_token_j(round(tokens.tokens))
        if gpu is not None and tokens is not None
        else None,
    )


def _counted_values(result: TrialResult) -> CellValues:
    """Return the numbers of a counted load: the whole run, from the first send to the last end."""
    measurement = result.measurement
    whole, rate = measurement.latencies.whole, measurement.rates.tokens_whole
    run, server = measurement.whole_run, measurement.server
    gpu = result.speed.gpu if result.speed is not None else None
    return CellValues(
        tokens_per_s=rate.per_s if rate is not None else None,
        estimated=rate.estimated if rate is not None else False,
        window_s=run.length_ns / 1e9 if run is not None else None,
        output_tokens=rate.counted if rate is not None else None,
        requests=measurement.correctness.sent,
        completed=measurement.correctness.ok,
        ttft=whole.ttft,
        warmth=warmth_from(result.facts.cached, measurement.correctness.prompt_tokens),
        itl=whole.itl,
        chunk_gaps=whole.chunk_gaps,
        per_user=whole.per_user,
        e2e=whole.e2e,
        in_flight=measurement.concurrency.mean_whole_run,
        running=server.running,
        waiting=server.waiting,
        kv_usage=server.kv_usage,
        preemptions=server.preemptions,
        gpu=gpu,
        energy_per_token_j=gpu.energy_per_token_j(round(rate.counted))
        if gpu is not None and rate is not None
        else None,
    )


def _mixed_values(result: TrialResult, alone: Prefill | None) -> CellValues:
    speed = result.speed
    mixed = speed.mixed if speed is not None else None
    cell = speed.cell if speed is not None else None
    alone_ns = alone.ttft_median_ns if alone is not None else None
    under_ns = mixed.ttft_ns if mixed is not None else None
    return CellValues(
        tokens_per_s=mixed.before.rate if mixed is not None and mixed.before is not None else None,
        estimated=mixed.estimated if mixed is not None else False,
        ttft=cell.ttft if cell is not None else None,
        warmth=cell.warmth if cell is not None else None,
        mixed=mixed,
        alone_ttft_ns=alone_ns,
        slowdown=under_ns / alone_ns if under_ns is not None and alone_ns else None,
    )


def _warnings(results: Sequence[TrialResult], rows: Sequence[CellRow]) -> tuple[str, ...]:
    """Say what concerns the whole matrix."""
    said = []
    held = [result.speed.cell for result in results if result.speed and result.speed.cell]
    windows = [cell for cell in held if cell.window is not None]
    if windows and all(not cell.samples for cell in windows):
        said.append(
            "the server does not tell what it runs: neither readiness nor other traffic could be checked by its gauges"
        )
    if windows and all(cell.tokens is not None and cell.tokens.estimated for cell in windows):
        said.append("all token rates are estimated: the server does not count tokens along with its chunks")
    short = [cell for cell in windows if cell.judged_streams < cell.streams]
    if short:
        said.append(
            f"in {len(short)} of {len(windows)} windows some outputs were too short to tell whether the model repeats "
            f"itself: below {LEAST_CHARS:,} characters"
        )
    kinds = {row.status for row in rows}
    if CellStatus.looped in kinds:
        said.append(
            "cells are looped: the model repeated itself, which speculative decoding and caches reward; a higher "
            "--temperature or a larger model may not"
        )
    return tuple(said)
