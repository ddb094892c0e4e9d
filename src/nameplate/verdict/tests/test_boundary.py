"""Levels and boundaries: every row of the status table, and what certifies it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nameplate.contract.levels import ConcurrencyLevels
from nameplate.contract.rules import Rules
from nameplate.contract.slo import Slo
from nameplate.statistics.censoring import Bounds
from nameplate.verdict.boundary import (
    Status,
    boundary,
    combined_exit_code,
    rated_level,
    settle,
    trial_exit_code,
    wanted_levels,
)
from nameplate.verdict.certify import LABEL, certify
from nameplate.verdict.level import LevelStatus, judge_level
from nameplate.verdict.trial import PhaseValues, TrialStatus, judge_slo
from nameplate.verdict.warnings import LevelPoint, flat_median, pass_above_fail, throughput_rising

P, F, N = "pass", "fail", "noisy"
LEVELS = ConcurrencyLevels(Rules())
TRIALS: dict[str, TrialStatus] = {"p": "pass", "f": "fail", "o": "inconclusive", "i": "invalid"}


@pytest.mark.parametrize(
    ("trials", "extra", "tolerance", "expected"),
    [
        ("", 0, 0, "open"),
        ("pp", 0, 0, "open"),
        ("ppp", 0, 0, "pass"),
        ("fff", 0, 0, "fail"),
        ("ppf", 0, 0, "noisy"),
        ("ppo", 0, 0, "noisy"),
        ("ooo", 0, 0, "noisy"),
        ("ipp", 0, 0, "open"),
        ("ippip", 0, 0, "pass"),
        ("iii", 0, 0, "invalid"),
        ("pipii", 0, 0, "invalid"),
        ("ppf", 2, 0, "noisy"),
        ("ppf", 2, 1, "open"),
        ("ppfp", 2, 1, "open"),
        ("ppfpp", 2, 1, "pass"),
        ("ffpff", 2, 1, "fail"),
        ("ppff", 2, 1, "noisy"),
        ("ppf", 0, 1, "noisy"),
        ("ppff", 1, 2, "noisy"),
    ],
)
def test_a_level_follows_from_its_trials(trials: str, extra: int, tolerance: int, expected: str) -> None:
    """All of k valid trials agree, or it is noisy; a tolerance counts only after extra confirmations."""
    rules = Rules(extra_confirmations=extra, tolerance=tolerance)
    assert judge_level(7, [TRIALS[letter] for letter in trials], rules).status == expected


@pytest.mark.parametrize(
    ("levels", "lowest", "highest", "expected"),
    [
        ({7: P, 8: F}, 1, 64, (Status.confirmed, 7, 7, 8, (), 0)),
        ({1: F}, 1, 64, (Status.confirmed, 0, None, 1, (), 1)),
        ({6: P, 7: N, 8: F}, 1, 64, (Status.noisy, 6, 6, 8, (7,), 3)),
        ({5: P, 6: N, 7: P, 8: F}, 1, 64, (Status.noisy, 5, 5, 8, (6,), 3)),
        ({6: P, 7: F, 8: P}, 1, 64, (Status.confirmed, 6, 6, 7, (), 0)),
        ({6: P, 7: F, 8: N}, 1, 64, (Status.confirmed, 6, 6, 7, (8,), 0)),
        ({64: P}, 1, 64, (Status.open_above, 64, 64, None, (), 3)),
        ({4: F}, 4, 64, (Status.open_below, None, None, 4, (), 3)),
        ({63: P, 64: N}, 1, 64, (Status.noisy, 63, 63, None, (64,), 3)),
        ({1: N, 2: F}, 1, 64, (Status.noisy, 0, None, 2, (1,), 3)),
        ({4: N, 5: F}, 4, 64, (Status.noisy, None, None, 5, (4,), 3)),
    ],
)
def test_settled_levels_have_one_answer(
    levels: dict[int, LevelStatus], lowest: int, highest: int, expected: tuple[object, ...]
) -> None:
    """Status, rated, pass, fail, noisy levels and exit code follow from the levels alone."""
    found = settle(levels, lowest, highest, zero_below=lowest == 1)
    assert found is not None
    assert (
        found.status,
        found.rated,
        found.pass_level,
        found.fail_level,
        found.noisy,
        found.exit_code,
    ) == expected


@pytest.mark.parametrize(
    ("levels", "expected"),
    [
        ({7: P}, (8,)),
        ({8: F}, (7,)),
        ({7: N}, (6, 8)),
        ({7: F, 8: P}, (6,)),
        ({7: P, 8: N}, (9,)),
        ({6: N, 7: P}, (5, 8)),
        ({7: N, 8: F}, (6,)),
        ({1: N}, (2,)),
    ],
)
def test_open_boundaries_name_what_to_confirm(
    levels: dict[int, LevelStatus], expected: tuple[int, ...]
) -> None:
    """Outward on both sides until a pass and a fail stand."""
    assert settle(levels, 1, 64, zero_below=True) is None
    assert wanted_levels(levels, 1, 64) == expected


@pytest.mark.parametrize(
    ("status", "rated", "code"),
    [(Status.budget, 7, 3), (Status.invalid, None, 4), (Status.interrupted, None, 130)],
)
def test_early_ends_have_their_exit_code(status: Status, rated: int | None, code: int) -> None:
    """What was cut short rates nothing, but a budget leaves its confirmed pass as a lower bound."""
    found = boundary(status, {7: "pass"})
    assert (found.rated, found.pass_level, found.exit_code) == (rated, 7, code)
    assert boundary(Status.interrupted, {}, exit_code=5).exit_code == 5


@given(st.dictionaries(st.integers(1, 12), st.sampled_from(["pass", "fail", "noisy"]), min_size=1))
def test_nothing_below_the_rated_level_did_not_pass(levels: dict[int, LevelStatus]) -> None:
    """Whatever was confirmed, rated is a passing level with no other verdict below it."""
    rated = rated_level(levels)
    if rated is not None:
        assert levels[rated] == "pass"
        assert all(status == "pass" for level, status in levels.items() if level <= rated)
    else:
        assert min(levels) in levels and levels[min(levels)] != "pass"


def test_exit_codes_combine_in_order() -> None:
    """Over several shapes the first of 130, 5, 4, 3, 1, 0 that occurs."""
    assert combined_exit_code([0, 1, 3]) == 3
    assert combined_exit_code([0, 4, 5, 130]) == 130
    assert combined_exit_code([0, 5, 4]) == 5
    assert combined_exit_code([0, 1]) == 1
    assert combined_exit_code([]) == 0
    with pytest.raises(ValueError):
        combined_exit_code([2])
    assert [trial_exit_code(s) for s in ("pass", "fail", "inconclusive", "invalid")] == [0, 1, 3, 4]


def test_certified_bounds_pool_the_trials_by_phase() -> None:
    """4 over of 192 certify a p95; the opening wave is bounded apart, with its label."""
    slo = Slo.parse("ttft p95 < 10s")
    late, early = (Bounds.exactly(11e9),), (Bounds.exactly(1e9),)
    trials = [
        [judge_slo(slo, PhaseValues(late * (2 if n == 0 else 1) + early * 5, early * (57 if n == 0 else 58)))]
        for n in range(3)
    ]
    (entry,) = certify(7, trials)
    assert (entry.whole.n, entry.whole.over, entry.trials) == (192, 4, 3)
    assert entry.whole.bound == pytest.approx(0.04704, abs=1e-5) and entry.holds
    assert entry.opening.share == pytest.approx(4 / 19) and entry.steady.over == 0
    assert entry.label == LABEL and entry.claim == 0.05
    assert certify(7, []) == () and entry.further_requests is None


@pytest.mark.parametrize(
    ("over", "further"),
    [(1, None), (3, 13_141), (4, 768), (32, 0)],
    ids=["certified", "below", "above", "refuted"],
)
def test_what_is_not_certified_says_which_sample_would_decide(over: int, further: int | None) -> None:
    """At the seen share so many more certify or refute; none where it is certified, 0 where it is refuted."""
    slo = Slo.parse("ttft p95 < 10s")
    late, early = (Bounds.exactly(11e9),), (Bounds.exactly(1e9),)
    trials = [[judge_slo(slo, PhaseValues((), late * over + early * (64 - over)))]] * 3
    (entry,) = certify(7, trials)
    assert (entry.holds, entry.further_requests) == (over == 1, further)


def test_a_flat_median_under_a_climbing_percentile_is_warned_about() -> None:
    """The published case: p50 stays near 2.1 s while p95 climbs from 4.1 to 10.7 s."""
    points = [LevelPoint(4, 2.161e9, 4.101e9, 178.5), LevelPoint(8, 2.135e9, 10.66e9, 217.0)]
    warned = flat_median("ttft", 95.0, points, LEVELS)
    assert warned is not None and "p95 climbs" in warned.what
    assert flat_median("ttft", 95.0, [points[0], LevelPoint(8, 4e9, 10e9, 1.0)], LEVELS) is None
    assert flat_median("ttft", 95.0, points[:1], LEVELS) is None


def test_throughput_that_rises_past_the_limit_is_warned_about() -> None:
    """The failing level still produces more tokens a second."""
    found = settle({7: "pass", 8: "fail"}, 1, 64, zero_below=True)
    assert found is not None
    points = [LevelPoint(7, None, None, 200.0), LevelPoint(8, None, None, 217.0)]
    assert throughput_rising(found, points, LEVELS) is not None
    assert throughput_rising(found, [points[0], LevelPoint(8, None, None, 201.0)], LEVELS) is None


def test_a_pass_above_a_fail_is_warned_about() -> None:
    """A boundary that is not sharp says so."""
    assert pass_above_fail([(6, "pass"), (7, "fail"), (8, "pass")], LEVELS) is not None
    assert pass_above_fail([(6, "pass"), (7, "fail")], LEVELS) is None
