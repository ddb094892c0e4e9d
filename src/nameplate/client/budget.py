"""The byte budget of raw reads: whole at first, then a sample of requests, then times and sizes alone."""

from __future__ import annotations

import math
from typing import Literal

from msgspec import Struct

from nameplate.contract.soak import Soak
from nameplate.evidence.header import Keeping
from nameplate.evidence.soak_events import RawKept
from nameplate.evidence.writer import RESERVE_BYTES

# Raw bytes are given up long before the room that sealing needs: rows, events and samples are worth more.
LOW_DISK_BYTES = 8 * RESERVE_BYTES
# Rates vary, and times and sizes of what is not sampled take room as well.
SAMPLE_MARGIN = 1.25
LEAST_SAMPLE, MOST_SAMPLE = 2, 1 << 20


class RawBudget(Struct):
    """Decide of which requests that start from now on the bytes are kept; the decision is one a request.

    `keeping` is what holds now, `told` the last change of it. Without a limit only a disk that runs full changes it; a
    limit of 0 is that of a segment whose soak has spent all of it.
    """

    keeping: Keeping
    limit_bytes: int | None
    duration_ns: int
    worker: int = 0
    told: RawKept | None = None

    @classmethod
    def of(cls, soak: Soak, keeping: Keeping, worker: int, workers: int) -> RawBudget:
        """Give one of several workers its share."""
        limit = None if soak.raw_budget_bytes is None else soak.raw_budget_bytes // workers
        return cls(keeping, limit, soak.duration_ns, worker)

    def look(self, passed_ns: int, reads_bytes: int, disk_free_bytes: int | None) -> bool:
        """Take how far the load has come and what its reads weigh; say whether something else is kept from now on.

        The sample is one in N such that what is left of the budget lasts for what is left of the time, by the rate of
        bytes so far.
        """
        if self.keeping.reads == "none":
            return False
        if disk_free_bytes is not None and disk_free_bytes < LOW_DISK_BYTES:
            return self._keep("none", 1, reads_bytes, "disk")
        if self.limit_bytes is None:
            return False
        if reads_bytes >= self.limit_bytes:
            return self._keep("none", 1, reads_bytes, "budget")
        if self.told is None and 2 * reads_bytes >= self.limit_bytes:
            left = max(0, self.duration_ns - passed_ns) / max(1, passed_ns)
            one_in = min(MOST_SAMPLE, max(LEAST_SAMPLE, math.ceil(SAMPLE_MARGIN * left)))
            return self._keep("sample", one_in * self.keeping.sample_every, reads_bytes, "budget")
        return False

    def _keep(
        self,
        reads: Literal["sample", "none"],
        sample_every: int,
        reads_bytes: int,
        reason: Literal["budget", "disk"],
    ) -> bool:
        self.keeping = Keeping(reads, sample_every, self.keeping.prompts)
        self.told = RawKept(
            reads=reads,
            sample_every=sample_every,
            reads_bytes=reads_bytes,
            reason=reason,
            worker=self.worker,
        )
        return True
