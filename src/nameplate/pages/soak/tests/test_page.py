"""The page of a soak: its numbers are the record's, nothing is bridged, and every request has its fate."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from nameplate.contract.identity import IdentityChange
from nameplate.measure.soak.combine import measure_soak
from nameplate.measure.soak.fold import measure_segment
from nameplate.measure.soak.segment import SegmentResult
from nameplate.measure.soak.tests.test_combine import piece
from nameplate.measure.soak.tests.test_fates import published
from nameplate.measure.soak.tests.test_lives import restarted
from nameplate.measure.soak_record import encode_soak_record
from nameplate.pages.report import report_page
from nameplate.pages.soak.course import axis_of, windows_shown
from nameplate.pages.soak.fates import MOST_LEFT, ranges
from nameplate.pages.soak.tests.soaks import subject
from nameplate.pages.soak.trends import trends_of
from nameplate.pages.subject import SoakSubject
from nameplate.pages.tests.reading import Page, wrong

HOSTILE = "</script><script>alert(1)</script>\u2028\u202e\"'&<img src=x onerror=alert(1)>"


def read(of: SoakSubject) -> Page:
    return Page(report_page([of]))


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> SoakSubject:
    """Return a soak of two segments, half an hour apart, whose server is slower in the second."""
    base = tmp_path_factory.mktemp("two")
    first = piece(base / "soak.s1", window_s=120)
    return subject([first, piece(base / "soak.s2", after_s=5400, ttft_ns=30 * 10**9, window_s=120)])


@pytest.fixture(scope="module")
def lost(tmp_path_factory: pytest.TempPathFactory) -> SegmentResult:
    """Return half an hour in which the server was lost and came back."""
    return restarted(tmp_path_factory.mktemp("lost") / "soak.s1")


@pytest.fixture(scope="module")
def left(tmp_path_factory: pytest.TempPathFactory) -> SegmentResult:
    """Return eight hours at whose end 38 requests are left."""
    return measure_segment(
        published(tmp_path_factory.mktemp("left") / "soak.s1", killed=True).write(sealed=False)
    )


@pytest.mark.parametrize("which", ["two", "lost", "left"])
def test_every_number_stands_in_the_record(request: pytest.FixtureRequest, which: str) -> None:
    """Whatever has a path is what the record holds there, to the last digit."""
    held = request.getfixturevalue(which)
    of = held if isinstance(held, SoakSubject) else subject([held])
    page = read(of)
    assert len(page.values) > 200
    assert list(wrong(page, {"soak.json": encode_soak_record(of.record)})) == []
    # The check itself: a record that differs is found out.
    changed = structs.replace(of.record.result, counts=structs.replace(of.record.result.counts, ok=1))  # type: ignore[union-attr,type-var]
    other = encode_soak_record(structs.replace(of.record, result=changed))
    assert "result.counts.ok" in {path for path, _, _ in wrong(page, {"soak.json": other})}


def test_a_gap_is_not_bridged(two: SoakSubject) -> None:
    """No run of any timeline has points on both sides of the gap, and both segments are marked."""
    (gap,) = [one for one in axis_of(two.record.result).between if one.kind == "gap"]  # type: ignore[arg-type]
    begin, end = gap.begin_s / 60, gap.end_s / 60
    seen = 0
    for chart in read(two).charts:
        rows: list[dict[str, Any]] = chart["data"]["values"]
        if not rows or "r" not in rows[0]:
            continue
        seen += 1
        runs = {row["r"]: [one["t"] for one in rows if one["r"] == row["r"]] for row in rows}
        assert len(runs) >= 2
        assert all(max(times) <= begin + 0.1 or min(times) >= end - 0.1 for times in runs.values())
    assert seen >= 4


def test_a_loss_is_shaded_and_not_bridged(lost: SegmentResult) -> None:
    """Windows before and after the outage are of different runs; what it cost is said, with the identity's changes."""
    of = subject([lost], exit_code=1)
    page = read(of)
    (outage,) = [one for one in axis_of(of.record.result).between if one.kind == "outage"]  # type: ignore[arg-type]
    assert (outage.begin_s, outage.end_s) == (602, 640)
    rows = page.rows("Output tokens a second that arrived")
    before = {row["r"] for row in rows if row["t"] < 602 / 60}
    after = {row["r"] for row in rows if row["t"] > 640 / 60}
    assert before and after and not before & after
    assert "Server lost" in page.text and "process_start_time_s changed from" in page.text
    assert "requests failed" in page.text and "misleading" in page.text


def test_the_last_38_are_named(left: SegmentResult) -> None:
    """Sent = ok + failed + cancelled + unfinished in numbers; each request without an end is a row with its fate."""
    page = read(subject([left], exit_code=130))
    counts = left.counts
    assert counts.unfinished == 38 and f"{counts.sent:,} sent = {counts.ok:,} ok" in page.text
    named = {raw for _, path, raw in page.values if ".unfinished." in path and path.endswith(".index")}
    assert named == {request.index for request in left.unfinished}
    fates = {raw for _, path, raw in page.values if ".unfinished." in path and path.endswith(".fate")}
    assert fates == {request.fate for request in left.unfinished} and "queued or in prefill" in page.text
    assert "Completed requests alone mislead" in page.text
    bar = {row["fate"]: row["n"] for row in page.rows("by what became of them")}
    assert bar == {"ok": counts.ok, "unfinished": 38} and sum(bar.values()) == counts.sent


def test_thousands_without_an_end_are_all_named(left: SegmentResult) -> None:
    """Beyond the table's rows each is named by its number, so the page stays small and nothing is left out."""
    one = left.unfinished[0]
    many = tuple(structs.replace(one, index=at) for at in range(20_000))
    page = read(subject([structs.replace(left, unfinished=many)]))
    named = [path for _, path, _ in page.values if ".unfinished." in path and path.endswith(".index")]
    assert len(named) == MOST_LEFT and f"{MOST_LEFT}-19999" in page.text
    assert ranges([5, 3, 4, 9]) == "3-5, 9"
    assert "and 500 more" in ranges(range(0, 2000, 2))


def test_lines_are_drawn_only_through_what_moved(two: SoakSubject, lost: SegmentResult) -> None:
    """A step has its levels before and after; steady and undecided series have no line."""
    result = two.record.result
    assert result is not None and result.drift.conclusion == "stepped"
    before, after = trends_of(result, "ttft_p50", "s2")
    assert before.begin == before.end < after.begin == after.end and before.end_s == after.begin_s
    assert trends_of(result, "itl_p50", "s2") == ()
    assert trends_of(measure_soak([lost]), "ttft_p50", "s2") == ()


def test_a_soak_that_runs_and_one_that_never_began_have_a_page(two: SoakSubject) -> None:
    """Both say so first; nothing is made up."""
    running = structs.replace(two, record=structs.replace(two.record, exit_code=None, left_ns=10**12))
    page = read(running)
    assert "Not ended: " in page.text and "nameplate watch" in page.text
    never = structs.replace(two, record=structs.replace(two.record, exit_code=None, result=None, segments=()))
    page = read(never)
    assert "Nothing was measured yet of 1000/11" in page.text and page.values == [] and page.charts == []
    cut = structs.replace(two, record=structs.replace(two.record, exit_code=130, left_ns=10**12))
    assert "--resume" in read(cut).text


def test_hostile_words_do_nothing(lost: SegmentResult) -> None:
    """Names, errors and identities of a server or a file are text, wherever they stand; so are those of segments."""
    change = IdentityChange("model", "changed", HOSTILE, HOSTILE * 1000)
    part = structs.replace(lost.parts[0], changes=(change,), ends=HOSTILE)
    outage = structs.replace(lost.outages[0], sign=HOSTILE, failed_by={HOSTILE: 3})
    counts = structs.replace(lost.counts, failed_by={HOSTILE: lost.counts.failed})
    window = structs.replace(lost.windows[0], notes=(HOSTILE,))
    segment = structs.replace(
        lost, segment=f"soak.{HOSTILE}", counts=counts, damage=(HOSTILE,), torn=(HOSTILE,),
        windows=(window, *lost.windows[1:]), outages=(outage,),
    )  # fmt: skip
    of = subject([lost])
    result = of.record.result
    assert result is not None
    result = structs.replace(
        result, parts=(part,), segments=(segment,), counts=counts, misleading=(HOSTILE,),
        warm_up=structs.replace(result.warm_up, windows=1, detail=HOSTILE),
        drift=structs.replace(result.drift, reasons=(HOSTILE,)),
    )  # fmt: skip
    record = structs.replace(of.record, result=result, command=("nameplate", HOSTILE), tool_version=HOSTILE)
    clean = read(of)
    page = read(structs.replace(of, record=record, directory=Path("runs") / HOSTILE.replace("/", "")))
    assert "alert(1)" in page.text and not {"img", "iframe"} & set(page.tags)
    assert page.tags.count("script") - len(page.charts) == clean.tags.count("script") - len(clean.charts)
    assert "\u202e" not in page.text and "\u2028" not in page.text


def test_a_page_is_bounded_whatever_the_soak(two: SoakSubject) -> None:
    """Ten thousand windows come to a page below 3 MB, which says that one of so many is shown."""
    result = two.record.result
    assert result is not None
    first = result.segments[0]
    windows = tuple(structs.replace(first.windows[5], number=at) for at in range(10_000))
    course = structs.replace(
        first.courses[0],
        **{name: tuple(getattr(first.courses[0], name)[:1] * 480) for name in ("t_ns", "mean", "min", "max")},
    )
    many = structs.replace(first, windows=windows, courses=(course,) * 14)
    of = structs.replace(
        two, record=structs.replace(two.record, result=structs.replace(result, segments=(many,) * 3))
    )
    shown = windows_shown(of.record.result)  # type: ignore[arg-type]
    assert (shown.whole, shown.every) == (30_000, 63)
    page = report_page([of])
    assert len(page.encode()) < 3_000_000 and "one of 63 of 30,000" in Page(page).text
