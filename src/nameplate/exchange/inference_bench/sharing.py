"""Did the shared part of the prompts come from the cache? First-token times of streams that start together tell.

Streams that share a cached prefix queue only for each other's unique parts: sorted, their first-token times rise by the
prefill of a unique part a request. Where nothing is shared they rise by that of a whole prompt. So for each context

    statistic  = mean rise a request / cold prefill of a whole prompt
    mean rise  = sum over its cells of (last - first) / sum of (requests - 1)

is about u, the unique share, where sharing holds, and about 1 where it does not; it does not matter how many prompts a
server takes in one step. It fires above sqrt(u), the geometric middle of the two. The cold prefill is taken from the
file's own prefill entry; else from the warm-up of the cell of one stream, less the time for which it stood still and
its own first token, since that tool sends one request of the same prompt before it starts streams; else from another
context, in proportion to its tokens.
"""

from __future__ import annotations

import math
import re
import statistics
from collections import defaultdict
from collections.abc import Mapping
from itertools import pairwise

from msgspec import Struct

from nameplate.contract.matrix import label
from nameplate.exchange.inference_bench.foreign import Cell, Document

# Where more than this is unique the two answers are too close to tell apart.
MOST_UNIQUE = 0.7
# Fewer rises than this are an accident.
LEAST_STEPS = 3
_STABLE = re.compile(r"\bstable=(\d{1,4}(?:\.\d{1,6})?)s")


class Stairs(Struct, frozen=True, kw_only=True):
    """Hold the test of one context; times in seconds."""

    context: int
    unique: float
    cold_s: float
    steps: int
    mean_rise_s: float
    step_s: float

    @property
    def statistic(self) -> float:
        return self.mean_rise_s / self.cold_s

    @property
    def threshold(self) -> float:
        return math.sqrt(self.unique)

    @property
    def unshared(self) -> bool:
        return self.statistic > self.threshold

    def __str__(self) -> str:
        return (
            f"at {label(self.context)} first-token times step by about {self.step_s:.1f} s, "
            f"{self.statistic:.2f} of a whole cold prefill ({self.cold_s:.1f} s) a request, where {self.unique:.2f} "
            f"was to be expected and {self.threshold:.2f} is the threshold"
        )


def stairs_of(document: Document) -> tuple[Stairs, ...]:
    """Test every context for which the file tells enough."""
    unique = document.setup.unique_percent
    if unique is None or not 0 < unique <= 100 * MOST_UNIQUE:
        return ()
    cold = cold_prefills(document)
    found = []
    by_context: dict[int, list[tuple[float, ...]]] = defaultdict(list)
    for cell in document.cells:
        if not cell.burst and cell.context:
            by_context[cell.context].append(cell.first_tokens)
    for context, rows in sorted(by_context.items()):
        stairs = weigh(context, unique / 100, _cold(context, cold), rows)
        if stairs is not None:
            found.append(stairs)
    return tuple(found)


def weigh(context: int, unique: float, cold_s: float | None, rows: list[tuple[float, ...]]) -> Stairs | None:
    """Test one context from the sorted first-token times of its cells; None where there is too little to tell."""
    rows = [row for row in rows if len(row) > 1]
    steps = sum(len(row) - 1 for row in rows)
    if not cold_s or steps < LEAST_STEPS:
        return None
    # What comes within a hundredth of a prefill came together: it is no step.
    rises = [b - a for row in rows for a, b in pairwise(row) if b - a > 0.01 * cold_s]
    return Stairs(
        context=context,
        unique=unique,
        cold_s=cold_s,
        steps=steps,
        mean_rise_s=sum(row[-1] - row[0] for row in rows) / steps,
        step_s=statistics.median(rises) if rises else 0.0,
    )


def cold_prefills(document: Document) -> dict[int, float]:
    """Estimate the cold prefill of a whole prompt by context, in seconds."""
    found = {cell.context: cold for cell in document.cells if (cold := _from_warmup(cell)) is not None}
    told = {row.context: row.ttft_s for row in document.prefill if row.ttft_s and not row.cached_tokens}
    return {**found, **told}


def _from_warmup(cell: Cell) -> float | None:
    """Take the scout's time from a warm-up: what it lasted beyond the stream's own first token and standing still."""
    stable = _STABLE.search(cell.ready)
    if cell.burst or cell.concurrency != 1 or cell.timed_out or not cell.warmup_s or stable is None:
        return None
    own = cell.ttft.p50 or 0.0
    left = cell.warmup_s - float(stable[1]) - own
    # A first token that took as long as the rest was the cold prefill itself.
    return max(left, own) if max(left, own) > 0 else None


def _cold(context: int, known: Mapping[int, float]) -> float | None:
    if context in known:
        return known[context]
    others = [other for other in known if other]
    if not others:
        return None
    nearest = min(others, key=lambda other: abs(math.log(other / context)))
    return known[nearest] * context / nearest
