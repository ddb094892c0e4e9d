"""A segment's measurement: windows, sums, rates, whatever pieces its files come in."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from nameplate.contract.arrivals import ArrivalPlan
from nameplate.contract.errors import EvidenceError
from nameplate.evidence import layout
from nameplate.evidence.merge import merge_workers
from nameplate.evidence.records import HEADER
from nameplate.measure.soak.combine import measure_soak
from nameplate.measure.soak.fold import SegmentFold, measure_segment
from nameplate.measure.soak.result import encode_soak
from nameplate.measure.soak.tests.segments import BEGAN, Writing, loop
from nameplate.measure.tests.trials import S


@pytest.fixture
def soak(tmp_path: Path) -> Writing:
    """Return an hour of four clients on a server that works on three at once, orderly to its end."""
    writing = Writing(tmp_path / "segment", slos=("ttft p95 < 10s",))
    last = loop(writing, until_ns=BEGAN + 3600 * S, running=3, ttft_ns=20 * S)
    writing.orderly(BEGAN + 3600 * S, last)
    writing.sampled(range(BEGAN, last, S), running=3, waiting=1, kv_usage_mean=0.5, process_start_time_s=1.0)
    return writing


def test_windows_sum_up_to_the_totals(soak: Writing) -> None:
    """Requests sent, completed and tokens over all windows are those of all rows."""
    result = measure_segment(soak.write())
    rows = soak.rows
    assert result.counts.sent == result.counts.ok == len(rows) and result.counts.balanced
    assert sum(window.sent for window in result.windows) == len(rows)
    assert sum(window.completed for window in result.windows) == len(rows)
    assert sum(window.output_tokens for window in result.windows) == sum(r.output_tokens or 0 for r in rows)
    assert sum(window.input_tokens for window in result.windows) == sum(r.prompt_tokens or 0 for r in rows)
    assert not any(window.estimated for window in result.windows)
    assert not result.torn and not result.damage


def test_windows_hold_what_happened_in_them(soak: Writing) -> None:
    """A request's TTFT stands in the window of its first output, its end in that of its end; n is told."""
    result = measure_segment(soak.write())
    for window in result.windows:
        inside = [r for r in soak.rows if window.begin_ns <= (r.first_output_ns or 0) < window.end_ns]
        ended = [r for r in soak.rows if window.begin_ns <= (r.end_ns or 0) < window.end_ns]
        assert window.ttft.n == len(inside) and window.e2e.n == window.completed == len(ended)
    # Of three that end one had waited for the server, as long as one of them takes.
    assert result.windows[1].ttft.mean == pytest.approx(27e9, rel=0.05)


def test_outstanding_is_the_clients_own_count(soak: Writing) -> None:
    """Four are outstanding from the first send to the end of submission, though only three run."""
    result = measure_segment(soak.write())
    window = result.windows[3]
    assert window.outstanding is not None and window.server.running is not None
    assert window.outstanding.mean == pytest.approx(4) and window.outstanding.max == 4
    assert window.server.running.mean == 3 and window.server.waiting is not None


def test_mean_outstanding_is_exact_over_all_windows(soak: Writing) -> None:
    """The time that requests spent in flight is what the windows' means come to, whatever cuts them."""
    result = measure_segment(soak.write())
    spent = sum((row.end_ns or 0) - (row.sent_ns or 0) for row in soak.rows)
    held = sum(w.outstanding.mean * w.observed_ns for w in result.windows if w.outstanding is not None)
    assert held == pytest.approx(spent)


def test_last_windows_are_partial_and_drained(soak: Writing) -> None:
    """The window after submission is of the drain, and says how much of it was observed."""
    result = measure_segment(soak.write())
    last = result.windows[-1]
    assert last.load == "drain" and last.partial and last.notes
    assert [window.load for window in result.windows[:12]] == ["submission"] * 12


def test_rates_name_their_events(soak: Writing) -> None:
    """Each rate has a window with the events at its edges, and divides by its length."""
    result = measure_segment(soak.write())
    named = {(rate.of, rate.window.ends) for rate in result.rates}
    assert ("output tokens that arrived", "submission ended, to the whole step before") in named
    assert ("output tokens that arrived", "the drain ended") in named
    assert ("output tokens of ok requests alone", "last ok request ended") in named
    whole = next(rate for rate in result.rates if rate.window.ends == "the drain ended")
    assert whole.counted == sum(row.output_tokens or 0 for row in soak.rows)
    assert whole.per_s == pytest.approx(whole.counted * 1e9 / whole.window.length_ns)


@pytest.mark.parametrize("counted", [True, False])
def test_tokens_without_counts_are_spread_and_say_so(tmp_path: Path, counted: bool) -> None:
    """Tokens that the server did not count along add up all the same, and are estimated."""
    writing = Writing(tmp_path / "segment")
    last = loop(writing, until_ns=BEGAN + 900 * S, counted=counted)
    writing.orderly(BEGAN + 900 * S, last)
    result = measure_segment(writing.write())
    assert sum(w.output_tokens for w in result.windows) == sum(r.output_tokens or 0 for r in writing.rows)
    assert all(window.estimated is not counted for window in result.windows if window.output_tokens)


@settings(max_examples=10, deadline=None)
@given(cuts=st.lists(st.floats(0, 1), min_size=1, max_size=4))
def test_folding_in_pieces_is_folding_at_once(
    tmp_path_factory: pytest.TempPathFactory, cuts: list[float]
) -> None:
    """A fold that takes up while the files grow, cut anywhere, comes to the same result."""
    root = tmp_path_factory.mktemp("pieces")
    writing = Writing(root / "whole" / "segment", duration_s=60, window_s=15)
    last = loop(writing, until_ns=BEGAN + 60 * S, running=3, counted=False)
    writing.orderly(BEGAN + 60 * S, last)
    writing.sampled(range(BEGAN, last, S), running=3, waiting=1)
    whole = writing.write()
    grown = root / "grown" / "segment"
    grown.mkdir(parents=True)
    (grown / layout.HEADER).write_bytes((whole / layout.HEADER).read_bytes())
    fold = SegmentFold(grown)
    files = (layout.JOURNAL, layout.REQUESTS, layout.EVENTS, layout.READS, layout.SERVER, layout.CLIENT)
    for share in [*sorted(cuts), 1.0]:
        for name in files:
            data = (whole / name).read_bytes()
            (grown / name).write_bytes(data[: int(len(data) * share)])
        fold.advance()
        fold.finish()
    (grown / layout.MANIFEST).write_bytes(b"{}")
    assert fold.finish() == measure_segment(whole)


def test_workers_files_are_read_as_one_before_and_after_they_are_joined(tmp_path: Path) -> None:
    """A fold that saw two workers' files goes on when they became one."""
    writing = Writing(tmp_path / "segment", duration_s=600)
    last = loop(writing, until_ns=BEGAN + 600 * S)
    writing.orderly(BEGAN + 600 * S, last)
    directory = writing.write()
    result = measure_segment(directory)
    names = (layout.REQUESTS, layout.EVENTS, layout.READS)
    whole = {name: (directory / name).read_bytes() for name in names}
    for name in names:
        (directory / name).rename(directory / f"{name}.0")
        (directory / f"{name}.1").write_bytes(b"")
    fold = SegmentFold(directory)
    assert fold.finish().counts == result.counts
    for name in names:
        (directory / name).write_bytes(whole[name])
        (directory / f"{name}.0").unlink()
        (directory / f"{name}.1").unlink()
    assert fold.finish() == result


def test_torn_workers_files_are_joined_without_their_tails(tmp_path: Path) -> None:
    """Two workers that were killed leave two torn files of each name: joined, they tell what they told apart."""
    writing = Writing(tmp_path / "segment", duration_s=60, window_s=30)
    writing.header = structs.replace(writing.header, workers=2)
    loop(writing, until_ns=BEGAN + 60 * S)
    writing.note(BEGAN, "submit_began")
    rows, timelines, records = writing.rows, writing.timelines, writing.records
    names = (layout.REQUESTS, layout.EVENTS, layout.READS)
    for worker in (0, 1):
        writing.rows = [row for row in rows if row.index % 2 == worker]
        writing.timelines = [held for held in timelines if held.index % 2 == worker]
        writing.records = [held for held in records if HEADER.unpack_from(held[1])[1] % 2 == worker]
        directory = writing.write(sealed=False)
        for name in names:
            data = (directory / name).read_bytes()
            (directory / f"{name}.{worker}").write_bytes(data[: len(data) * 4 // 5 - 3])
            (directory / name).unlink()
    apart = measure_segment(directory)
    merge_workers(directory, 2)
    joined = measure_segment(directory)
    assert apart.counts == joined.counts and apart.counts.sent > 20
    assert apart.unfinished == joined.unfinished and apart.windows == joined.windows
    assert len(apart.torn) == 6 and not joined.torn


@pytest.mark.parametrize(("limit", "sound"), [(4, True), (5, False), (None, False)])
def test_an_overrun_that_rows_do_not_bear_out_is_damage(
    tmp_path: Path, limit: int | None, sound: bool
) -> None:
    """As many as the limit must have been unanswered when the load ended; a closed loop has no limit."""
    writing = Writing(tmp_path / "segment", duration_s=600)
    if limit is not None:
        arrivals = ArrivalPlan(rate=1.0, outstanding_limit=limit)
        plan = structs.replace(writing.header.plan, arrivals=arrivals)
        writing.header = structs.replace(writing.header, plan=plan)
    last = loop(writing, until_ns=BEGAN + 300 * S, ttft_ns=20 * S)
    writing.orderly(BEGAN + 300 * S, last, reason="outstanding_limit")
    result = measure_segment(writing.write())
    assert result.ended_by == "outstanding_limit"
    assert (not result.damage) is sound, result.damage


def test_a_repeated_row_is_damage(soak: Writing) -> None:
    """Two rows of one index cannot both be true: they are counted once, and said."""
    soak.rows.append(soak.rows[5])
    result = measure_segment(soak.write())
    assert result.counts.duplicates == 1 and not result.counts.balanced
    assert any("repeat an index" in said for said in result.damage)


def test_a_forged_moment_costs_nothing(soak: Writing) -> None:
    """A time three centuries ahead is damage, and no memory."""
    soak.note(BEGAN, "window")
    row = soak.rows[-1]
    soak.rows[-1] = type(row)(**{**{f: getattr(row, f) for f in row.__struct_fields__}, "end_ns": 1 << 62})
    result = measure_segment(soak.write())
    assert any("far beyond" in said for said in result.damage)


def test_forged_numbers_are_measured_or_refused(tmp_path: Path) -> None:
    """Whatever a row claims, measuring it ends with a result or with a refusal that people can read."""
    writing = Writing(tmp_path / "segment", duration_s=30, window_s=10)
    last = loop(writing, until_ns=BEGAN + 30 * S)
    writing.orderly(BEGAN + 30 * S, last)
    directory = writing.write()
    lines = (directory / layout.REQUESTS).read_bytes().splitlines(keepends=True)
    row = msgspec.json.decode(lines[7])
    for name in [name for name, value in row.items() if isinstance(value, int)]:
        for forged in (1 << 62, (1 << 64) - 1):
            lines[7] = msgspec.json.encode({**row, name: forged}) + b"\n"
            (directory / layout.REQUESTS).write_bytes(b"".join(lines))
            with suppress(EvidenceError):
                encode_soak(measure_soak([measure_segment(directory)]))


def test_more_windows_than_anybody_can_look_at_are_refused(tmp_path: Path) -> None:
    """A plan of three centuries has no windows to show."""
    writing = Writing(tmp_path / "segment", duration_s=10**10)
    with pytest.raises(EvidenceError, match="more windows"):
        measure_segment(writing.write())


def test_what_is_no_trial_is_refused(tmp_path: Path) -> None:
    """A directory without a header is no segment."""
    with pytest.raises(EvidenceError):
        measure_segment(tmp_path)
