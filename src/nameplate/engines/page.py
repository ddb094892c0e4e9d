"""From a metrics page to a state: a real parser, exact names, and a name for every page that is none."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct
from prometheus_client.parser import text_string_to_metric_families

from nameplate.engines.metrics import MetricsTable, Series, sample_names
from nameplate.engines.state import Histogram, ServerState
from nameplate.engines.transport import Reply

_MAX_SAMPLES = 200_000  # 64 engines of vLLM with all their buckets stay below 30,000
_LARGEST = 2.0**62  # a counter beyond this is damage, and JSON readers hold 64 bits


class Sample(Struct, frozen=True):
    """Hold one line of the page."""

    labels: Mapping[str, str]
    value: float


Samples = Mapping[str, tuple[Sample, ...]]


def read_state(reply: Reply, table: MetricsTable, t_ns: int) -> ServerState:
    """Return what the page says; a state with `error` where it is no metrics page of this engine."""
    complaint = complaint_about(reply)
    if complaint:
        return ServerState(t_ns, error=complaint)
    try:
        samples = parse(reply.body, table.names)
    except ValueError as error:
        return ServerState(t_ns, error=f"the metrics page cannot be parsed: {str(error)[:200]}")
    if not any(name.startswith(table.prefix) for name in samples):
        return ServerState(t_ns, error=f"the metrics page holds no {table.prefix} metric that is known")
    values: dict[str, Any] = {}
    missing: list[str] = []
    for series in table.series:
        found = _value(series, samples, table)
        if found:
            values.update(found)
        else:
            missing.append(series.meaning)
    return ServerState(t_ns, missing=tuple(missing), **values)


def complaint_about(reply: Reply) -> str | None:
    """Say what was sent instead of a Prometheus page, or None."""
    if reply.status in (401, 403):
        return f"the metrics page asks for a key (HTTP {reply.status})"
    if not reply.ok:
        return f"the metrics page answered HTTP {reply.status}"
    start = reply.body[:512].lstrip().lower()
    if not start:
        return "the metrics page is empty"
    if start.startswith((b"<!doctype", b"<html")) or reply.content_type == "text/html":
        return "the metrics page is HTML"
    if start.startswith(b"["):
        empty = reply.body.strip().strip(b"[]").strip() == b""
        return "the metrics page is an empty JSON list" if empty else "the metrics page is a JSON list"
    if start.startswith(b"{") and reply.content_type == "application/json":
        return "the metrics page is JSON"
    return None


def parse(body: bytes, names: frozenset[str]) -> Samples:
    """Return the samples with exactly these names; ValueError where one of them cannot be parsed.

    Other lines never reach the parser: a page of tens of thousands of foreign series costs little, and without their
    `# TYPE` lines the parser keeps each name as the page wrote it.
    """
    lines = [line for line in body.decode("utf-8", "replace").split("\n") if _name_of(line) in names]
    if len(lines) > _MAX_SAMPLES:
        raise ValueError(f"{len(lines)} series")
    found: dict[str, list[Sample]] = defaultdict(list)
    for family in text_string_to_metric_families("".join(f"{line}\n" for line in lines)):
        for sample in family.samples:
            if sample.name in names and not math.isnan(sample.value):
                found[sample.name].append(Sample(sample.labels, sample.value))
    return {name: tuple(samples) for name, samples in found.items()}


def _name_of(line: str) -> str:
    return line.partition("{")[0].partition(" ")[0].partition("\t")[0]


def _value(series: Series, samples: Samples, table: MetricsTable) -> dict[str, Any] | None:
    for name in series.names:
        if series.rule == "histogram":
            histogram = _histogram(name, series, samples, table)
            if histogram is not None:
                return {series.meaning: histogram}
            continue
        rows = _distinct(samples.get(name, ()), series, table)
        if rows:
            return _fold(series, rows, samples, table)
    return None


def _fold(
    series: Series, rows: tuple[Sample, ...], samples: Samples, table: MetricsTable
) -> dict[str, Any] | None:
    rows = tuple(row for row in rows if 0 <= row.value < _LARGEST)
    numbers = [row.value for row in rows]
    if series.rule == "labels":
        return _cache_config(rows)
    if not numbers:
        return None
    if series.rule == "spread":
        return {
            f"{series.meaning}_mean": math.fsum(numbers) / len(numbers),
            f"{series.meaning}_max": max(numbers),
        }
    if series.rule == "mean":
        return {series.meaning: math.fsum(numbers) / len(numbers)}
    if series.rule == "max":
        return {series.meaning: max(numbers)}
    if series.rule == "by_label":
        groups: dict[str, float] = defaultdict(float)
        for row in rows:
            groups[row.labels.get(series.label, "any") if series.label else "any"] += row.value
        return {series.meaning: tuple((key, round(total)) for key, total in sorted(groups.items()))}
    factor = 1.0
    if series.scale:
        scales = _distinct(samples.get(series.scale, ()), series, table)
        if not scales or not 0 < scales[0].value < _LARGEST:
            return None
        factor = scales[0].value
    total = math.fsum(numbers) * factor
    return {series.meaning: round(total)} if total < _LARGEST else None


def _distinct(rows: Iterable[Sample], series: Series, table: MetricsTable) -> tuple[Sample, ...]:
    """Drop what would be counted twice: ranks that repeat one number, and parts beside their own total."""
    kept: dict[tuple[tuple[str, str], ...], Sample] = {}
    by_total: dict[tuple[tuple[str, str], ...], list[Sample]] = defaultdict(list)
    for row in rows:
        if series.where and row.labels.get(series.where[0]) != series.where[1]:
            continue
        labels = {key: value for key, value in row.labels.items() if key not in table.repeats}
        key = tuple(sorted(labels.items()))
        old = kept.get(key)
        if old is None or row.value > old.value:
            kept[key] = Sample(labels, row.value)
    if not table.totals:
        return tuple(kept.values())
    for row in kept.values():
        rest = tuple(sorted((key, value) for key, value in row.labels.items() if key != table.totals))
        by_total[rest].append(row)
    result: list[Sample] = []
    for group in by_total.values():
        totals = [row for row in group if not row.labels.get(table.totals)]
        result.extend(totals or group)
    return tuple(result)


def _histogram(name: str, series: Series, samples: Samples, table: MetricsTable) -> Histogram | None:
    bucket_name, sum_name, count_name = sample_names(name, "histogram")
    counts = _distinct(samples.get(count_name, ()), series, table)
    sums = _distinct(samples.get(sum_name, ()), series, table)
    if not counts or not sums:
        return None
    edges: dict[float, float] = defaultdict(float)
    for row in _distinct(samples.get(bucket_name, ()), series, table):
        try:
            edge = float(row.labels["le"])
        except (KeyError, ValueError):
            continue
        if 0 <= row.value < _LARGEST:
            edges[edge] += row.value
    total_s = sum(row.value for row in sums)
    count = sum(row.value for row in counts)
    if not (0 <= total_s < _LARGEST and 0 <= count < _LARGEST):
        return None
    # The last edge, infinity, is the count again, and JSON has no infinity.
    buckets = tuple((edge, round(value)) for edge, value in sorted(edges.items()) if math.isfinite(edge))
    return Histogram(total_s, round(count), buckets)


def _cache_config(rows: tuple[Sample, ...]) -> dict[str, Any] | None:
    """Read vLLM's info metric: the engine's own token count, else blocks x size; summed over engines."""
    pools: dict[str, int] = {}
    sizes: set[int] = set()
    caching: set[str] = set()
    for row in rows:
        size, blocks = _whole(row.labels.get("block_size")), _whole(row.labels.get("num_gpu_blocks"))
        tokens = _whole(row.labels.get("kv_cache_size_tokens"))
        if tokens is None and size is not None and blocks is not None:
            tokens = size * blocks
        if tokens is not None:
            engine = row.labels.get("engine", "")
            pools[engine] = max(tokens, pools.get(engine, 0))
        if size is not None:
            sizes.add(size)
        caching.add(row.labels.get("enable_prefix_caching", ""))
    found: dict[str, Any] = {}
    if pools:
        found["kv_tokens"] = sum(pools.values())
    if len(sizes) == 1:
        found["block_size_tokens"] = sizes.pop()
    if caching in ({"True"}, {"False"}):
        found["prefix_caching"] = caching == {"True"}
    return found or None


def _whole(text: str | None) -> int | None:
    return int(text) if text and text.isascii() and text.isdigit() else None
