"""What the confirmations of a passing level certify about the share of requests over the limit."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from nameplate.contract.slo import Slo
from nameplate.statistics.binomial import upper_bound
from nameplate.verdict.trial import SloResult, SloSample

CONFIDENCE = 0.95
LABEL = "if requests were independent; level chosen by passing"


class Share(Struct, frozen=True):
    """Hold how many of n requests were over the limit, their share, and its one-sided 95% upper bound.

    `share` and `bound` are null where n is 0. Requests whose value is open count as over.
    """

    n: int
    over: int
    share: float | None
    bound: float | None


class Certified(Struct, frozen=True):
    """Hold one SLO's shares over the valid trials of one level, for the whole sample and by phase.

    `claim` is the share that the percentile leaves over the limit (0.05 for p95), or the error rate's limit;
    `holds` says whether the whole sample's bound is below it.
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


def certify(level: int, trials: Sequence[Sequence[SloResult]]) -> tuple[Certified, ...]:
    """Return one entry an SLO from the SLO results of a level's valid trials; empty where there are none."""
    if not trials:
        return ()
    entries = []
    for position, first in enumerate(trials[0]):
        results = [trial[position] for trial in trials]
        whole = _share([result.whole for result in results])
        claim = _claim(first.slo)
        entries.append(
            Certified(
                slo=first.slo,
                level=level,
                trials=len(results),
                claim=claim,
                whole=whole,
                opening=_share([result.opening for result in results]),
                steady=_share([result.steady for result in results]),
                holds=whole.bound is not None and whole.bound < claim,
            )
        )
    return tuple(entries)


def _claim(slo: Slo) -> float:
    if slo.limit_ratio is not None:
        return slo.limit_ratio
    assert slo.percentile is not None
    return round(1 - slo.percentile / 100, 12)


def _share(samples: Sequence[SloSample]) -> Share:
    n = sum(sample.n for sample in samples)
    over = sum(sample.over_at_worst for sample in samples)
    if n == 0:
        return Share(0, 0, None, None)
    return Share(n, over, over / n, upper_bound(over, n, CONFIDENCE))
