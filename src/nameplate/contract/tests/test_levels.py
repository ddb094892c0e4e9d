"""Levels and the rates behind them: a grid of round numbers whose neighbours are one resolution apart."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from nameplate.contract.contract import Contract
from nameplate.contract.errors import CallerError
from nameplate.contract.levels import ConcurrencyLevels, RateLevels, levels_of, told_rated
from nameplate.contract.rates import Grid, RateRules, arrival_seed
from nameplate.contract.rules import Rules
from nameplate.contract.shape import Shape
from nameplate.contract.slo import Slo
from nameplate.contract.target import Target

RESOLUTIONS = st.floats(0.02, 0.5)
SLOS = (Slo.parse("ttft p95 < 1s"),)
CONTRACT = Contract(Target("http", "sim", 80), (Shape(512, 64),), SLOS, "n")


@given(RESOLUTIONS, st.integers(-600, 600))
def test_neighbours_are_one_resolution_apart_at_most(resolution: float, level: int) -> None:
    """Rates rise strictly, by no more than the resolution, and have three significant digits."""
    grid = Grid.of(resolution)
    low, high = grid.rate(level), grid.rate(level + 1)
    assert low < high <= low * (1 + resolution) * (1 + 1e-6)
    assert float(f"{low:.3g}") == low


def test_the_default_grid_is_round() -> None:
    """Five percent are 53 rates a decade, 1 request a second among them."""
    grid = Grid.of(0.05)
    assert grid.per_decade == 53
    assert [grid.rate(level) for level in (-53, 0, 1, 2, 53, 106)] == [0.1, 1.0, 1.04, 1.09, 10.0, 100.0]


@given(RESOLUTIONS, st.floats(0.001, 1000))
def test_a_rate_lies_between_its_neighbours(resolution: float, rate: float) -> None:
    """The levels at most and at least a rate enclose it, and are the same for a rate of the grid."""
    grid = Grid.of(resolution)
    below, above = grid.at_most(rate), grid.at_least(rate)
    assert grid.rate(below) <= rate <= grid.rate(above) and above - below in (0, 1)
    assert grid.at_most(grid.rate(below)) == grid.at_least(grid.rate(below)) == below


def test_levels_say_what_they_are() -> None:
    """The same level is nine requests at once in one study, and a rate in the other."""
    shape = Shape(512, 64)
    closed, open_ = ConcurrencyLevels(Rules()), RateLevels(RateRules())
    assert (closed.name(9), closed.told(9), closed.slug(9)) == ("C=9", "9", "c9")
    assert (open_.name(9), open_.told(9), open_.slug(9)) == ("1.48 req/s", "1.48", "r1.48")
    assert closed.load(9, shape) == "9 concurrent 512/64 requests"
    assert open_.load(9, shape) == "1.48 requests/s of 512/64 (poisson arrivals)"
    assert (closed.lower(1, 2), open_.lower(1, 2)) == (0, -1)
    assert (closed.zero_below, open_.zero_below) == (True, False)
    assert (told_rated(closed, 7), told_rated(open_, 0), told_rated(open_, None)) == ("7", "1", "None")


def test_a_contract_says_which_levels_it_has() -> None:
    """With rules for rates the levels are rates."""
    assert isinstance(levels_of(CONTRACT), ConcurrencyLevels)
    assert isinstance(levels_of(structs.replace(CONTRACT, rate=RateRules())), RateLevels)


def test_the_locator_starts_at_one_request_after_the_other() -> None:
    """Without a guess: 1 / E2E alone, one a second where that is unknown; and a doubling doubles the rate."""
    levels = RateLevels(RateRules())
    assert levels.value(levels.start(0.2e9)) == 4.99
    assert levels.value(levels.start(None)) == 1
    assert levels.value(levels.doubled(0)) == pytest.approx(2, rel=0.01)
    assert levels.value(levels.halved(0)) == pytest.approx(0.5, rel=0.01)


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        ({"resolution": 0.001}, "resolution"),
        ({"resolution": 0.9}, "resolution"),
        ({"min_per_s": 0.0}, "--min"),
        ({"max_per_s": 1e9}, "--max"),
        ({"guess_per_s": -1.0}, "--guess"),
        ({"min_per_s": 2.0, "max_per_s": 1.0}, "No rate of the grid"),
        ({"min_per_s": 1.01, "max_per_s": 1.02}, "No rate of the grid"),
    ],
)
def test_rules_without_a_rate_are_refused(rules: dict[str, float], words: str) -> None:
    """A grid without rates, or rates that nobody can offer, are the caller's mistake."""
    with pytest.raises(CallerError, match=words):
        RateRules(**rules).require()  # type: ignore[arg-type]


def test_a_sample_is_as_long_as_percentile_resolution_and_answer_ask() -> None:
    """The strictest percentile or the resolution decides, unless more arrive within ten answers."""
    rules = RateRules()
    level = rules.grid.at_most(10)
    strict = (*SLOS, Slo.parse("itl p99 < 1s"))
    assert rules.measured_requests(level, SLOS, proves=False) == 400
    assert rules.measured_requests(level, strict, proves=False) == 2000
    assert rules.measured_requests(level, SLOS, proves=True) == 1000
    assert rules.measured_requests(level, SLOS, asked=100, proves=True) == 100
    assert rules.measured_requests(level, SLOS, asked=100, alone_ns=30e9, proves=True) == 3000
    assert rules.measured_requests(level, (), proves=False) == 64
    coarse = RateRules(resolution=0.1)
    assert coarse.measured_requests(0, SLOS, proves=True) == 400


def test_every_trial_has_its_own_arrivals() -> None:
    """The seed is a function of the study's seed and the trial's name, and small enough for any reader of JSON."""
    names = [f"512-64.confirm.r{rate}.t{number}" for rate in (20, 21) for number in (1, 2, 3)]
    seeds = {arrival_seed(seed, name) for name in names for seed in (42, 43)}
    assert len(seeds) == 12 and max(seeds) < 1 << 48
    assert arrival_seed(42, names[0]) == arrival_seed(42, names[0])
