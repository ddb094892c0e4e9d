"""What a level needs so that its pass can be relied on: `--confidence`, on top of the protocol and never below it.

A level passes where all of its k trials pass, and of each SLO one of two things is certified:

by requests  so few of all their requests were over the limit that the population's share over it is below what the
             promise allows: the exact bound of Clopper & Pearson. It takes requests as independent.
by spread    the trials' own percentiles lie so close together, and so far below the limit, that a further trial would
             pass too: a prediction bound. It takes trials as independent and their percentiles as log-normal, and
             within a trial anything may depend on anything. Where a burst puts the same three requests of 64 over the
             limit in every trial, only this one can tell that the server is as good as it looks.

That all k trials pass certifies something by itself, whatever their percentiles: more than half of all such trials
would. k is fixed before the first trial: the fewest that show this, and with which a server whose share over the limit
is half of what the promise allows meets the bound of requests in four studies of five. Trials are added and not made
longer, because the share over the limit of a burst depends on how many requests follow the opening wave.

The error that the confidence leaves is shared out among all chances to be wrong: half to each way of certifying. And
the rated level is chosen by passing. Shares grow with the level, so going up tries nothing anew: what is rated too high
must pass the lowest level above the truth. But each step down is a further try: the first candidate and all above it
get half of the error, the next level below a quarter, and so on (a fallback procedure: Wiens 2003, "A fixed sequence
Bonferroni procedure for testing multiple endpoints", Pharmaceutical Statistics 2).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from functools import cache
from typing import Literal

from msgspec import Struct

from nameplate.contract.errors import CallerError
from nameplate.contract.rules import Rules
from nameplate.contract.slo import Slo
from nameplate.statistics.binomial import log_tail
from nameplate.statistics.prediction import further_bound
from nameplate.verdict.trial import SloResult

LEAST_CONFIDENCE, MOST_CONFIDENCE = 0.5, 0.9999
# A server at half of the share that is allowed is met by the bound of requests so often.
POWER = 0.8
# What a probe must leave of the limit where too many of its requests are over: more than trials usually differ by.
IN_HAND = 0.1
# No probability below it is told from zero beside one.
_LEAST_ERROR = 1e-12
# More trials a level than this nobody runs: a day at a minute and a half each.
MOST_TRIALS = 1000

Standing = Literal["open", "certified", "refused"]


class Demand(Struct, frozen=True):
    """Hold what one level must show: so many trials, all passing, and a bound at this confidence of its own."""

    confidence: float
    trials: int


def claim(slo: Slo) -> float:
    """Return the share of requests that an SLO allows over its limit: 0.05 for p95, or the error rate's limit."""
    if slo.limit_ratio is not None:
        return slo.limit_ratio
    assert slo.percentile is not None
    return round(1 - slo.percentile / 100, 12)


def level_confidence(confidence: float, steps: int) -> float:
    """Return the confidence of each bound at a level `steps` below the first candidate; 0 for that one and all above.

    Two bounds at errors of 1/4, 1/8, 1/16, ... of what the study's confidence leaves never add up to more.
    """
    return 1 - max(math.ldexp(1 - confidence, -steps - 2), _LEAST_ERROR)


def steps_down(level: int, begun: Iterable[int], first: int) -> int:
    """Count the levels that were tried, from the first candidate on, before the search came down to this one."""
    return sum(level < other <= first for other in begun)


@cache
def allowed(n: int, share: float, confidence: float) -> int | None:
    """Return how many of n may be over so that the bound of their share stays below `share`; None if not even 0 may."""
    target = math.log1p(-confidence)
    # The bound is below the share where seeing so few at the share itself is too unlikely.
    if n < 1 or not log_tail(0, n, share) < target:
        return None
    low, high = 0, n
    while high - low > 1:
        middle = (low + high) // 2
        if log_tail(middle, n, share) < target:
            low = middle
        else:
            high = middle
    return low


@cache
def trials_needed(n: int, share: float, confidence: float, least: int) -> int:
    """Return how many trials of n requests a level needs, at least `least`; no more than MOST_TRIALS.

    k of k trials show that more than half pass where 2^-k is below the error; n k requests must meet the bound with
    probability POWER where the true share is half of `share`.
    """
    # Rounded: an error of exactly 1/2^k needs k trials whatever binary fractions make of it.
    trials = max(least, math.ceil(round(-math.log2(1 - confidence), 9)))
    while trials < MOST_TRIALS:
        few = allowed(n * trials, share, confidence)
        if few is not None and log_tail(few, n * trials, share / 2) >= math.log(POWER):
            break
        trials += 1
    return trials


def demand(rules: Rules, sizes: Iterable[tuple[Slo, int]], steps: int = 0) -> Demand:
    """Return what a level must show, from each SLO with its number of requests a trial.

    ValueError where the rules ask for no confidence.
    """
    if rules.confidence is None:
        raise ValueError("these rules ask for no confidence")
    own = level_confidence(rules.confidence, steps)
    needed = (trials_needed(n, claim(slo), own, rules.confirmations) for slo, n in sizes if n)
    return Demand(own, max(needed, default=rules.confirmations))


def sizes_of(slos: Sequence[SloResult]) -> list[tuple[Slo, int]]:
    """Return each SLO of a trial with the number of its requests."""
    return [(result.slo, result.whole.n) for result in slos]


def standing(needs: Demand, trials: Sequence[Sequence[SloResult]]) -> Standing:
    """Say what passing trials show so far; there is one look, after the last trial."""
    if len(trials) < needs.trials:
        return "open"
    for position in range(len(trials[0])):
        results = [trial[position] for trial in trials]
        if not (by_requests(results, needs.confidence) or by_spread(results, needs.confidence)):
            return "refused"
    return "certified"


def by_requests(results: Sequence[SloResult], confidence: float) -> bool:
    """Say whether one SLO's trials certify by the exact bound of the share of all their requests over the limit."""
    over = sum(result.whole.over_at_worst for result in results)
    few = allowed(sum(result.whole.n for result in results), claim(results[0].slo), confidence)
    return few is not None and over <= few


def by_spread(results: Sequence[SloResult], confidence: float) -> bool:
    """Say whether one SLO's trials certify by the bound of a further trial's percentile."""
    limit_ns, reach_ns = results[0].slo.limit_ns, further_ns(results, confidence)
    return limit_ns is not None and reach_ns is not None and reach_ns < limit_ns


def further_ns(results: Sequence[SloResult], confidence: float) -> float | None:
    """Return what a further trial's percentile stays below, at its worst; None without a finite bound.

    An error rate has none: it counts requests, and that none failed in a few trials says nothing of their spread.
    """
    values = [result.whole.worst for result in results if not result.whole.worst_infinite]
    known = [value for value in values if value is not None and value > 0]
    if results[0].slo.percentile is None or len(known) < len(results):
        return None
    reach_ns = further_bound(known, confidence)
    return None if math.isinf(reach_ns) else reach_ns


def promising(rules: Rules, slos: Sequence[SloResult]) -> bool:
    """Say whether a passing probe's level may be certified: few requests over, or a tenth of the limit in hand.

    It only navigates. In doubt it says yes: a level too high is soon refused, one too low takes all of its trials
    before the next is tried.
    """
    needs = demand(rules, sizes_of(slos))

    def may(result: SloResult) -> bool:
        whole, limit_ns = result.whole, result.slo.limit_ns
        few = allowed(whole.n * needs.trials, claim(result.slo), needs.confidence)
        if few is not None and whole.over_at_worst <= math.ceil(few / needs.trials):
            return True
        return limit_ns is not None and whole.worst is not None and whole.worst <= (1 - IN_HAND) * limit_ns

    return all(map(may, slos))


def trials_bound(needs: Demand, trials: int) -> float:
    """Return the share of such trials that pass at least, where all of `trials` did: the exact one-sided bound."""
    return (1 - needs.confidence) ** (1 / trials) if trials else 0.0


def require_confidence(rules: Rules, slos: Collection[Slo], requests: int) -> None:
    """Refuse a confidence that means nothing, or that trials of so many requests never show; CallerError."""
    if rules.confidence is None:
        return
    if not LEAST_CONFIDENCE <= rules.confidence <= MOST_CONFIDENCE:
        raise CallerError(
            f"A confidence of {rules.confidence * 100:g}% cannot be asked for.",
            why="Below 50% it is a guess, and certainty itself no sample gives.",
            hint="Give one from 50% to 99.99%, such as --confidence 95%.",
        )
    if rules.extra_confirmations or rules.tolerance:
        raise CallerError(
            "--confidence goes with neither --extra-confirmations nor --tolerance.",
            why="How many trials a level gets is fixed beforehand, and all of them must pass.",
            hint="Leave one of them out.",
        )
    if demand(rules, [(slo, requests) for slo in slos]).trials >= MOST_TRIALS:
        raise CallerError(
            f"At {rules.confidence * 100:g}% a level would need {MOST_TRIALS:,} trials of {requests:,} requests.",
            why="The promise allows so small a share over its limit that few requests cannot show it.",
            hint="Give more --requests a trial, or promise a lower percentile.",
        )
