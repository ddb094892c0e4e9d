"""The protocol's constants, each with the protocol's own value as default."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Literal

from msgspec import Struct

from nameplate.contract.slo import Slo

StartPolicy = Literal["burst", "staggered", "handover"]


class Rules(Struct, frozen=True):
    """Hold what the capacity protocol may vary; the defaults are the protocol of the reference.

    `requests` of None means the protocol's own count for each level. `max_s` is the study's time budget in
    seconds, None for no bound. `tolerance` is how many disagreeing trials a level may have after extra
    confirmations and still count as agreeing. `loop_limit` is the share of judged answers that may end in a loop
    where none of the baseline's did: one of few is too many, one of 128 is not. With `confidence`, a share of one, a
    level passes only if its trials also certify that at this confidence (`verdict/certainty.py`).
    """

    confirmations: int = 3
    extra_confirmations: int = 0
    tolerance: int = 0
    requests: int | None = None
    warmup: int = 8
    locator_warmup: int = 2
    baseline_warmup: int = 2
    baseline_requests: int = 10
    quiet_s: float = 15.0
    min_concurrency: int = 1
    max_concurrency: int = 1024
    first_guess: int | None = None
    max_trials: int = 40
    max_s: float | None = None
    start: StartPolicy = "burst"
    operate_below: int = 1
    replacements: int = 2
    loop_limit: float = 0.05
    confidence: float | None = None

    def measured_requests(self, concurrency: int, slos: Collection[Slo]) -> int:
        """Count the measured requests of a level: max(64, 4C, ceil(3/(1-p))), p the strictest percentile."""
        if self.requests is not None:
            return max(self.requests, concurrency)
        percentiles = [slo.percentile for slo in slos if slo.percentile is not None]
        # Rounded before the ceiling: 3/(1-0.95) is 59.99999... in binary floating point.
        tail = max((math.ceil(round(3 / (1 - p / 100), 6)) for p in percentiles), default=0)
        if self.confidence is not None:
            # A share of errors is certified like any other, and needs as many requests.
            ratios = [slo.limit_ratio for slo in slos if slo.limit_ratio]
            tail = max([tail, *(math.ceil(round(3 / ratio, 6)) for ratio in ratios)])
        return max(64, 4 * concurrency, tail)
