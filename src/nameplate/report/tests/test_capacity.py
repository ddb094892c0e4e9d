"""The capacity summary: golden at two widths, every status in words, hostile servers, absent numbers."""

from __future__ import annotations

import pytest
from msgspec import UNSET, UnsetType, structs

from nameplate.contract.identity import Fact
from nameplate.contract.shape import Shape
from nameplate.measure.plate import Plate
from nameplate.measure.plate_builder import build_plate
from nameplate.measure.tests.trials import SHAPE, contract, identity
from nameplate.report.capacity import capacity_summary
from nameplate.report.tests.rendering import (
    COMMAND,
    CONTRACT,
    DIRECTORY,
    ended,
    hold_golden,
    studied,
    text_of,
    verdict_of,
)
from nameplate.report.words import answer, meaning
from nameplate.verdict.boundary import Status, boundary
from nameplate.verdict.shape import ShapeVerdict

PLATE, RECORD, RESULTS = studied()


def shown(plate: Plate, width: int = 80) -> str:
    return text_of(capacity_summary(plate, DIRECTORY, COMMAND, record=RECORD, results=RESULTS), width)


@pytest.mark.parametrize("width", [80, 120])
def test_the_summary_reads_as_agreed(width: int) -> None:
    """The whole summary is as a person once found it good."""
    hold_golden(f"capacity_{width}", shown(PLATE, width))


@pytest.mark.parametrize(
    ("further", "over", "says"),
    [
        (13_141, 9, "At this share some 14,000 more requests would certify it."),
        (768, 12, "At this share some 770 more requests would refute it."),
        (0, 90, "These requests refute it."),
        (None, 12, "No sample of up to 10,000,000 requests would decide it at this share."),
        (UNSET, 12, "not certified. Bounds hold"),
    ],
)
def test_what_is_not_certified_tells_the_sample_it_needs(
    further: int | UnsetType | None, over: int, says: str
) -> None:
    """How many more requests would certify or refute the promise, that none would, or nothing in an old plate."""
    (shape,) = PLATE.shapes
    (entry,) = shape.certified
    whole = structs.replace(entry.whole, over=over, share=over / entry.whole.n)
    entry = structs.replace(entry, whole=whole, further_requests=further)
    plate = structs.replace(PLATE, shapes=(structs.replace(shape, certified=(entry,)),))
    assert says in " ".join(shown(plate).split())


@pytest.mark.parametrize("width", [60, 80, 120])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    """Nothing wraps by itself."""
    assert max(map(len, shown(PLATE, width).splitlines())) <= width


def test_the_answer_comes_first_in_one_sentence() -> None:
    """The first line says the number, the promise and how it was confirmed."""
    first = " ".join(shown(PLATE).splitlines()[:2])
    assert first.startswith("8 concurrent 1000/11 requests hold ttft p95 < 12 s; 9 do not (3 of 3")


def test_every_confirmation_has_its_line() -> None:
    """All six trials stand in the table with their p95 and verdict."""
    lines = [line.split() for line in shown(PLATE).splitlines()]
    trials = [line for line in lines if line and line[-1] in ("pass", "fail") and line[0] in ("8", "9")]
    assert [(line[0], line[1], line[-1]) for line in trials] == [
        (level, str(number), status)
        for level, status in (("8", "pass"), ("9", "fail"))
        for number in (1, 2, 3)
    ]


def test_colour_only_repeats_the_words() -> None:
    """Without colour the same text stands."""
    page = capacity_summary(PLATE, DIRECTORY, COMMAND, record=RECORD, results=RESULTS)
    colored = text_of(page, color=True)
    assert "\x1b[" in colored
    assert Text_plain(colored) == text_of(page)


def Text_plain(text: str) -> str:  # noqa: N802 - reads as what it is
    from rich.text import Text

    return "".join(Text.from_ansi(line).plain + "\n" for line in text.splitlines())


@pytest.mark.parametrize(
    ("status", "levels", "says"),
    [
        (Status.noisy, {6: "pass", 7: "noisy", 8: "fail"}, "at C=7 the trials disagree"),
        (Status.open_above, {64: "pass"}, "At least 64 concurrent"),
        (Status.open_below, {4: "fail"}, "even 4 concurrent"),
        (Status.budget, {6: "pass"}, "At least 6 concurrent"),
        (Status.budget, {}, "the budget ended before any level was confirmed"),
        (Status.invalid, {6: "pass"}, "the evidence does not support one"),
        (Status.interrupted, {}, "the study was interrupted"),
    ],
)
def test_every_status_has_its_sentence(status: Status, levels: dict[int, str], says: str) -> None:
    """Each way in which a search ends is said in words, with a number only where there is one."""
    found = boundary(status, levels)  # type: ignore[arg-type]
    verdict = ShapeVerdict(SHAPE, found, (), found.rated, "because of \x1b[2J")
    plate = build_plate(CONTRACT, [verdict], [], identity(), study_manifest_sha256=None)
    assert says in answer(plate.shapes[0], CONTRACT)
    text = shown(plate)
    assert "\x1b" not in text and f"{status}: " in text and "because of \\x1b[2J" in text


def test_a_lost_server_is_not_said_to_be_an_interruption() -> None:
    """With exit code 5 the sentence and its meaning say that the server was lost; with 130 they do not."""
    for code, says in ((5, True), (130, False)):
        found = boundary(Status.interrupted, {}, exit_code=code)
        verdict = ShapeVerdict(SHAPE, found, (), None, "x")
        shape = build_plate(CONTRACT, [verdict], [], identity(), study_manifest_sha256=None).shapes[0]
        assert ("the server was lost" in answer(shape, CONTRACT)) is says
        assert ("the study was interrupted" in answer(shape, CONTRACT)) is not says
        assert ("The server stopped answering" in meaning(shape, CONTRACT)) is says


def test_rated_zero_is_an_answer_and_not_an_absence() -> None:
    """A server that fails alone is rated 0 in words."""
    found = boundary(Status.confirmed, {1: "fail"}, rated=0)
    plate = build_plate(
        CONTRACT, [ShapeVerdict(SHAPE, found, (), 0, "x")], [], identity(), study_manifest_sha256=None
    )
    assert answer(plate.shapes[0], CONTRACT).startswith("Not one: a single 1000/11 request")
    assert "0 concurrent" in shown(plate)


def test_several_shapes_are_alternatives() -> None:
    """Two shapes get a surface, and the sentence that their maxima are no sum."""
    held = contract("ttft p95 < 12s", shapes=(SHAPE, Shape(2048, 512)))
    other = ShapeVerdict(Shape(2048, 512), ended(Status.interrupted), (), None, "not begun")
    plate = build_plate(
        held, [verdict_of(RESULTS), other], RESULTS, identity(engine="vllm"), study_manifest_sha256=None
    )
    text = shown(plate)
    assert "These numbers are alternatives, one shape at a time, and not a sum." in text
    assert "Capacity surface" in text
    rows = [
        line.split() for line in text.splitlines() if line.startswith("   1000/11") or " 2048/512 " in line
    ]
    assert any("confirmed" in row for row in rows)
    assert ["2048/512", "-", "-"] in [row[:3] for row in rows]


def test_a_hostile_server_cannot_dress_its_plate() -> None:
    """Names and values from the server are harmless text."""
    hostile = "\x1b[31m[bold]owned[/bold]\u202e\n"
    facts = {name: Fact(hostile, hostile) for name in ("engine", "version", "model", "hardware")}
    plate = structs.replace(PLATE, identity=structs.replace(PLATE.identity, facts=facts))
    text = shown(plate)
    assert "\x1b" not in text and "\u202e" not in text
    assert "[bold]owned[/bold]" in text


def test_a_plate_without_trials_is_shown() -> None:
    """Nothing but a verdict: every absent number is a dash, and no section stands empty."""
    verdict = ShapeVerdict(SHAPE, ended(Status.interrupted), (), None, "interrupted by a person")
    plate = build_plate(CONTRACT, [verdict], [], identity(), study_manifest_sha256=None)
    text = text_of(capacity_summary(plate, DIRECTORY, COMMAND))
    assert "no baseline" in text and "Confirmation trials" not in text
    assert "a server that tells nothing of itself" in text


def test_an_invalid_trial_says_why() -> None:
    """A trial that did not count stands in the table, with its reason below."""
    shape = PLATE.shapes[0]
    bad = structs.replace(
        shape.confirmations[0], status="invalid", reasons=("client_lateness: late",), attempt=0
    )
    again = structs.replace(shape.confirmations[0], key="confirmation.c8.t1.retry1", attempt=1)
    changed = structs.replace(shape, confirmations=(bad, again, *shape.confirmations[1:]))
    text = shown(structs.replace(PLATE, shapes=(changed,)))
    assert "confirmation.c8.t1 invalid: client_lateness: late" in text
