"""`--fail-if`: what it reads, and when it is broken, held or not known."""

from __future__ import annotations

import pytest

from nameplate.compare.comparing import Asked, compare_sides
from nameplate.compare.conditions import FailIf
from nameplate.compare.side import Observed
from nameplate.compare.tests.making import MS, cell, member, plain, side, source, trials
from nameplate.contract.errors import CallerError

BASE = (100 * MS, 100.4 * MS, 99.6 * MS)


def outcome(
    condition: str, a: tuple[float | Observed, ...], b: tuple[float | Observed, ...], name: str = "ttft p95"
) -> tuple[str, int]:
    told = compare_sides(
        plain("A", a, name), plain("B", b, name), Asked(conditions=(FailIf.parse(condition),))
    )
    return told.conditions[0].outcome, told.exit_code


@pytest.mark.parametrize(
    ("condition", "b", "expected"),
    [
        ("ttft p95 +5%", (120 * MS, 121 * MS, 119 * MS), ("broken", 1)),
        ("ttft p95 +5%", BASE, ("held", 0)),
        ("ttft p95 +5%", (105 * MS, 106 * MS, 104 * MS), ("not known", 3)),
        ("ttft p95 +5%", (120 * MS, 121 * MS), ("not known", 3)),
        ("TTFT P95 + 10ms", (120 * MS, 121 * MS, 119 * MS), ("broken", 1)),
        ("ttft p95 +30ms", (120 * MS, 121 * MS, 119 * MS), ("held", 0)),
        ("ttft p95 +5%", (80 * MS, 81 * MS, 79 * MS), ("held", 0)),
        ("ttft p95 +0%", (120 * MS, 121 * MS, 119 * MS), ("broken", 1)),
        ("ttft p95 +5%", (Observed(None, 64, infinite=True),) * 3, ("broken", 1)),
        ("ttft p95 +5%", (120 * MS, 121 * MS, Observed(None, 64, infinite=True)), ("not known", 3)),
        ("itl p50 +5%", BASE, ("not known", 3)),
    ],
)
def test_outcomes(condition: str, b: tuple[float | Observed, ...], expected: tuple[str, int]) -> None:
    """Only a whole interval beyond the limit breaks it; one that reaches the limit, or none at all, is not known."""
    assert outcome(condition, BASE, b) == expected


def test_without_a_condition_the_answer_decides() -> None:
    """Something known about what was asked is 0, better, worse or equal; nothing known is 3."""

    def code(values: tuple[float, ...]) -> int:
        return compare_sides(plain("A", BASE), plain("B", values), Asked()).exit_code

    assert code(BASE) == code((120 * MS, 121 * MS, 119 * MS)) == code((80 * MS, 81 * MS, 79 * MS)) == 0
    assert code(BASE[:1]) == code((90 * MS, 100 * MS, 110 * MS)) == 3


def test_rates_fall() -> None:
    """A rate is broken by its fall: by a share, or by an absolute number."""
    a, b = (100.0, 101.0, 99.0), (90.0, 91.0, 89.0)
    assert outcome("output_rate -3%", a, b, "output_rate") == ("broken", 1)
    assert outcome("output-rate -5tok/s", a, b, "output_rate") == ("broken", 1)
    assert outcome("output_rate -20/s", a, b, "output_rate") == ("held", 0)


def test_errors_rise_by_points() -> None:
    """An error rate is compared by percentage points: from none every rise would be infinite."""
    none = tuple(Observed(0.0, 64, count=0) for _ in range(3))
    many = tuple(Observed(count / 64, 64, count=count) for count in (9, 10, 11))
    assert outcome("error_rate +5%", none, many, "error_rate") == ("broken", 1)
    assert outcome("error_rate +50%", none, many, "error_rate") == ("held", 0)


def test_one_load_that_breaks_it_is_enough() -> None:
    """Over several loads broken comes before not known, and not known before held; a baseline decides nothing."""

    def of(name: str, values: tuple[float, ...]) -> object:
        return side(
            name,
            source(
                [
                    cell(trials(name, BASE), load="C=4"),
                    cell(trials(name, values), load="C=8"),
                    cell(trials(name, (5.0,)), load="C=1", group="baseline"),
                ],
                path=name,
            ),
        )

    asked = Asked(conditions=(FailIf.parse("ttft p95 +5%"),))
    told = compare_sides(of("A", BASE), of("B", (130 * MS, 131 * MS, 129 * MS)), asked)  # type: ignore[arg-type]
    assert told.exit_code == 1 and len(told.conditions[0].details) == 2
    same = compare_sides(of("A", BASE), of("B", BASE), asked)  # type: ignore[arg-type]
    assert same.exit_code == 0 and same.answer.verdict == "equal"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("ttft p95", "is no condition"),
        ("ttft p95 5%", "is no condition"),
        ("", "is no condition"),
        ("speed +5%", "is no measure"),
        ("ttft +5%", "it says no percentile"),
        ("ttft p101 +5%", "is no percentile"),
        ("output_rate p50 -5%", "has no percentiles"),
        ("ttft p95 -5%", "gets better"),
        ("output_rate +5%", "gets better"),
        ("ttft p95 +5", "in no unit"),
        ("ttft p95 +5parsec", "is not a duration"),
        ("error_rate +1", "in no unit"),
        ("ttft p95 +5% and more", "is no condition"),
        ("\x1b[31mttft p95 +5%", "is no measure"),
    ],
)
def test_what_cannot_be_read_is_refused_in_words(text: str, words: str) -> None:
    """Each mistake is named, with what would be right."""
    with pytest.raises(CallerError) as caught:
        FailIf.parse(text)
    assert words in str(caught.value) and caught.value.hint


def test_an_unknown_measure_lists_the_known_ones() -> None:
    """Who mistypes a measure sees all of them."""
    with pytest.raises(CallerError, match=r"longest_gap.*output_rate"):
        FailIf.parse("ttfb p95 +5%")


def test_asked_percentiles_are_compared_though_they_are_not_usual() -> None:
    """A condition on p90 finds p90."""
    a, b = ([member(f"{name}{at}", {"ttft p90": 1.0 + at / 100}) for at in range(3)] for name in "ab")
    told = compare_sides(
        side("A", source([cell(a)], path="a")),
        side("B", source([cell(b)], path="b")),
        Asked(conditions=(FailIf.parse("ttft p90 +50%"),)),
    )
    assert told.exit_code == 0 and told.cells[0].measures[0].gated
