"""What a rated rate is worth beside its number: goodput, requests in flight, and how its queue was judged."""

from __future__ import annotations

from collections.abc import Iterable

from rich.text import Text

from nameplate.contract.contract import Contract
from nameplate.measure.plate import PlateShape
from nameplate.report import numbers
from nameplate.statistics.queue_growth import ALPHA, CONFIDENCE


def at_the_rated_rate(shape: PlateShape) -> str | None:
    """Say goodput and requests in flight over the valid trials of the rated level; None where there is none."""
    held = [
        trial.open_loop
        for trial in shape.confirmations
        if trial.level == shape.rated and trial.status != "invalid" and trial.open_loop is not None
    ]
    if not held:
        return None
    goodput = _range(one.goodput_per_s for one in held)
    flight, little = _range(one.outstanding_mean for one in held), _range(one.little for one in held)
    most = max((one.outstanding_max or 0 for one in held), default=0)
    return (
        f"{goodput} requests/s met every SLO (goodput); {flight} in flight on average, {most:,} at most; by Little's "
        f"law (arrivals/s x mean E2E) {little}"
    )


def judged_by(contract: Contract) -> Text:
    """Say by which tests queue and latency were judged."""
    assert contract.rate is not None
    share = contract.rate.resolution * 100
    return Text(
        "queue: rise of the outstanding requests as a share of the arrivals, less what more arrivals than planned "
        f"explain; rising where p < {ALPHA:.0%} and above {share / 2:g}%, bounded where {share:g}% is excluded with "
        f"{CONFIDENCE:.0%} confidence. latency: thirds of the arrivals after the warm-up. TTFT and E2E from schedule.",
        style="dim",
    )


def _range(values: Iterable[float | None]) -> str:
    known = sorted(value for value in values if value is not None)
    return numbers.between(numbers.rate(known[0]), numbers.rate(known[-1])) if known else numbers.ABSENT
