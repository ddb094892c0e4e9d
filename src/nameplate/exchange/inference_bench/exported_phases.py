"""Our prefill and mixed-prefill cells as entries of `prefill` and `mixed_prefill`."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from nameplate.measure.mixed import Mixed, Part
from nameplate.measure.speed_result import CellRow, CellValues
from nameplate.verdict.cell import CellStatus

NS = 1e9


class ValidationOut(Struct, frozen=True, kw_only=True):
    """Hold the server's own view of a prefill; 0 and empty are absent there."""

    method: str = ""
    tok_per_sec: float = 0.0
    prefill_seconds: float = 0.0
    prompt_tokens: int = 0
    request_prompt_tokens: int = 0
    cached_tokens: int = 0
    token_source: str = ""
    samples: int = 0
    invalid_reason: str = ""


class PrefillOut(Struct, frozen=True, kw_only=True):
    """Hold an entry of `prefill`."""

    ttft_seconds: float
    prefill_seconds: float
    tok_per_sec: float
    client_ttft_seconds: float
    client_tok_per_sec: float
    prompt_tokens: int
    samples: int
    method: str = "client"
    server_validation: ValidationOut = ValidationOut()
    hardware_summary: dict[str, float] = {}


class StretchOut(Struct, frozen=True):
    """Hold one window of a mixed-prefill entry, relative to the arrival."""

    start_s: float
    end_s: float
    seconds: float
    tokens: float
    tok_s: float


class MixedOut(Struct, frozen=True, kw_only=True):
    """Hold an entry of `mixed_prefill`; null is absent there."""

    context: int
    status: str
    reason: str
    ttft_alone_s: float | None
    ttft_under_load_s: float | None
    slowdown: float | None
    prompt_tokens_alone: int | None
    prompt_tokens_under_load: int | None
    cached_tokens_alone: int | None
    cached_tokens_under_load: int | None
    prefill_tok_s_alone: float | None
    prefill_tok_s_under_load: float | None
    bg_tok_s_before: float | None
    bg_tok_s_during: float | None
    bg_tok_s_after: float | None
    bg_during_vs_before: float | None
    windows: dict[str, StretchOut]
    background: dict[str, int | float | str | None]
    timeline: dict[str, float | list[float]]
    errors: list[str]
    warnings: list[str]
    loop_detected: bool
    loop_diagnostics: list[str] = []
    hardware_summary: dict[str, float] = {}


def prefills_out(rows: Iterable[CellRow]) -> dict[str, PrefillOut]:
    """Return the valid prefill cells; that tool leaves out the others."""
    found = {}
    for row in rows:
        values = row.values
        if values is None or values.prefill is None or not values.tokens_per_s:
            continue
        prefill = values.prefill
        ttft = (prefill.ttft_median_ns or 0.0) / NS
        counted = row.prompt_tokens.high if row.prompt_tokens else row.context_tokens
        found[str(row.context_tokens)] = PrefillOut(
            ttft_seconds=round(ttft, 3),
            prefill_seconds=round(ttft, 3),
            tok_per_sec=float(round(values.tokens_per_s)),
            client_ttft_seconds=round(ttft, 3),
            client_tok_per_sec=float(round(values.tokens_per_s)),
            prompt_tokens=counted,
            samples=prefill.n,
            server_validation=ValidationOut(
                method="prometheus" if prefill.server_s else "",
                tok_per_sec=float(round(prefill.server_rate or 0.0)),
                prefill_seconds=round(prefill.server_s or 0.0, 3),
                prompt_tokens=counted if prefill.server_s else 0,
                samples=prefill.n if prefill.server_s else 0,
            ),
        )
    return found


def mixed_out(rows: Iterable[CellRow]) -> dict[str, MixedOut]:
    """Return the mixed-prefill cells, whatever their status."""
    return {str(row.context_tokens): _mixed(row) for row in rows}


def _mixed(row: CellRow) -> MixedOut:
    values = row.values or row.discarded or CellValues()
    mixed = values.mixed or Mixed()
    status, broken = _state(row)
    parts = {"before": mixed.before, "during": mixed.during, "after": mixed.after}
    origin = mixed.during.window.begin_ns if mixed.during else 0
    rates = {name: part.rate if part else None for name, part in parts.items()}
    before, during = rates["before"] or values.tokens_per_s, rates["during"]
    alone_s = None if values.alone_ttft_ns is None else values.alone_ttft_ns / NS
    loaded_s = None if mixed.ttft_ns is None else mixed.ttft_ns / NS
    tokens = mixed.arrival_prompt_tokens
    first = mixed.before.window.begin_ns - origin if mixed.before else 0
    return MixedOut(
        context=row.context_tokens,
        status=status,
        reason="" if status == "ok" else row.reason,
        ttft_alone_s=alone_s,
        ttft_under_load_s=loaded_s,
        slowdown=values.slowdown,
        prompt_tokens_alone=tokens,
        prompt_tokens_under_load=tokens,
        cached_tokens_alone=None,
        cached_tokens_under_load=mixed.arrival_cached_tokens,
        prefill_tok_s_alone=tokens / alone_s if tokens and alone_s else None,
        prefill_tok_s_under_load=tokens / loaded_s if tokens and loaded_s else None,
        bg_tok_s_before=before,
        bg_tok_s_during=during,
        bg_tok_s_after=rates["after"],
        bg_during_vs_before=during / before if during is not None and before else None,
        windows={name: _stretch(part, origin) for name, part in parts.items() if part is not None},
        background={
            "streams": row.concurrency,
            "streams_decoding_at_arrival": row.concurrency if values.mixed else None,
            "prompt_tokens": None,
            "max_tokens": row.output_tokens,
            "warmup_s": row.ready_s,
            "requests_started": None,
            "requests_completed": None,
            "errors": len(broken),
            "token_source": "chunks" if values.estimated else "usage",
        },
        timeline={
            "bin_seconds": mixed.slice_ns / NS,
            "first_bin_start_s": first / NS,
            "tok_s": list(mixed.timeline),
        },
        errors=broken,
        warnings=list(row.notes),
        loop_detected=row.status is CellStatus.looped,
    )


def _state(row: CellRow) -> tuple[str, list[str]]:
    if row.status is CellStatus.valid:
        return "ok", []
    ran = row.values is not None or row.discarded is not None or row.status is CellStatus.server_error
    return ("error", [row.reason]) if ran else ("skipped", [])


def _stretch(part: Part, origin_ns: int) -> StretchOut:
    window = part.window
    begin, end = (window.begin_ns - origin_ns) / NS, (window.end_ns - origin_ns) / NS
    return StretchOut(begin, end, window.length_ns / NS, part.tokens, part.rate)
