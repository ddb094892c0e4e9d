"""The series that a soak's drift is judged by: one value for each window that can be compared with the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from nameplate.contract.identity import CONFIGURATION, Value
from nameplate.measure.soak.result import WarmUp
from nameplate.measure.soak.segment import Part, SegmentResult
from nameplate.measure.soak.window import WindowResult
from nameplate.statistics.percentile import Distribution
from nameplate.statistics.steady import warm_up_end
from nameplate.verdict.drift import LEAST_WINDOWS, Basis, Series, SeriesPoints

# A warm-up is looked for in the first quarter: a soak that takes longer to become steady drifts, and that is to be
# said.
LATEST = 0.25
# Batches of one window: fifty windows are no few hours, and their noise is averaged already.
BATCH = 1

# A p95 of fewer requests than 1/(1-p) is the largest of a few: no series.
LEAST_FOR_P95 = 20


def _p50(window: WindowResult) -> float | None:
    return window.ttft.p50


def _p95(window: WindowResult) -> float | None:
    return _tail(window.ttft)


def _p50_from_schedule(window: WindowResult) -> float | None:
    return window.ttft_from_schedule.p50


def _p95_from_schedule(window: WindowResult) -> float | None:
    return _tail(window.ttft_from_schedule)


def _tail(ttft: Distribution) -> float | None:
    return ttft.p95 if ttft.n >= LEAST_FOR_P95 else None


def _itl(window: WindowResult) -> float | None:
    return window.itl.p50


def _output(window: WindowResult) -> float | None:
    return window.output_tokens_per_s


def _outstanding(window: WindowResult) -> float | None:
    return None if window.outstanding is None else window.outstanding.mean


def _waiting(window: WindowResult) -> float | None:
    return None if window.server.waiting is None else window.server.waiting.mean


def _kv_floor(window: WindowResult) -> float | None:
    return None if window.server.kv_usage is None else window.server.kv_usage.min


def _memory(window: WindowResult) -> float | None:
    return None if window.client.memory_bytes is None else window.client.memory_bytes.mean


_VALUES: dict[Series, Callable[[WindowResult], float | None]] = {
    "ttft_p50": _p50,
    "ttft_p95": _p95,
    "itl_p50": _itl,
    "output_tokens_per_s": _output,
    "outstanding": _outstanding,
    "waiting": _waiting,
    "kv_floor": _kv_floor,
}
# An open loop's TTFT counts from the schedule: where its client is late, its users wait. Its SLOs count so too.
_FROM_SCHEDULE: dict[Series, Callable[[WindowResult], float | None]] = {
    "ttft_p50": _p50_from_schedule,
    "ttft_p95": _p95_from_schedule,
}


class _Placed(NamedTuple):
    """Place a window: how many windows after its part of the server began, and where its segment lies."""

    window: WindowResult
    after: int
    offset_s: float


def found_warm_up(ordered: Sequence[SegmentResult]) -> WarmUp:
    """Find how many first windows of the soak are warm-up: until all opening requests ended, or longer by MSER.

    It is looked for in the segment with the most windows; every segment, and every life of the server, fills it anew,
    so their first windows are left out likewise, by the same count.
    """
    longest = max(ordered, key=lambda segment: len(_whole(segment)))
    windows = _whole(longest)
    opening = _opening(longest, windows)
    outputs = [window.output_tokens_per_s or 0.0 for window in windows]
    # A collapse at the end would make everything before it look like a warm-up.
    found = warm_up_end(outputs, batch=BATCH, latest=LATEST) if len(outputs) >= 2 * LEAST_WINDOWS else None
    by_data = found.values if found is not None and found.ended else 0
    left_out = max(opening, by_data)
    if left_out == 0:
        detail = "no window was left out"
    elif by_data > opening:
        detail = f"output tokens/s settle after {by_data} windows"
    else:
        detail = f"the first requests, which start together, end in the first {opening} windows"
    length_s = longest.window_ns / 1e9
    return WarmUp(
        windows=left_out,
        seconds=left_out * length_s,
        method="end of the opening phase, or MSER-1 on output tokens/s, in the first quarter (White 1997)",
        detail=detail,
    )


def points_of(
    ordered: Sequence[SegmentResult], parts: Sequence[Part], warm_up: int
) -> tuple[SeriesPoints, ...]:
    """Return every series over windows that can be compared: whole, of the submission, within one part of the server.

    A series runs on over parts and segments with the same server configuration and pool, as far as it goes: gaps are
    missing windows, nothing is put in their place. TTFT counts from the schedule in an open loop. Each process of the
    client has a memory of its own.
    """
    axis = _axis(ordered)
    stretches = _stretches(ordered, parts, axis)
    found = []
    basis: Basis = "send" if ordered[0].plan.arrivals is None else "schedule"
    for name, value in (_VALUES if basis == "send" else _VALUES | _FROM_SCHEDULE).items():
        for stretch, windows in stretches.items():
            of = basis if name in _FROM_SCHEDULE else None
            found.append(_points(name, stretch, windows, value, warm_up, of))
    for segment, offset_s in zip(ordered, axis, strict=True):
        windows = [_Placed(window, at, offset_s) for at, window in enumerate(_submitted(segment))]
        found.append(_points("client_memory", segment.segment, windows, _memory, warm_up))
    return tuple(points for points in found if points is not None)


def _points(
    name: Series,
    stretch: str,
    windows: Sequence[_Placed],
    value: Callable[[WindowResult], float | None],
    warm_up: int,
    basis: Basis | None = None,
) -> SeriesPoints | None:
    """Return one series over one stretch; None where no window tells it."""
    held = [
        (placed, known)
        for placed in windows
        if placed.after >= warm_up
        and not placed.window.partial
        and (known := value(placed.window)) is not None
    ]
    if not held:
        return None
    starts = [placed.offset_s + placed.window.begin_ns / 1e9 for placed, _ in held]
    half = [(placed.window.end_ns - placed.window.begin_ns) / 2e9 for placed, _ in held]
    return SeriesPoints(
        series=name,
        stretch=stretch,
        times_s=tuple(start + offset for start, offset in zip(starts, half, strict=True)),
        starts_s=tuple(starts),
        values=tuple(known for _, known in held),
        left_out=len(windows) - len(held),
        basis=basis,
    )


def _stretches(
    ordered: Sequence[SegmentResult], parts: Sequence[Part], axis: Sequence[float]
) -> dict[str, list[_Placed]]:
    """Return the windows of each configuration of the server, with their place after the load began anew."""
    found: dict[str, list[_Placed]] = {}
    names: dict[tuple[Value | None, ...], str] = {}
    by_place = {(part.segment, part.number): part for part in parts}
    for segment, offset_s in zip(ordered, axis, strict=True):
        length_ns = segment.window_ns
        for window in _submitted(segment):
            if window.part is None:
                continue
            part = by_place[segment.segment, window.part]
            facts = tuple(part.identity.value(name) for name in CONFIGURATION)
            name = names.setdefault(facts, _named(part, len(names)))
            # After a restart the server fills again, as at the beginning.
            after = max(0, window.begin_ns - part.begin_ns) // length_ns
            found.setdefault(name, []).append(_Placed(window, after, offset_s))
    return found


def _axis(ordered: Sequence[SegmentResult]) -> list[float]:
    """Return what turns each segment's monotonic seconds into seconds since the soak began, by the wall clock.

    A segment whose wall clock lies within the one before it, which cannot be, is put right after that.
    """
    began_ns = ordered[0].began_wall_ns
    axis: list[float] = []
    end_s = 0.0
    for segment in ordered:
        begin_s = max(end_s, (segment.began_wall_ns - began_ns) / 1e9)
        axis.append(begin_s - segment.submitted_ns / 1e9)
        end_s = begin_s + (segment.observed_ns - segment.submitted_ns) / 1e9
    return axis


def _named(part: Part, number: int) -> str:
    pool = f", KV pool of {part.kv_tokens} tokens" if part.kv_tokens is not None else ""
    return f"configuration {number + 1} of the server{pool}"


def _submitted(segment: SegmentResult) -> list[WindowResult]:
    return [window for window in segment.windows if window.load == "submission"]


def _whole(segment: SegmentResult) -> list[WindowResult]:
    return [window for window in _submitted(segment) if not window.partial]


def _opening(segment: SegmentResult, windows: Sequence[WindowResult]) -> int:
    """Count the windows until the requests that started together had all ended; at most a quarter of them."""
    if segment.opening_ended_ns is None:
        return 0
    length_ns = segment.window_ns
    needed = -(-(segment.opening_ended_ns - segment.submitted_ns) // length_ns)
    return max(0, min(needed, int(len(windows) * LATEST)))
