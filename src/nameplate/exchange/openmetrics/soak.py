"""A soak as metric families: its windows as a series in time, and what all of it came to.

Every sample has a time, so that the text can be loaded into Prometheus as history (`promtool tsdb
create-blocks-from openmetrics`): a window stands at its end, the rest at the end of the soak.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping

from nameplate.exchange.openmetrics.family import Family, Sample
from nameplate.exchange.tables.column import PERCENTILES, at
from nameplate.measure.soak.result import SoakResult
from nameplate.measure.soak.window import WindowResult
from nameplate.statistics.percentile import Distribution

# By name: where it stands in a window, and what it is.
_RATES: Mapping[str, tuple[str, str]] = {
    "output_tokens": (
        "output_tokens_per_s",
        "Output tokens that arrived in the window / its observed length.",
    ),
    "input_tokens": (
        "input_tokens_per_s",
        "Prompt tokens of the first outputs in the window / its observed length.",
    ),
    "requests": ("requests_per_s", "Requests that ended well in the window / its observed length."),
}
_GAUGES: Mapping[str, tuple[str, str]] = {
    "outstanding_requests": ("outstanding.mean", "Requests sent and not ended, by the client's count; mean."),
    "server_running_requests": ("server.running.mean", "Running requests, by the server's gauge; mean."),
    "server_waiting_requests": ("server.waiting.mean", "Waiting requests, by the server's gauge; mean."),
    "server_kv_usage_ratio": (
        "server.kv_usage.mean",
        "Share of the KV pool in use, by the server's gauge; mean.",
    ),
}
_TIMES: Mapping[str, str] = {
    "ttft": "Send to the first output, of the first outputs in the window.",
    "ttft_from_schedule": "When a request was due to its first output, of the first outputs in the window.",
    "itl": "(Last output - first) / (output tokens - those of the first event), of the ends in the window.",
    "e2e": "Send to the last output, of the ends in the window.",
}


def families_of(result: SoakResult, model: str) -> Iterator[Family]:
    """Yield the families of a soak so far."""
    end_ns = max(segment.observed_wall_ns for segment in result.segments)
    labels = {"model": model}
    verdict = {"verdict": result.verdict.status, "drift": result.drift.conclusion}
    yield Family("nameplate_soak", "info", "", "A soak.", (Sample({**labels, **verdict}, 1, end_ns),))
    for name, (path, says) in _RATES.items():
        yield _series(result, labels, f"nameplate_window_{name}_per_second", "", says, at(path))
    for name, (path, says) in _GAUGES.items():
        unit = "ratio" if name.endswith("_ratio") else ""
        yield _series(result, labels, f"nameplate_window_{name}", unit, says, at(path))
    for name, says in _TIMES.items():
        yield _distributions(result, labels, name, says)
    yield from _whole(result, labels, end_ns)


def _series(
    result: SoakResult,
    labels: Mapping[str, str],
    name: str,
    unit: str,
    says: str,
    of: Callable[[WindowResult], float | None],
) -> Family:
    samples = [
        Sample({**labels, "segment": segment.segment}, value, _end(window))
        for segment in result.segments
        for window in segment.windows
        if (value := of(window)) is not None
    ]
    return Family(name, "gauge", unit, says, tuple(samples))


def _distributions(result: SoakResult, labels: Mapping[str, str], name: str, says: str) -> Family:
    # Samples of one series stand together, in the order of time.
    samples = [
        Sample({**labels, "segment": segment.segment, "statistic": key}, value / 1e9, _end(window))
        for segment in result.segments
        for key in ("mean", "min", "max", *PERCENTILES)
        for window in segment.windows
        if (value := _statistic(window, name, key)) is not None
    ]
    return Family(f"nameplate_window_{name}_seconds", "gauge", "seconds", says, tuple(samples))


def _statistic(window: WindowResult, name: str, key: str) -> float | None:
    held: Distribution = getattr(window, name)
    found: float | None = getattr(held, key)
    return found


def _end(window: WindowResult) -> int:
    return window.begin_wall_ns + window.end_ns - window.begin_ns


def _whole(result: SoakResult, labels: Mapping[str, str], end_ns: int) -> Iterator[Family]:
    counts = result.counts
    yield Family(
        "nameplate_requests_sent",
        "counter",
        "",
        "Requests of the soak.",
        (Sample(labels, counts.sent, end_ns),),
    )
    fates = (
        ("completed", counts.ok), ("failed", counts.failed), ("cancelled", counts.cancelled),
        ("unfinished", counts.unfinished),
    )  # fmt: skip
    yield Family(
        "nameplate_requests", "counter", "", "Requests of the soak by what became of them.",
        tuple(Sample({**labels, "fate": fate}, count, end_ns) for fate, count in fates),
    )  # fmt: skip
    tokens = (("completed", result.tokens.output_ok), ("partial", result.tokens.output_partial))
    yield Family(
        "nameplate_output_tokens", "counter", "", "Output tokens of completed requests, and of those that were cut.",
        tuple(Sample({**labels, "fate": fate}, count, end_ns) for fate, count in tokens),
    )  # fmt: skip
    for latency in result.latencies:
        samples = [
            Sample({**labels, "statistic": f"p{told.percent:g}", "case": case}, value / 1e9, end_ns)
            for told in latency.percentiles
            for case, value in (
                ("completed", told.completed_only),
                ("best", math.inf if told.best is None else told.best),
                ("worst", math.inf if told.worst is None else told.worst),
            )
            if value is not None
        ]
        if latency.mean_completed_ns is not None:
            mean = {**labels, "statistic": "mean", "case": "completed"}
            samples.append(Sample(mean, latency.mean_completed_ns / 1e9, end_ns))
        says = "Over the soak: completed requests alone, and the best and worst that all can come to."
        yield Family(f"nameplate_{latency.metric}_seconds", "gauge", "seconds", says, tuple(samples))
