"""What the confirmations of a passing level certify about the share of requests over the limit."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import UNSET, Struct, UnsetType

from nameplate.contract.slo import Slo
from nameplate.statistics.binomial import extra_sample, upper_bound
from nameplate.verdict.certainty import Demand, by_spread, claim, further_ns, trials_bound
from nameplate.verdict.trial import SloResult, SloSample

CONFIDENCE = 0.95
LABEL = "if requests were independent; level chosen by passing"
# Asked for by a confidence of the contract: what lies in the choice of the level has its own part of the error.
ASKED_LABEL = (
    "if requests, or for the spread trials, were independent; the choice among levels is allowed for"
)


class Share(Struct, frozen=True):
    """Hold how many of n requests were over the limit, their share, and its one-sided upper bound.

    `share` and `bound` are null where n is 0. Requests whose value is open count as over.
    """

    n: int
    over: int
    share: float | None
    bound: float | None


class Certified(Struct, frozen=True):
    """Hold one SLO's shares over the valid trials of one level, for the whole sample and by phase.

    `claim` is the share that the percentile leaves over the limit (0.05 for p95), or the error rate's limit;
    `holds` says whether the whole sample's bound is below it. `confidence` is that of all bounds here.

    Where the contract asks for a confidence, each bound has the level's own part of it, and two more stand beside:
    `trials_bound` is the share of such trials that pass at least, since all of these did, and `further_ns` what a
    further trial's percentile stays below. Either may carry the level: `holds` is then so too where `further_ns` is
    below the limit.

    Where it does not hold, `further_requests` is how many more requests would certify the claim if the seen share
    stayed, or refute it where that share is above the claim; 0 where it is refuted already, null where no sample of up
    to MOST_REQUESTS decides. Plates from before it have no such field.
    """

    slo: Slo
    level: int
    trials: int
    claim: float
    whole: Share
    opening: Share
    steady: Share
    holds: bool
    confidence: float = CONFIDENCE
    label: str = LABEL
    trials_bound: float | None = None
    further_ns: float | None = None
    further_requests: int | UnsetType | None = UNSET


def certify(
    level: int, trials: Sequence[Sequence[SloResult]], needs: Demand | None = None
) -> tuple[Certified, ...]:
    """Return one entry an SLO from the SLO results of a level's valid trials; empty where there are none.

    `needs` is what the level had to show under a confidence of the contract; without one the bounds are at 95%.
    """
    if not trials:
        return ()
    confidence = CONFIDENCE if needs is None else needs.confidence
    entries = []
    for position, first in enumerate(trials[0]):
        results = [trial[position] for trial in trials]
        whole = _share([result.whole for result in results], confidence)
        allowed = claim(first.slo)
        holds = (whole.bound is not None and whole.bound < allowed) or (
            needs is not None and by_spread(results, confidence)
        )
        entries.append(
            Certified(
                slo=first.slo,
                level=level,
                trials=len(results),
                claim=allowed,
                whole=whole,
                opening=_share([result.opening for result in results], confidence),
                steady=_share([result.steady for result in results], confidence),
                holds=holds,
                confidence=confidence,
                label=LABEL if needs is None else ASKED_LABEL,
                trials_bound=None if needs is None else trials_bound(needs, len(results)),
                further_ns=None if needs is None else further_ns(results, confidence),
                further_requests=None if holds else _further_requests(whole, allowed, confidence),
            )
        )
    return tuple(entries)


def _further_requests(whole: Share, allowed: float, confidence: float) -> int | None:
    # An error rate may be promised to be nothing at all, which no sample ever shows.
    if not 0 < allowed < 1:
        return None
    return extra_sample(whole.over, whole.n, allowed, confidence).at_observed_rate


def _share(samples: Sequence[SloSample], confidence: float) -> Share:
    n = sum(sample.n for sample in samples)
    over = sum(sample.over_at_worst for sample in samples)
    if n == 0:
        return Share(0, 0, None, None)
    return Share(n, over, over / n, upper_bound(over, n, confidence))
