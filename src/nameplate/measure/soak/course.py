"""Series over a whole segment, thinned for charts to a bounded number of points."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Sequence

from nameplate.measure.soak.client import ClientColumns
from nameplate.measure.soak.segment import Course
from nameplate.measure.soak.server import Server
from nameplate.measure.soak.steps import MICRO
from nameplate.measure.soak.tally import Tally

# More points than a chart has columns show nothing more.
MOST_POINTS = 480


def courses_of(tally: Tally, server: Server, client: ClientColumns, observed_ns: int) -> tuple[Course, ...]:
    """Return every series that has a value: the client's count, the server's gauges and counters, and its own state."""
    steps = tally.steps
    count = min(len(steps), (observed_ns - steps.begin_ns) // steps.step_ns + 1)
    width = max(1, -(-count // MOST_POINTS)) * steps.step_ns
    axis = [steps.edge_ns(step) for step in range(count)]
    seconds = steps.step_ns / 1e9
    arrived = [micro / MICRO / seconds for micro in steps.micro_tokens[:count]]
    found = [
        _course("outstanding", "requests", axis, list(steps.levels(count))[1:], width, steps.begin_ns),
        _course("output_tokens_per_s", "1/s", axis, arrived, width, steps.begin_ns),
    ]
    for name, unit in (("running", "requests"), ("waiting", "requests"), ("kv_usage", "share of the pool")):
        found.append(_course(name, unit, server.t_ns, server.columns[name], width, steps.begin_ns))
    for name, counter in (
        ("preemptions_per_s", "preemptions"),
        ("cache_hits_per_s", "cache_hits"),
        ("server_input_tokens_per_s", "prompt_tokens"),
        ("server_output_tokens_per_s", "output_tokens"),
    ):
        grown = _rates(server.t_ns, server.columns[counter])
        found.append(_course(name, "1/s", server.t_ns, grown, width, steps.begin_ns))
    for name, column, unit in (
        ("client_memory", "rss_bytes", "bytes"),
        ("client_descriptors", "descriptors", "descriptors"),
        ("client_backlog", "unparsed", "pieces of answers"),
        ("client_queued_blocks", "queued_blocks", "blocks of evidence"),
        ("client_send_lag", "send_lag_max_ns", "ns"),
    ):
        found.append(_course(name, unit, client.t_ns, client.columns[column], width, steps.begin_ns))
    return tuple(course for course in found if course.t_ns)


def _rates(t_ns: Sequence[int], grown: Sequence[float]) -> array[float]:
    """Return a counter's growth between readings as a rate over the time between them."""
    found = array("d")
    for at, value in enumerate(grown):
        length_ns = t_ns[at] - t_ns[at - 1] if at else 0
        found.append(value * 1e9 / length_ns if length_ns > 0 else math.nan)
    return found


def _course(
    name: str, unit: str, t_ns: Iterable[int], values: Iterable[float], width_ns: int, begin_ns: int
) -> Course:
    points: list[tuple[int, list[float]]] = []
    for moment, value in zip(t_ns, values, strict=False):
        if value != value or moment < begin_ns:
            continue
        bucket = begin_ns + (moment - begin_ns) // width_ns * width_ns
        if not points or points[-1][0] != bucket:
            points.append((bucket, []))
        points[-1][1].append(float(value))
    return Course(
        name=name,
        unit=unit,
        t_ns=tuple(bucket for bucket, _ in points),
        mean=tuple(math.fsum(held) / len(held) for _, held in points),
        min=tuple(min(held) for _, held in points),
        max=tuple(max(held) for _, held in points),
    )
