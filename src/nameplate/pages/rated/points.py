"""The trials of one shape as points, which figures are drawn from."""

from __future__ import annotations

import math

from msgspec import Struct

from nameplate.contract.levels import levels_of
from nameplate.contract.slo import Slo
from nameplate.measure.plate import PlateShape
from nameplate.measure.result import TrialResult
from nameplate.pages.subject import RatedSubject
from nameplate.verdict.trial import SloSample


class Point(Struct, frozen=True, kw_only=True):
    """Hold one trial of a level; `judged` are nanoseconds or a share, null where it is infinite or absent.

    `at_least` says that the judged value is only bounded from below: requests were cut. `n` requests were
    sent. Rates are null where a trial was cut short.
    """

    key: str
    role: str
    order: int
    level: float
    told: str
    status: str
    n: int
    judged: float | None
    at_least: bool
    never: bool
    output_per_s: float | None
    requests_per_s: float | None


def points_of(subject: RatedSubject, shape: PlateShape, slo: Slo | None) -> list[Point]:
    """Return the shape's locator and confirmation trials in the order in which they ran."""
    levels = levels_of(subject.plate.contract)
    found: list[Point] = []
    for result in subject.results:
        plan = result.plan
        if plan.shape != shape.shape or plan.role not in ("locator", "confirmation"):
            continue
        sample = _sample(result, slo)
        bounds = None if sample is None else sample.bounds
        never = bounds is not None and math.isinf(bounds.best)
        rates = result.measurement.rates
        # A locator trial stops when its verdict is certain: what it sent is a burst, and no rate to compare.
        cut = result.measurement.correctness.sent < plan.requests
        found.append(
            Point(
                key=plan.key,
                role=plan.role,
                order=len(found) + 1,
                level=levels.value(plan.level),
                told=levels.name(plan.level),
                status=result.verdict.status,
                n=result.measurement.correctness.sent,
                judged=None if bounds is None or never else bounds.best,
                at_least=bounds is not None and not never and bounds.worst > bounds.best,
                never=never,
                output_per_s=None if cut or rates.tokens_whole is None else rates.tokens_whole.per_s,
                requests_per_s=None if cut or rates.requests_whole is None else rates.requests_whole.per_s,
            )
        )
    return found


def _sample(result: TrialResult, slo: Slo | None) -> SloSample | None:
    found = next((one for one in result.verdict.slos if one.slo == slo), None)
    return None if found is None else found.whole
