"""Numbers: their units and digits, and that nothing is ever shown as zero."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nameplate.contract.slo import Slo
from nameplate.report import numbers
from nameplate.statistics.percentile import summarise


@pytest.mark.parametrize(
    ("ns", "said"),
    [
        (None, "-"),
        (math.nan, "-"),
        (math.inf, "never"),
        (0, "0 ms"),
        (7, "7 ns"),
        (999_960, "1.000 ms"),
        (43_853_000, "43.85 ms"),
        (999_960_000, "1.000 s"),
        (8_709_000_000, "8.709 s"),
        (13_342_000_000, "13.34 s"),
        (550_876_000_000, "550.9 s"),
        (3_600_000_000_000, "60.00 min"),
        (9_000_000_000_000, "2.500 h"),
    ],
)
def test_durations_have_four_digits_and_a_unit(ns: float | None, said: str) -> None:
    """A duration has four significant digits, its unit, `-` where absent and `never` where infinite."""
    assert numbers.duration(ns) == said


def test_a_value_beside_its_limit_shows_on_which_side_it_lies() -> None:
    """9.9999 s and 10 s do not look alike; a value that is the limit reads as the limit."""
    limit = 10 * 10**9
    assert numbers.against(9_999_900_000, limit) == "9.9999 s"
    assert numbers.against(limit + 1, limit) == "10.000000001 s"
    assert numbers.against(limit, limit) == numbers.duration(limit)
    assert numbers.against(8_709_000_000, limit) == "8.709 s"


@given(st.integers(1, 10**14), st.integers(-(10**6), 10**6))
def test_two_durations_that_differ_never_read_alike_beside_a_limit(limit: int, off: int) -> None:
    """However near to its limit, a value that is not the limit does not read like it."""
    value = max(0, limit + off)
    assert (numbers.against(value, limit) == numbers.duration(limit)) == (value == limit)


def test_limits_and_promises_read_as_they_were_written() -> None:
    """A limit has no zeros that nobody wrote."""
    assert numbers.promise(Slo.parse("ttft p95 < 250ms")) == "ttft p95 < 250 ms"
    assert numbers.promise(Slo.parse("e2e p99.9 < 1.5s")) == "e2e p99.9 < 1.5 s"
    assert numbers.promise(Slo.parse("error_rate < 0.5%")) == "error_rate < 0.5%"
    assert numbers.limit(100 * 10**9) == "100 s"


def test_percentiles_say_what_they_lack() -> None:
    """Nothing is `-`, a percentile that reaches the censored is `never`, one that n does not carry is marked."""
    assert numbers.percentile(summarise([]), "p95") == "-"
    assert numbers.percentile(summarise([1e9] * 9, censored=91), "p50") == "never"
    assert numbers.percentile(summarise([1e9] * 64), "p99") == "1.000 s*"
    assert numbers.percentile(summarise([1e9] * 64), "p95") == "1.000 s"


@pytest.mark.parametrize(
    ("per_s", "said"),
    [
        (None, "-"),
        (0, "0 tok/s"),
        (0.2061, "0.206 tok/s"),
        (216.74, "216.7 tok/s"),
        (51_200.4, "51,200 tok/s"),
    ],
)
def test_rates_have_their_unit(per_s: float | None, said: str) -> None:
    """A rate has four digits and its unit; an absent one is not zero."""
    assert numbers.rate(per_s, "tok/s") == said


def test_counts_have_their_noun() -> None:
    """A count has its noun in the right number."""
    assert numbers.count(1, "trial") == "1 trial"
    assert numbers.count(0, "trial") == "0 trials"
    assert numbers.count(None, "trial") == "-"
    assert numbers.count(262144) == "262,144"
    assert numbers.count(8.966666) == "8.97"


def test_ranges_name_their_unit_once() -> None:
    """Two numbers of one unit share it; equal ones are one."""
    assert numbers.between("8.705 s", "8.724 s") == "8.705 to 8.724 s"
    assert numbers.between("900.0 ms", "1.100 s") == "900.0 ms to 1.100 s"
    assert numbers.between("5 s", "5 s") == "5 s"


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (None, "-"),
        (math.inf, "-"),
        (0, "0 s"),
        (4.24, "4.2 s"),
        (95, "95 s"),
        (170, "3 min"),
        (7300, "2 h 02 min"),
    ],
)
def test_waits_are_rough(seconds: float | None, said: str) -> None:
    """Time to wait for has no digits that it does not deserve."""
    assert numbers.rough(seconds) == said


@given(st.floats(allow_nan=True, allow_infinity=True))
def test_no_number_breaks_the_writing(value: float) -> None:
    """Whatever number comes, it is written on one line."""
    for said in (
        numbers.duration(value),
        numbers.rate(value, "x"),
        numbers.count(value),
        numbers.share(value),
        numbers.rough(value),
    ):
        assert said
        assert "\n" not in said


@pytest.mark.parametrize(
    ("ns", "said"),
    [
        (66e6, "66.0 ms"),
        (1_489e6, "1.49 s"),
        (999.96e6, "1.00 s"),
        (515.4e6, "515 ms"),
        (66.3e9, "66.3 s"),
        (180e9, "180 s"),
        (0, "0 ms"),
        (None, "-"),
        (math.inf, "never"),
    ],
)
def test_brief_durations_keep_three_digits(ns: float | None, said: str) -> None:
    """Cells with little room get three digits and the unit."""
    assert numbers.brief(ns) == said


@pytest.mark.parametrize(
    ("rate", "said"),
    [(9.249, "9.25"), (36.94, "36.9"), (162.04, "162.0"), (4790.4, "4,790"), (0, "0"), (None, "-")],
)
def test_brief_rates(rate: float | None, said: str) -> None:
    """Rates in cells have one decimal, small ones two, and thousands none."""
    assert numbers.brief_rate(rate) == said
