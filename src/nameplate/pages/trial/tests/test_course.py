"""A trial over time: what is drawn as in flight is what the rows and the trial's result say."""

from __future__ import annotations

import math

from msgspec import structs

from nameplate.engines.state import ServerSample
from nameplate.pages.subject import TrialSubject
from nameplate.pages.trial.course import _in_flight, course
from nameplate.pages.trial.rows import read_rows


def test_the_time_in_flight_is_that_of_the_rows(closed: TrialSubject) -> None:
    """The means over all stretches add up to the requests' own times, and the most is the result's."""
    read = read_rows(closed, events=False)
    rows = read.measured
    begin = min(row.sent_ns for row in rows if row.sent_ns is not None)
    end = max(row.end_ns for row in rows if row.end_ns is not None)
    points = _in_flight(rows, read.until_ns, begin, end)
    mean = sum(point.value or 0.0 for point in points) / len(points)
    whole = sum((row.end_ns or 0) - (row.sent_ns or 0) for row in rows) / (end - begin)
    # Stretches are whole nanoseconds, so their lengths differ by one.
    assert math.isclose(mean, whole, rel_tol=1e-4)
    assert closed.result is not None
    assert max(point.high or 0.0 for point in points) == closed.result.measurement.concurrency.max


def test_the_servers_own_figures_stand_beside_ours(closed: TrialSubject) -> None:
    """Running, waiting and the KV pool are drawn where the server told them, and their absence is said."""
    read = read_rows(closed, events=False)
    sent = min(row.sent_ns for row in read.measured if row.sent_ns is not None)
    samples = tuple(ServerSample(sent + at, 3, 1, kv_usage_mean=0.2) for at in (10, 20, 30))
    page = str(course(structs.replace(read, samples=samples), opened=False))
    assert "running" in page and "KV pool in use" in page
    bare = str(course(structs.replace(read, samples=()), opened=False))
    assert "KV pool in use" not in bare and "is not known" in bare


def test_nothing_sent_nothing_drawn(closed: TrialSubject) -> None:
    """Without a request that was sent there is no time to draw."""
    read = structs.replace(read_rows(closed, events=False), rows=())
    assert course(read, opened=False) is None
