"""The wire's history is replayed the same on any number of processes, and its faults are named."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nameplate.evidence.reader import TrialReader
from nameplate.evidence.records import Kind
from nameplate.verify import verify
from nameplate.verify.history import History
from nameplate.verify.shares import replay
from nameplate.verify.tests.making import record, records_of, write_records


def history(directory: Path, processes: int) -> History:
    return replay(directory, TrialReader(directory).header(), {}, {}, processes)


def plain(found: History) -> object:
    """Return a history as values that compare, in an order that does not depend on the shares."""
    return (
        dict(sorted(found.rows.items())),
        {i: (t.times_ns, t.tokens) for i, t in sorted(found.timelines.items())},
        found.bare,
        sorted(found.totals.since_empty_ns),
        sorted(found.totals.arrival_doubt_ns),
        (found.totals.user_stamped, found.totals.last_ns, found.records, found.raw_bytes),
        sorted(found.faults),
        found.torn,
    )


@pytest.mark.parametrize("processes", [2, 3])
def test_any_number_of_processes_gives_the_same_history(trial: Path, processes: int) -> None:
    """Shares joined are the whole: rows, timelines, lateness, counts and faults."""
    records = records_of(trial)
    write_records(trial, [*records, records[-1], record(Kind.SENT, 77, records[-1].t_ns)])
    alone = history(trial, 1)
    assert len(alone.rows) == 8 and len(alone.faults) == 2
    assert plain(history(trial, processes)) == plain(alone)


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (Kind.SCHEDULED, "a record SCHEDULED of request 4 a second time"),
        (Kind.SENT, "a record SENT of request 4 a second time"),
        (Kind.BODY_SENT, "a record BODY_SENT of request 4 a second time"),
    ],
)
def test_a_record_that_can_stand_only_once_is_named_when_repeated(trial: Path, kind: Kind, said: str) -> None:
    """A second scheduling or sending of a request changes nothing and is a fault."""
    records = records_of(trial)
    before = history(trial, 1)
    at = next(i for i, r in enumerate(records) if r.request == 4 and r.kind == Kind.BODY_SENT)
    write_records(trial, [*records[: at + 1], record(kind, 4, records[at].t_ns), *records[at + 1 :]])
    after = history(trial, 1)
    assert after.faults == [said]
    assert after.rows == before.rows


def test_a_read_before_its_request_was_sent_is_a_fault(trial: Path) -> None:
    """Bytes cannot arrive for a request that was not sent, by record or by clock."""
    records = [r for r in records_of(trial) if not (r.request == 4 and r.kind == Kind.SENT)]
    write_records(trial, records)
    assert history(trial, 1).faults == ["a record READ of request 4 before it was sent"]


def test_an_arrival_before_its_request_is_a_fault(trial: Path) -> None:
    """A delay so large that the answer came before the question is not believed in silence."""
    records = records_of(trial)
    at = next(i for i, r in enumerate(records) if r.request == 4 and r.kind == Kind.READ)
    records[at] = records[at]._replace(delay_ns=10**12)
    write_records(trial, records)
    assert history(trial, 1).faults == ["a record of request 4 arrived before the request was sent"]


def test_a_history_that_ends_early_leaves_unfinished_requests(trial: Path) -> None:
    """A request whose end was never recorded is unfinished, and everything before it stands."""
    records = [r for r in records_of(trial) if r.request != 7 or r.kind in (Kind.SCHEDULED, Kind.SENT)]
    write_records(trial, records)
    found = history(trial, 1)
    assert found.rows[7].outcome == "unfinished"
    assert {row.outcome for index, row in found.rows.items() if index != 7} == {"ok"}


@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_mangled_records_never_raise(sealed: Path, trial: Path, data: st.DataObject) -> None:
    """Whatever fields the records hold, a history and a report come back."""
    records = records_of(sealed)
    i64 = st.integers(-(2**63), 2**63 - 1)
    for _ in range(data.draw(st.integers(1, 6))):
        at = data.draw(st.integers(0, len(records) - 1))
        payload = data.draw(st.sampled_from([records[at].payload, b"", b"\r\n", b"x" * 50]))
        records[at] = records[at]._replace(
            kind=data.draw(st.integers(0, 12)),
            request=data.draw(st.sampled_from([records[at].request, 0, 999, 2**32 - 1])),
            t_ns=data.draw(st.one_of(st.just(records[at].t_ns), i64)),
            delay_ns=data.draw(st.one_of(st.just(-1), i64)),
            since_empty_ns=data.draw(i64),
            size=len(payload),
            payload=payload,
        )
    write_records(trial, records)
    assert isinstance(history(trial, 1).faults, list)
    assert verify(trial).exit_code in (0, 4)


def test_rows_that_were_rebuilt_can_be_encoded(trial: Path) -> None:
    """A rebuilt row is a row like any other."""
    for row in history(trial, 1).rows.values():
        assert msgspec.json.decode(msgspec.json.encode(row), type=type(row)) == row
