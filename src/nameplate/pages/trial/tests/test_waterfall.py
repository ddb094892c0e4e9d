"""The waterfall: what is drawn of a request is what its row says."""

from __future__ import annotations

import math
from typing import Any

import pytest
from msgspec import structs

from nameplate.pages.scale import TimeScale
from nameplate.pages.subject import TrialSubject
from nameplate.pages.trial.rows import read_rows
from nameplate.pages.trial.waterfall import COLUMNS, dataset, waterfall


def drawn(trial: TrialSubject, *, events: bool = True) -> tuple[list[dict[str, Any]], Any, float]:
    read = read_rows(trial, events=events)
    begin = min(row.sent_ns for row in read.measured if row.sent_ns is not None)
    table = dataset(read.rows, read, begin, TimeScale("s", 1e9))
    return [dict(zip(COLUMNS, row, strict=True)) for row in table], read, begin


@pytest.mark.parametrize("name", ["closed", "failing"])
def test_each_line_is_its_row(name: str, request: pytest.FixtureRequest) -> None:
    """Times equal the row's to a ten thousandth of the whole, durations to a microsecond; what is absent is null."""
    lines, read, begin = drawn(request.getfixturevalue(name))
    length = (max(row.end_ns or 0 for row in read.rows) - begin) / 1e9
    for line, row in zip(lines, read.rows, strict=True):
        assert (line["request"], line["phase"], line["outcome"]) == (row.index, row.phase, row.outcome)
        for column, t_ns in (
            ("due", row.scheduled_ns),
            ("sent", row.sent_ns),
            ("first", row.first_output_ns),
        ):
            if t_ns is None:
                assert line[column] is None
            else:
                assert math.isclose(line[column], (t_ns - begin) / 1e9, abs_tol=length * 1e-4)
        for column, ns in (("ttft_ms", row.ttft_ns), ("e2e_ms", row.e2e_ns), ("itl_ms", row.itl_ns)):
            assert line[column] == (None if ns is None else round(ns / 1e6, 3))
        assert line["output"] == row.output_tokens


def test_a_request_without_output_has_no_decode(failing: TrialSubject) -> None:
    """One that failed before its first output is drawn as without output until its end, and ends as failed."""
    lines, read, _ = drawn(failing)
    silent = [line for line, row in zip(lines, read.rows, strict=True) if row.first_output_ns is None]
    assert silent
    for line in silent:
        assert line["first"] is None and line["last"] is None and line["end"] == "failed"
    about = str(waterfall(read, failing.header.plan, "x"))
    assert '"datum":"no output came"' in about


def test_a_gap_stands_where_the_events_say(closed: TrialSubject) -> None:
    """Where a longest gap is marked, it begins with the event after which nothing came for longest."""
    slow = read_rows(closed, events=True)
    assert slow.timelines is not None
    row = slow.rows[-1]
    timeline = slow.timelines[row.index]
    for at in range(5, len(timeline.times_ns)):
        timeline.times_ns[at] += 10**9
    moved = structs.replace(row, last_output_ns=timeline.times_ns[-1], end_ns=timeline.times_ns[-1])
    (line,) = (
        dict(zip(COLUMNS, one, strict=True)) for one in dataset([moved], slow, 0, TimeScale("ns", 1.0))
    )
    assert line["gap"] == timeline.times_ns[4]


def test_without_events_no_gap_is_placed(closed: TrialSubject) -> None:
    """A gap whose place was not read is not drawn; its length is the row's all the same."""
    lines, read, _ = drawn(closed, events=False)
    assert all(line["gap"] is None for line in lines)
    assert [line["gap_ms"] is None for line in lines] == [row.longest_gap_ns is None for row in read.rows]


def test_no_request_no_waterfall(closed: TrialSubject) -> None:
    """A trial without any row has no waterfall."""
    read = structs.replace(read_rows(closed, events=False), rows=())
    assert waterfall(read, closed.header.plan, "x") is None
