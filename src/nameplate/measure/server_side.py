"""What the server said of itself during a trial, and what its counters moved from idle to idle."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from msgspec import Struct, structs

from nameplate.engines.state import ServerSample
from nameplate.evidence.rows import RequestRow
from nameplate.measure.concurrency import InFlight, intervals
from nameplate.measure.windows import Window
from nameplate.wire.outcome import Outcome

# A gauge shows the state of the server's last step and a scrape takes time: ours is the most we had in flight
# within this distance of the sample.
SCRAPE_SLACK_NS = 1_000_000_000


class Gauge(Struct, frozen=True):
    """Hold the mean and the largest of a gauge over n samples."""

    n: int
    mean: float
    max: float


class ServerSide(Struct, frozen=True, kw_only=True):
    """Hold the server's own view of the measured part; what it does not tell is null.

    Gauges are over the samples between the first measured send and the last end. Deltas and mean times in seconds
    are from idle to idle, warm-up included. `scrapes` counts all samples of the trial, `scrape_failures` those that
    failed and so are unknown, not zero.
    """

    scrapes: int
    scrape_failures: int
    running: Gauge | None = None
    waiting: Gauge | None = None
    kv_usage: Gauge | None = None
    preemptions: int | None = None
    requests: int | None = None
    prompt_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    queue_mean_s: float | None = None
    prefill_mean_s: float | None = None
    decode_mean_s: float | None = None


def measure_server(
    samples: Sequence[ServerSample],
    window: Window | None,
    before: ServerSample | None,
    after: ServerSample | None,
) -> ServerSide:
    """Measure the server's side of a trial."""
    inside = [
        sample
        for sample in samples
        if sample.error is None and window is not None and window.begin_ns <= sample.t_ns <= window.end_ns
    ]
    return ServerSide(
        scrapes=len(samples),
        scrape_failures=sum(sample.error is not None for sample in samples),
        running=gauge_of(sample.running for sample in inside),
        waiting=gauge_of(sample.waiting for sample in inside),
        kv_usage=gauge_of(sample.kv_usage_mean for sample in inside),
        preemptions=delta(before, after, "preemptions_total"),
        requests=finished_delta(before, after),
        prompt_tokens=delta(before, after, "prompt_tokens_total"),
        output_tokens=delta(before, after, "output_tokens_total"),
        cached_tokens=_cached_delta(before, after),
        queue_mean_s=_mean_time(before, after, "queue_s"),
        prefill_mean_s=_mean_time(before, after, "prefill_s"),
        decode_mean_s=_mean_time(before, after, "decode_s"),
    )


def delta(before: ServerSample | None, after: ServerSample | None, name: str) -> int | None:
    """Return how much a counter grew; None where either reading is unknown."""
    if before is None or after is None:
        return None
    first, last = getattr(before, name), getattr(after, name)
    return None if first is None or last is None else last - first


def finished_delta(before: ServerSample | None, after: ServerSample | None) -> int | None:
    """Return how many requests the server finished between two readings, whatever their reason."""
    if before is None or after is None or before.finished is None or after.finished is None:
        return None
    return sum(count for _, count in after.finished) - sum(count for _, count in before.finished)


def counters_that_fell(readings: Iterable[ServerSample | None]) -> tuple[str, ...]:
    """Name the counters that were ever below an earlier reading: the server restarted or was reset."""
    names = [name for name in structs.fields(ServerSample) if name.name.endswith("_total")]
    highest: dict[str, int] = {}
    fell = []
    for reading in readings:
        for name in (field.name for field in names):
            value = None if reading is None else getattr(reading, name)
            if value is None:
                continue
            if value < highest.get(name, value) and name not in fell:
                fell.append(name)
            highest[name] = max(value, highest.get(name, value))
    return tuple(fell)


def extra_requests(samples: Sequence[ServerSample], rows: Sequence[RequestRow], until_ns: int) -> int | None:
    """Return how many more requests the server held than ours, at most; None where it does not tell.

    Running requests above ours count at once, waiting ones only in two samples in a row: a request that just ended
    can still stand in a gauge of the last step while its successor waits. Requests that we cut may live on in
    the server, so they count as ours to the end.
    """
    held = []
    for row, interval in zip(
        [row for row in rows if row.sent_ns is not None], intervals(rows, until_ns), strict=True
    ):
        ends = interval[1] if row.outcome == Outcome.ok else max(until_ns, interval[1])
        held.append((interval[0], ends))
    told = [sample for sample in samples if sample.error is None and sample.running is not None]
    if not told or not held:
        return None
    flight = InFlight(held)
    begin, end = min(first for first, _ in held), max(last for _, last in held)
    most = before = 0
    for sample in told:
        if not begin <= sample.t_ns <= end:
            continue
        ours = flight.highest_between(sample.t_ns - SCRAPE_SLACK_NS, sample.t_ns + SCRAPE_SLACK_NS)
        running = (sample.running or 0) - ours
        together = running + (sample.waiting or 0)
        most = max(most, running, min(together, before))
        before = together
    return most


def _cached_delta(before: ServerSample | None, after: ServerSample | None) -> int | None:
    told = delta(before, after, "cached_tokens_total")
    return told if told is not None else delta(before, after, "cache_hit_tokens_total")


def gauge_of(values: Iterable[float | None]) -> Gauge | None:
    known = [value for value in values if value is not None]
    return Gauge(len(known), math.fsum(known) / len(known), max(known)) if known else None


def time_delta(
    before: ServerSample | None, after: ServerSample | None, name: str
) -> tuple[float, int] | None:
    """Return how much a histogram's sum in seconds and its count grew (`name` is `queue_s`, ...); None if unknown."""
    if before is None or after is None:
        return None
    first: tuple[float, int] | None = getattr(before, name)
    last: tuple[float, int] | None = getattr(after, name)
    return None if first is None or last is None else (last[0] - first[0], last[1] - first[1])


def _mean_time(before: ServerSample | None, after: ServerSample | None, name: str) -> float | None:
    found = time_delta(before, after, name)
    return None if found is None or found[1] <= 0 else found[0] / found[1]
