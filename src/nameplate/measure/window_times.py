"""Queue and prefill times of a window, from two samples of the server: means only, of what it observed between them.

vLLM and TensorRT-LLM observe a request when it finishes: its times count in the window in which it finished, whenever
it waited. SGLang observes a queue when it is left and a prefill when it ends.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from nameplate.engines.state import ServerSample
from nameplate.measure.server_side import time_delta


class MeanTime(Struct, frozen=True):
    """Hold the exact mean of one time over n requests."""

    n: int
    mean_ns: int


class WindowTimes(Struct, frozen=True, kw_only=True):
    """Hold mean times of what the server observed between two samples, `span_ns` apart, by when it was observed.

    Null is unknown, or nothing was observed.
    """

    span_ns: int
    queue: MeanTime | None = None
    prefill: MeanTime | None = None
    decode: MeanTime | None = None
    ttft: MeanTime | None = None


def times_between(first: ServerSample, last: ServerSample) -> WindowTimes:
    """Return the mean times between two readings of one server process."""
    return WindowTimes(
        span_ns=last.t_ns - first.t_ns,
        queue=_mean(first, last, "queue_s"),
        prefill=_mean(first, last, "prefill_s"),
        decode=_mean(first, last, "decode_s"),
        ttft=_mean(first, last, "ttft_s"),
    )


def times_in(samples: Sequence[ServerSample]) -> WindowTimes | None:
    """Return the mean times between the first and the last readable sample; None where there are no two."""
    readable = [sample for sample in samples if sample.error is None]
    return times_between(readable[0], readable[-1]) if len(readable) > 1 else None


def _mean(first: ServerSample, last: ServerSample, name: str) -> MeanTime | None:
    """Return one mean; None where nothing was observed, or the histogram began anew."""
    grown = time_delta(first, last, name)
    if grown is None or grown[1] <= 0 or grown[0] < 0:
        return None
    return MeanTime(grown[1], round(grown[0] * 1e9 / grown[1]))
