"""Imported prefill and mixed-prefill entries as rows of ours."""

from __future__ import annotations

from nameplate.contract.matrix import label
from nameplate.exchange.inference_bench.foreign import TOOL, MixedEntry, PrefillEntry, Stretch
from nameplate.measure.mixed import Mixed, Part
from nameplate.measure.prefill import Prefill
from nameplate.measure.speed_result import CellRow, CellValues
from nameplate.measure.windows import Window
from nameplate.verdict.cell import CellStatus
from nameplate.verdict.facts import PromptRange

NS = 10**9
_METHODS = {
    "scout": "the first cold request of the context, sent to warm the cells after it",
    "scout_only": "one cold request",
}


def prefill_row(entry: PrefillEntry) -> CellRow:
    """Return a prefill cell; a rate of zero is how that tool writes that none was measured."""
    known = entry.rate is not None and entry.ttft_s is not None
    notes = []
    if entry.method:
        notes.append(f"{TOOL}'s method: {_METHODS.get(entry.method, entry.method)}")
    if entry.cached_tokens:
        notes.append(f"{entry.cached_tokens:,} prompt tokens were cached, and are counted as prefilled")
    if entry.invalid:
        notes.append(f"its server-side check failed: {entry.invalid}")
    values = CellValues(
        tokens_per_s=entry.rate,
        requests=entry.samples,
        prefill=Prefill(
            samples=(),
            n=entry.samples or 0,
            median=entry.rate,
            ttft_median_ns=entry.ttft_s * NS if entry.ttft_s else None,
            server_s=entry.server_s,
            server_rate=entry.server_rate,
            server_difference=(entry.ttft_s - entry.server_s) / entry.server_s
            if entry.ttft_s and entry.server_s
            else None,
        ),
    )
    counted = entry.prompt_tokens
    return CellRow(
        kind="prefill",
        label=label(entry.context),
        context_tokens=entry.context,
        concurrency=1,
        status=CellStatus.valid if known else CellStatus.server_error,
        reason=_samples(entry.samples) if known else f"no rate was measured{_because(entry.invalid)}",
        notes=tuple(notes),
        prompt_tokens=PromptRange(counted, counted, entry.samples or 1) if counted else None,
        values=values if known else None,
    )


def mixed_row(entry: MixedEntry) -> CellRow:
    """Return a mixed-prefill cell."""
    status, reason = _mixed_status(entry)
    values = CellValues(
        tokens_per_s=entry.before_rate,
        estimated=entry.estimated,
        mixed=Mixed(
            arrival_prompt_tokens=entry.prompt_tokens,
            arrival_cached_tokens=entry.cached_tokens,
            ttft_ns=round(entry.loaded_s * NS) if entry.loaded_s else None,
            before=_part("before", entry.before, "streams decode", "long prompt sent"),
            during=_part("during", entry.during, "long prompt sent", "its first output"),
            after=_part("after", entry.after, "its first output", "fixed length after it"),
            slice_ns=round((entry.slice_s or 1.0) * NS),
            timeline=entry.timeline,
            estimated=entry.estimated,
        ),
        alone_ttft_ns=entry.alone_s * NS if entry.alone_s else None,
        slowdown=entry.slowdown,
    )
    return CellRow(
        kind="mixed",
        label=label(entry.context),
        context_tokens=entry.context,
        concurrency=max(1, entry.streams),
        status=status,
        reason=reason,
        notes=entry.warnings,
        values=values if status is CellStatus.valid else None,
        discarded=values if status is not CellStatus.valid and entry.alone_s else None,
    )


def _mixed_status(entry: MixedEntry) -> tuple[CellStatus, str]:
    if entry.looped or "loop" in entry.state:
        return CellStatus.looped, "a stream repeated the same text"
    if entry.state == "skipped":
        reason = entry.reason or "skipped"
        if "KV cache" in reason:
            return CellStatus.over_capacity, reason
        return (CellStatus.over_limit if "context length" in reason else CellStatus.skipped), reason
    if entry.state != "ok" or entry.errors:
        return CellStatus.server_error, entry.errors[
            0
        ] if entry.errors else f"the tool reports: {entry.state}"
    if entry.loaded_s is None or entry.before_rate is None:
        return CellStatus.server_error, "the long prompt or the streams produced nothing"
    return CellStatus.valid, f"one long prompt beside {entry.streams} streams"


def _part(name: str, stretch: Stretch | None, begins: str, ends: str) -> Part | None:
    if stretch is None:
        return None
    window = Window(round(stretch.start_s * NS), round(stretch.end_s * NS), begins, ends)
    return Part(name, window, stretch.tokens, stretch.rate)


def _samples(count: int | None) -> str:
    return "one sample" if count == 1 else f"{count} samples" if count else "an unknown number of samples"


def _because(why: str) -> str:
    return f": {why}" if why else ""
