"""Rates of a counted trial, each named with the events that begin and end its denominator."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from msgspec import Struct

from nameplate.contract.shape import Shape
from nameplate.evidence.rows import RequestRow
from nameplate.evidence.timeline import Timeline
from nameplate.measure.windows import Window, steady, tokens_inside, whole_run
from nameplate.statistics.percentile import Distribution, summarise
from nameplate.wire.outcome import Outcome


class Rate(Struct, frozen=True):
    """Hold one rate: what was counted, over which window, and whether the count is estimated."""

    per_s: float
    counted: float
    window: Window
    of: str
    estimated: bool = False


class Rates(Struct, frozen=True, kw_only=True):
    """Hold a trial's request and output-token rates; null where the window is empty or nothing was counted.

    `*_whole` divide by first sent to last end, `*_steady` by the end of the opening phase to the last start.
    `requests_*` count ok requests, those of the steady window by when they ended. `tokens_completed` counts only
    the tokens of ok requests.
    """

    requests_whole: Rate | None
    requests_steady: Rate | None
    tokens_whole: Rate | None
    tokens_steady: Rate | None
    tokens_completed: Rate | None


def measure_rates(measured: Sequence[RequestRow], timelines: Sequence[Timeline]) -> Rates:
    """Measure all rates of the measured requests."""
    whole, middle = whole_run(measured), steady(measured)
    ok = [row for row in measured if row.outcome == Outcome.ok]
    tokens = {row.index: row.output_tokens for row in measured}
    steady_tokens = None
    if middle is not None and any(timeline.index in tokens for timeline in timelines):
        inside = tokens_inside(middle, timelines, tokens)
        steady_tokens = Rate(
            _per_s(inside.tokens, middle),
            inside.tokens,
            middle,
            "output tokens that arrived in the window",
            inside.estimated,
        )
    return Rates(
        requests_whole=_rate(len(ok), whole, "ok requests"),
        requests_steady=_rate(_ended_in(ok, middle), middle, "ok requests that ended in the window"),
        tokens_whole=_token_rate(measured, whole, "output tokens of all requests"),
        tokens_steady=steady_tokens,
        tokens_completed=_token_rate(ok, whole, "output tokens of ok requests"),
    )


def _rate(count: int, window: Window | None, of: str) -> Rate | None:
    return None if window is None else Rate(_per_s(count, window), count, window, of)


def _token_rate(rows: Sequence[RequestRow], window: Window | None, of: str) -> Rate | None:
    if window is None:
        return None
    # Without usage a row's count is its output events, which the row itself marks as estimated.
    total = sum(row.output_tokens if row.output_tokens is not None else row.output_events for row in rows)
    estimated = any(row.output_events and row.output_tokens_source != "usage" for row in rows)
    return Rate(_per_s(total, window), total, window, of, estimated)


def _ended_in(ok: Sequence[RequestRow], window: Window | None) -> int:
    if window is None:
        return 0
    return sum(row.end_ns is not None and window.begin_ns <= row.end_ns < window.end_ns for row in ok)


def _per_s(count: float, window: Window) -> float:
    return count * 1e9 / window.length_ns


class SingleUser(Struct, frozen=True):
    """Hold the rates that concurrency one derives, in tokens a second.

    `prefill_counted` is (prompt - cached tokens) / TTFT of each request, with its spread; where the server does not
    report cached tokens none are assumed, and `cached_assumed` says so. `prefill_nominal` is the asked input
    length / median TTFT. `decode` is 1 / median ITL.
    """

    prefill_counted: Distribution
    cached_assumed: bool
    prefill_nominal: float | None
    decode: float | None


def single_user(measured: Sequence[RequestRow], shape: Shape) -> SingleUser:
    """Derive the single-user rates from the ok requests of a trial at concurrency one."""
    ok = [row for row in measured if row.outcome == Outcome.ok]
    ttfts = [value for row in ok if (value := row.ttft_ns) is not None]
    itls = [between for row in ok if (between := row.itl_ns) is not None]
    counted = [
        (row.prompt_tokens - (row.cached_tokens or 0)) * 1e9 / row.ttft_ns
        for row in ok
        if row.prompt_tokens is not None and row.ttft_ns
    ]
    ttft = statistics.median(ttfts) if ttfts else None
    itl = statistics.median(itls) if itls else None
    return SingleUser(
        prefill_counted=summarise(counted, "1/s"),
        cached_assumed=any(row.cached_tokens is None for row in ok),
        prefill_nominal=shape.input_tokens * 1e9 / ttft if ttft else None,
        decode=1e9 / itl if itl else None,
    )
