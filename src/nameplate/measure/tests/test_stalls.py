"""A server that stood still is named: when, for how long, and how many requests waited through it."""

from __future__ import annotations

from array import array

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from nameplate.contract.arrivals import ArrivalPlan
from nameplate.contract.plan import TrialPlan
from nameplate.evidence.rows import RequestRow
from nameplate.evidence.timeline import Timeline
from nameplate.measure.result import evaluate
from nameplate.measure.stalls import LISTED, Stalls, measure_stalls
from nameplate.measure.tests.trials import MS, SHAPE, S, evidence, ok_row, open_loop, timeline_of
from nameplate.report.tests.rendering import text_of
from nameplate.report.trial import trial_summary

PLAN = TrialPlan("t", "single", SHAPE, 4096, 600, 2, arrivals=ArrivalPlan(kind="constant", rate=20.0))


def frozen(row: RequestRow, from_ns: int, to_ns: int) -> tuple[RequestRow, Timeline]:
    """Return a request of a server that stands still meanwhile: what would have come then comes after it."""

    def moved(t_ns: int) -> int:
        return t_ns + (to_ns - from_ns) if t_ns > from_ns else t_ns

    # What arrives while the server stands is served as fast as ever once it goes on.
    if from_ns <= row.scheduled_ns < to_ns:
        offset = to_ns - row.scheduled_ns
        times = array("q", (t + offset for t in timeline_of(row).times_ns))
    elif row.scheduled_ns < from_ns:
        times = array("q", map(moved, timeline_of(row).times_ns))
    else:
        times = timeline_of(row).times_ns
    changed = structs.replace(
        row, first_output_ns=times[0], first_answer_ns=times[0], last_output_ns=times[-1], finish_ns=times[-1],
        end_ns=times[-1],
    )  # fmt: skip
    return changed, Timeline(row.index, times, array("i", [1] * len(times)))


def of(pairs: list[tuple[RequestRow, Timeline]], until_ns: int) -> Stalls:
    found = measure_stalls([row for row, _ in pairs], [timeline for _, timeline in pairs], until_ns)
    assert found is not None
    return found


def test_a_freeze_is_named_with_its_time_and_those_who_waited() -> None:
    """Ten seconds without a byte: when it began, how long it lasted, how many waited and how many came meanwhile."""
    begin, end = 20 * S + 7 * MS, 30 * S + 7 * MS
    pairs = [frozen(row, begin, end) for row in open_loop(PLAN)]
    rows = [row for row, _ in pairs]
    found = of(pairs, end + 99 * S)
    (stall,) = found.listed
    assert found.count == 1 and found.bound_ns == S and found.total_ns == stall.length_ns
    assert begin - 60 * MS < stall.begin_ns <= begin
    assert 10 * S <= stall.length_ns < 10 * S + 200 * MS
    assert stall.after_ns == stall.begin_ns - rows[0].scheduled_ns
    until = stall.begin_ns + stall.length_ns
    sent = [row for row in rows if stall.begin_ns < row.scheduled_ns < until]
    assert stall.sent == len(sent) and 200 <= stall.sent <= 204
    assert stall.waited == sum(
        row.scheduled_ns < until and (row.end_ns or 0) > stall.begin_ns for row in rows
    )
    result = evaluate(evidence(rows, plan=PLAN, timelines=[timeline for _, timeline in pairs]))
    assert result.measurement.stalls == found
    said = " ".join(text_of(trial_summary(result, "x"), 120).split())
    assert "Nothing came from the server for 10." in said and f"while {stall.waited} requests waited" in said
    assert f"{stall.sent} of them sent meanwhile" in said
    assert "1 time nothing came for more than 1.000 s, 10.0" in said


def test_an_idle_server_does_not_stand_still() -> None:
    """Where nobody waits, silence is no stall, however long; and a slow first output is what the server takes."""
    rows = [ok_row(n, n * 60 * S) for n in range(20)]
    assert of([(row, timeline_of(row)) for row in rows], 9999 * S).count == 0
    slow = [ok_row(n, n * 60 * S, ttft_ns=9 * S) for n in range(20)]
    found = of([(row, timeline_of(row)) for row in slow], 9999 * S)
    assert found.count == 0 and found.bound_ns == 27 * S
    slow[7] = ok_row(7, 7 * 60 * S, ttft_ns=30 * S)
    (stall,) = of([(row, timeline_of(row)) for row in slow], 9999 * S).listed
    assert (stall.begin_ns, stall.length_ns, stall.waited, stall.sent) == (420 * S, 30 * S, 1, 0)


def test_a_server_that_never_goes_on_stalls_to_the_end() -> None:
    """Requests that our own client cut say nothing came: the stall lasts until they were cut, and says so."""
    rows = [ok_row(n, n * 100 * MS) for n in range(20)]
    hung = [
        structs.replace(
            ok_row(20 + n, 3 * S + n * 100 * MS), outcome="cancelled", first_output_ns=None, last_output_ns=None,
            end_ns=40 * S, output_events=0,
        )
        for n in range(5)
    ]  # fmt: skip
    pairs = [(row, timeline_of(row)) for row in rows] + [
        (row, Timeline(row.index, array("q"), None)) for row in hung
    ]
    (stall,) = of(pairs, 41 * S).listed
    assert (stall.begin_ns, stall.length_ns, stall.waited, stall.sent, stall.ended) == (
        3 * S,
        37 * S,
        5,
        4,
        False,
    )


def test_nothing_sent_has_no_stalls() -> None:
    """Without a measured request there is nothing to tell."""
    assert measure_stalls([], [], S) is None


@settings(max_examples=60, deadline=None)
@given(
    requests=st.lists(
        st.tuples(st.integers(0, 60 * S), st.integers(1, 20 * S), st.integers(0, 3 * S)),
        min_size=1,
        max_size=40,
    )
)
def test_stalls_are_those_of_a_plain_search(requests: list[tuple[int, int, int]]) -> None:
    """Between any two arrivals, the longest part in which somebody always waited, found one by one."""
    rows = [ok_row(n, at, ttft_ns=ttft, itl_ns=itl, tokens=3) for n, (at, ttft, itl) in enumerate(requests)]
    pairs = [(row, timeline_of(row)) for row in rows]
    found = of(pairs, 999 * S)
    begin = min(row.scheduled_ns for row in rows)
    arrivals = sorted({t for _, timeline in pairs for t in timeline.times_ns if t >= begin})
    plain = []
    for before, after in zip([begin, *arrivals], arrivals, strict=False):
        waiting = [row for row in rows if row.scheduled_ns < after and (row.end_ns or 0) > before]
        if waiting:
            length = after - max(before, min(row.scheduled_ns for row in waiting))
            if length > found.bound_ns:
                plain.append((after - length, length, len(waiting)))
    assert found.count == len(plain) and found.total_ns == sum(length for _, length, _ in plain)
    if len(plain) <= LISTED:
        assert [(stall.begin_ns, stall.length_ns, stall.waited) for stall in found.listed] == plain
