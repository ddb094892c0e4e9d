"""Records and timelines come back as they were packed, and nothing else does."""

from __future__ import annotations

import contextlib
from array import array

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nameplate.evidence import timeline
from nameplate.evidence.records import HEADER, USER_STAMPED, Kind, Record, unpack
from nameplate.evidence.timeline import Timeline

i64 = st.integers(-(2**63), 2**63 - 1)
u32 = st.integers(0, 2**32 - 1)


@st.composite
def record(draw: st.DrawFn) -> Record:
    """Make any record that the client could note."""
    kind = draw(st.sampled_from(Kind))
    payload = b"" if kind is Kind.BARE else draw(st.binary(max_size=60))
    size = draw(u32) if kind is Kind.BARE else len(payload)
    return Record(int(kind), draw(u32), draw(i64), draw(i64), draw(i64), size, payload)


def packed(record: Record) -> bytes:
    """Pack a record as the file format says."""
    return HEADER.pack(*record[:6]) + record.payload


@settings(max_examples=40, deadline=None)
@given(st.lists(record(), max_size=20))
def test_records_come_back(records: list[Record]) -> None:
    """A frame of any records decodes to the same records in the same order."""
    assert list(unpack(b"".join(map(packed, records)))) == records


@settings(max_examples=40, deadline=None)
@given(st.lists(record(), min_size=1, max_size=4), st.data())
def test_a_cut_frame_never_gives_a_wrong_record(records: list[Record], data: st.DataObject) -> None:
    """Cut anywhere, a frame gives its first records and then either ends on a boundary or raises ValueError."""
    frame = b"".join(map(packed, records))
    found = []
    with contextlib.suppress(ValueError):
        found += list(unpack(frame[: data.draw(st.integers(0, len(frame)))]))
    assert found == records[: len(found)]


@pytest.mark.parametrize("kind", [0, 12, 255])
def test_an_unknown_kind_is_refused(kind: int) -> None:
    """A kind that this version does not know is not skipped in silence."""
    with pytest.raises(ValueError, match="unknown record kind"):
        list(unpack(HEADER.pack(kind, 0, 0, 0, 0, 0)))


def test_arrival_is_read_time_less_the_kernels_delay() -> None:
    """A stamped read arrived earlier by its delay; one stamped by us arrived, for all we know, when it was read."""
    assert Record(Kind.READ, 0, 1000, 300, 0, 0, b"").arrival_ns == 700
    assert Record(Kind.READ, 0, 1000, 0, 0, 0, b"").arrival_ns == 1000
    assert Record(Kind.READ, 0, 1000, USER_STAMPED, 0, 0, b"").arrival_ns == 1000


@st.composite
def line(draw: st.DrawFn) -> Timeline:
    """Make any timeline."""
    times = array("q", draw(st.lists(i64, max_size=8)))
    counted = draw(st.booleans())
    counts = st.lists(st.integers(-(2**31), 2**31 - 1), min_size=len(times), max_size=len(times))
    return Timeline(draw(u32), times, array("i", draw(counts)) if counted else None)


@settings(max_examples=40, deadline=None)
@given(st.lists(line(), max_size=8))
def test_timelines_come_back(lines: list[Timeline]) -> None:
    """Times and counts come back, and what was not counted stays absent."""
    assert list(timeline.unpack(b"".join(map(timeline.pack, lines)))) == lines


@settings(max_examples=40, deadline=None)
@given(st.lists(line(), min_size=1, max_size=4), st.data())
def test_a_cut_timeline_never_gives_a_wrong_one(lines: list[Timeline], data: st.DataObject) -> None:
    """Cut anywhere, only whole timelines are given."""
    frame = b"".join(map(timeline.pack, lines))
    found = []
    with contextlib.suppress(ValueError):
        found += list(timeline.unpack(frame[: data.draw(st.integers(0, len(frame)))]))
    assert found == lines[: len(found)]


@settings(max_examples=40, deadline=None)
@given(st.binary(max_size=200))
def test_random_bytes_raise_nothing_but_value_errors(frame: bytes) -> None:
    """Bytes that were never packed by us end in ValueError at worst, and ask for no memory."""
    with contextlib.suppress(ValueError):
        list(unpack(frame))
    with contextlib.suppress(ValueError):
        list(timeline.unpack(frame))
