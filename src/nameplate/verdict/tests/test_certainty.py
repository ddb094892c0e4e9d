"""What a confidence asks of a level: its trials, its two bounds, and its share of the error."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nameplate.contract.errors import CallerError
from nameplate.contract.rules import Rules
from nameplate.contract.slo import Slo
from nameplate.statistics.binomial import upper_bound
from nameplate.statistics.censoring import Bounds
from nameplate.verdict.certainty import (
    MOST_TRIALS,
    POWER,
    Demand,
    allowed,
    by_requests,
    by_spread,
    claim,
    demand,
    level_confidence,
    promising,
    require_confidence,
    standing,
    steps_down,
    trials_bound,
    trials_needed,
)
from nameplate.verdict.certify import ASKED_LABEL, certify
from nameplate.verdict.level import judge_level
from nameplate.verdict.trial import PhaseValues, SloResult, judge_slo

P95 = Slo.parse("ttft p95 < 10s")
ERRORS = Slo.parse("error_rate < 1%")
RULES = Rules(confidence=0.95)


def trial(
    over: int, *, n: int = 64, low_s: float = 9.0, high_s: float = 11.0, slo: Slo = P95
) -> tuple[SloResult]:
    """Return the result of a trial of n requests, `over` of them over the limit."""
    values = (Bounds.exactly(high_s * 1e9),) * over + (Bounds.exactly(low_s * 1e9),) * (n - over)
    return (judge_slo(slo, PhaseValues((), values)),)


def errors(failed: int, n: int = 300) -> tuple[SloResult]:
    values = (Bounds.exactly(1),) * failed + (Bounds.exactly(0),) * (n - failed)
    return (judge_slo(ERRORS, PhaseValues((), values)),)


def judged(trials: Sequence[tuple[SloResult]], rules: Rules = RULES, steps: int = 0) -> str:
    return judge_level(7, [one[0].status for one in trials], rules, trials, steps).status


def test_what_a_p95_needs_at_95_percent() -> None:
    """0 over of 64, 4 of 192 and 17 of 512 are the most that bound the share below 5%."""
    assert [allowed(n, 0.05, 0.95) for n in (58, 59, 64, 192, 512)] == [None, 0, 0, 4, 17]


@settings(max_examples=40)
@given(st.integers(1, 2000), st.floats(0.001, 0.2), st.sampled_from([0.5, 0.9, 0.95, 0.9875, 0.9999]))
def test_what_is_allowed_is_what_the_exact_bound_allows(n: int, share: float, confidence: float) -> None:
    """The same number as by Clopper and Pearson's bound: one more over would lift it to the share."""
    few = allowed(n, share, confidence)
    if few is None:
        assert upper_bound(0, n, confidence) >= share
    else:
        assert upper_bound(few, n, confidence) < share <= upper_bound(few + 1, n, confidence)


@pytest.mark.parametrize(("n", "share"), [(64, 0.05), (128, 0.1), (300, 0.01), (1024, 0.05)])
@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.9875, 0.999])
def test_trials_are_as_many_as_their_two_purposes_need(n: int, share: float, confidence: float) -> None:
    """All passing shows that more than half would; half of the share is met with the stated power, by SciPy."""
    k = trials_needed(n, share, confidence, 3)
    assert k >= 3 and 0.5**k <= (1 - confidence) * (1 + 1e-9)
    assert trials_bound(Demand(confidence, k), k) >= 0.5 - 1e-9
    few = allowed(n * k, share, confidence)
    stats: Any = pytest.importorskip("scipy.stats", reason="SciPy is not installed")
    assert few is not None and stats.binom.cdf(few, n * k, share / 2) >= POWER - 1e-9
    fewer = k - 1
    if fewer >= 3 and 0.5**fewer <= 1 - confidence:
        less = allowed(n * fewer, share, confidence)
        assert less is None or stats.binom.cdf(less, n * fewer, share / 2) < POWER


@given(st.floats(0.5, 0.9999), st.integers(1, 60))
def test_the_errors_of_all_levels_and_both_bounds_never_add_up_to_more(confidence: float, steps: int) -> None:
    """Each level further down has half the error of the one before; all of them stay within the study's."""
    spent = sum(2 * (1 - level_confidence(confidence, step)) for step in range(steps))
    assert spent <= (1 - confidence) * (1 + 1e-9) + 60 * 2e-12
    assert level_confidence(confidence, steps) >= level_confidence(confidence, steps - 1)


def test_only_steps_down_from_the_first_candidate_are_further_tries() -> None:
    """The candidate and what lies above it are no step; each level begun between a lower one and it is."""
    begun = [7, 8, 6, 9, 5]
    assert [steps_down(level, begun, 7) for level in (9, 8, 7, 6, 5)] == [0, 0, 0, 1, 2]


def test_a_level_passes_when_its_requests_certify_it() -> None:
    """Nine trials of 64 with one over each: 9 of 576 keep p95 at 98.75%; eight trials leave it open."""
    trials = [trial(over, low_s=4.0 + 2.9 * over) for over in (0, 1, 2, 0, 1, 2, 0, 1, 2)]
    assert demand(RULES, [(P95, 64)]) == Demand(0.9875, 9)
    assert by_requests([one[0] for one in trials], 0.9875) and not by_spread(
        [one[0] for one in trials], 0.9875
    )
    assert [judged(trials[:k]) for k in (2, 3, 8, 9)] == ["open", "open", "open", "pass"]


def test_a_level_passes_when_its_trials_lie_close_together() -> None:
    """Three over in every trial are 4.7% and no bound of requests: that the percentiles are alike certifies it."""
    trials = [trial(3, low_s=9.0 + 0.01 * number) for number in range(9)]
    assert not by_requests([one[0] for one in trials], 0.9875) and by_spread(
        [one[0] for one in trials], 0.9875
    )
    assert judged(trials) == "pass"


def test_what_neither_bound_certifies_is_noisy() -> None:
    """All trials pass, with too many requests over and percentiles that scatter: not rated, and no fail either."""
    trials = [trial(3, low_s=4.0 + 0.7 * number) for number in range(9)]
    assert judged(trials) == "noisy"


def test_trials_that_fail_decide_as_ever() -> None:
    """Three fails are a fail, and one fail among passes noise, after three trials and at any later one."""
    good, bad = trial(0), trial(30)
    assert judged([bad, bad]) == "open" and judged([bad, bad, bad]) == "fail"
    assert judged([good, bad, good]) == "noisy" and judged([good] * 4 + [bad]) == "noisy"


def test_a_step_down_asks_for_more() -> None:
    """What certifies the first candidate need not certify a level that was tried after others."""
    trials = [trial(over, low_s=1.0 + over) for over in (1, 2, 2, 1, 2, 2, 1, 2, 3)]
    assert judged(trials, steps=0) == "pass"
    assert judge_level(7, ["pass"] * 9, RULES, trials, 2).demand == Demand(0.996875, 14)
    assert judged(trials, steps=2) == "open"


def test_without_a_confidence_nothing_changes() -> None:
    """Three passes are a pass, with or without the trials' SLOs, and nothing is recorded of a demand."""
    level = judge_level(7, ["pass"] * 3, Rules(), [trial(3)] * 3)
    assert (level.status, level.demand) == ("pass", None)


def test_an_error_rate_is_a_share_like_any_other() -> None:
    """It is certified by requests alone, over trials long enough to hold three errors at the limit."""
    assert (
        Rules(confidence=0.95).measured_requests(4, [ERRORS]) == 300
        and Rules().measured_requests(4, [ERRORS]) == 64
    )
    needs = demand(RULES, [(ERRORS, 300)])
    clean, few = [errors(0)] * needs.trials, [errors(2)] * needs.trials
    assert standing(needs, clean) == "certified" and standing(needs, few) == "refused"
    assert not by_spread([one[0] for one in clean], 0.9)


def test_every_slo_must_be_certified() -> None:
    """One promise that is kept does not carry another."""
    needs = Demand(0.9875, 9)
    both = [(*trial(0), *trial(3, low_s=4.0 + 0.7 * number)) for number in range(9)]
    assert standing(needs, both) == "refused"


def test_navigation_looks_for_what_can_be_certified() -> None:
    """A probe with the three over that a p95 of 64 forgives must have a tenth of the limit in hand."""
    assert promising(RULES, trial(1, low_s=9.5)) and promising(RULES, trial(2, low_s=9.5))
    assert not promising(RULES, trial(3, low_s=9.5)) and promising(RULES, trial(3, low_s=8.5))


def test_certified_shows_the_bounds_that_were_asked_for() -> None:
    """Bounds at the level's own confidence, how many trials pass at least, and what a further one stays below."""
    trials = [trial(3, low_s=9.0 + 0.01 * number) for number in range(9)]
    (entry,) = certify(7, trials, Demand(0.9875, 9))
    assert (entry.confidence, entry.label, entry.holds) == (0.9875, ASKED_LABEL, True)
    assert entry.whole.bound == pytest.approx(upper_bound(27, 576, 0.9875)) and not by_requests(
        [one[0] for one in trials], 0.9875
    )
    assert entry.trials_bound == pytest.approx(0.0125 ** (1 / 9))
    assert entry.further_ns is not None and 9.08e9 < entry.further_ns < 10e9
    (plain,) = certify(7, trials)
    assert (plain.confidence, plain.trials_bound, plain.further_ns, plain.holds) == (0.95, None, None, False)


@pytest.mark.parametrize(
    ("rules", "slo", "words"),
    [
        (Rules(confidence=0.4), P95, "cannot be asked for"),
        (Rules(confidence=0.99999), P95, "cannot be asked for"),
        (Rules(confidence=math.nan), P95, "cannot be asked for"),
        (Rules(confidence=0.95, tolerance=1), P95, "--tolerance"),
        (Rules(confidence=0.95, extra_confirmations=2), P95, "--extra-confirmations"),
        (Rules(confidence=0.95, requests=64), Slo.parse("error_rate < 0.01%"), f"{MOST_TRIALS:,} trials"),
    ],
)
def test_nonsense_is_refused_in_words(rules: Rules, slo: Slo, words: str) -> None:
    """A confidence outside 50% to 99.99%, what contradicts it, and what no number of trials would show."""
    with pytest.raises(CallerError) as caught:
        require_confidence(rules, [slo], 64)
    assert words in str(caught.value)


def test_what_can_be_asked_for_is_not_refused() -> None:
    """Without a confidence, and with a sound one, for percentiles and error rates."""
    require_confidence(Rules(tolerance=1), [P95], 64)
    for confidence in (0.5, 0.95, 0.9999):
        require_confidence(Rules(confidence=confidence), [P95, ERRORS], 300)
    assert claim(P95) == 0.05 and claim(ERRORS) == 0.01
