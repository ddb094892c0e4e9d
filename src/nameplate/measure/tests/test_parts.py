"""The part of each request in a window: edges cut a gap of every stream, and a stall must not hide behind one."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nameplate.evidence.rows import RequestRow
from nameplate.evidence.timeline import Timeline
from nameplate.measure.parts import Part, gaps_of, parts_of, silent_streams
from nameplate.measure.tests.trials import MS, S, ok_row
from nameplate.measure.windows import Window, tokens_inside

WINDOW = Window(100 * S, 110 * S, "begins", "ends")


def stream(
    index: int, *times_ms: int, end_ms: int | None = None, size: int = 1
) -> tuple[RequestRow, Timeline]:
    """Return a stream of one request: chunks so many ms after the window's begin, in flight until `end_ms`."""
    times = array("q", (WINDOW.begin_ns + t * MS for t in times_ms))
    end_ns = None if end_ms is None else WINDOW.begin_ns + end_ms * MS
    row = ok_row(
        index,
        90 * S,
        slot=index,
        output_events=len(times),
        output_tokens=size * len(times),
        first_output_ns=times[0],
        last_output_ns=times[-1],
        end_ns=end_ns,
    )
    return row, Timeline(index, times, array("i", [size] * len(times)))


def parts(*streams: tuple[RequestRow, Timeline]) -> list[Part]:
    rows = [row for row, _ in streams]
    return parts_of(
        WINDOW, [line for _, line in streams], {row.index: row.output_tokens for row in rows}, rows
    )


EVEN = range(-1000, 11_000, 100)


@pytest.mark.parametrize("shift", range(0, 100, 7))
@pytest.mark.parametrize("size", [1, 3])
def test_an_even_stream_has_its_own_pace_wherever_the_edges_fall(shift: int, size: int) -> None:
    """A chunk each 100 ms is an ITL of 100 ms over its tokens, and no silence, however the window lies."""
    (part,) = parts(stream(0, *(t + shift for t in EVEN), size=size))
    assert part.itl_ns == pytest.approx(100 * MS / size)
    assert not part.silent
    assert set(part.gaps_ns) == {100 * MS}
    assert len(part.gaps_ns) == part.events == 100


def test_a_stream_that_falls_silent_is_slower_by_its_silence() -> None:
    """One that stops after four seconds of ten has the ITL of ten seconds, and a gap that never ended."""
    (part,) = parts(stream(0, *range(-1000, 4000, 100)))
    assert part.silent
    assert part.itl_ns == pytest.approx(10 * S / 39)
    assert gaps_of([part], 0).censored == 1


def test_a_stream_that_wakes_up_is_slower_by_its_sleep() -> None:
    """One that was silent until the sixth second has the ITL of the whole window and a gap of its sleep."""
    (part,) = parts(stream(0, -1000, *range(6000, 11_000, 100)))
    assert part.itl_ns == pytest.approx(9.9 * S / 40)
    assert max(part.gaps_ns) == 7 * S


def test_an_answer_that_ended_is_not_silent() -> None:
    """A request that ended within the window has no open silence: its stream goes on with another."""
    (part,) = parts(stream(0, *range(-1000, 4000, 100), end_ms=4000))
    assert not part.silent
    assert part.itl_ns == pytest.approx(100 * MS)


def test_one_chunk_shortly_before_the_end_is_no_silence() -> None:
    """A request of which one chunk came is held against the longest gap of all others."""
    usual = stream(0, *EVEN)
    (_, late) = parts(usual, stream(1, 9950))
    assert not late.silent and late.itl_ns is None
    (_, stuck) = parts(usual, stream(1, 5000))
    assert stuck.silent


def test_a_stream_without_a_chunk_is_counted() -> None:
    """Nothing at all within the window: no part, a silent stream, a gap at its worst."""
    usual, gone = stream(0, *EVEN), stream(1, -1000, -900)
    found = parts(usual, gone)
    assert [part.index for part in found] == [0]
    assert silent_streams(2, [usual[0], gone[0]], found) == 1
    assert gaps_of(found, 1).censored == 1


@given(
    st.lists(
        st.lists(st.integers(-3000, 13_000), min_size=1, max_size=30, unique=True).map(sorted), max_size=5
    ),
    st.integers(1, 4),
)
def test_parts_hold_what_the_window_holds(times: list[Sequence[int]], size: int) -> None:
    """Events of the parts are the events within the window, and no ITL is negative or longer than the window."""
    streams = [stream(index, *moments, size=size) for index, moments in enumerate(times)]
    found = parts(*streams)
    totals = {row.index: row.output_tokens for row, _ in streams}
    inside = tokens_inside(WINDOW, [line for _, line in streams], totals)
    assert sum(part.events for part in found) * size == inside.tokens
    for part in found:
        assert part.itl_ns is None or 0 < part.itl_ns <= WINDOW.length_ns
