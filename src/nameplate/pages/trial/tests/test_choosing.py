"""The selection of a waterfall: bounded, stated, and with everything that matters in it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from nameplate.contract.plan import TrialPlan
from nameplate.contract.shape import Shape
from nameplate.evidence.rows import RequestRow
from nameplate.measure.tests.trials import MS, closed_loop
from nameplate.pages.trial.choosing import choose

PLAN = TrialPlan("t", "single", Shape(64, 8), 4, 100, 0)


def rows_with(bad: set[int]) -> list[RequestRow]:
    rows = closed_loop(4, 200, ttft=lambda at: (100 + at % 7) * MS)
    return [structs.replace(row, outcome="reset") if row.index in bad else row for row in rows]


@given(bad=st.sets(st.integers(2, 201), max_size=30), most=st.integers(40, 400))
def test_a_selection_is_bounded_ordered_and_without_doubles(bad: set[int], most: int) -> None:
    """At most as many as asked, each once, in order of start; all of them where there is room."""
    rows = rows_with(bad)
    chosen = choose(rows, PLAN, most)
    indices = [row.index for row in chosen.rows]
    assert len(indices) == min(most, len(rows)) == len(set(indices))
    starts = [row.sent_ns or row.scheduled_ns for row in chosen.rows]
    assert starts == sorted(starts)


def test_the_failed_and_the_slowest_are_in_it() -> None:
    """Where not all are shown, those that failed and the one that waited longest are."""
    rows = rows_with({50, 60})
    slow = structs.replace(rows[120], first_output_ns=(rows[120].sent_ns or 0) + 10**12)
    chosen = choose([*rows[:120], slow, *rows[121:]], PLAN, 40)
    shown = {row.index for row in chosen.rows}
    assert {50, 60, slow.index} <= shown
    assert "40 of" in chosen.said and "2 of 2 that did not end well" in chosen.said


def test_all_are_shown_where_there_is_room() -> None:
    """A small trial is shown whole, and says so."""
    assert choose(closed_loop(2, 6), PLAN, 400).said == "all 8 requests"
