"""The measures that a comparison knows: what each is counted in, and which way is better."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

from nameplate.contract.errors import CallerError
from nameplate.statistics.percentile import SHOWN

Unit = Literal["ns", "1/s", "share", "level"]
Better = Literal["lower", "higher"]


class Measure(Struct, frozen=True):
    """Describe one measure: its unit, which way is better, and whether it has percentiles; `says` names it in words."""

    unit: Unit
    better: Better
    says: str
    percentiles: bool = True


MEASURES: Mapping[str, Measure] = {
    "ttft": Measure("ns", "lower", "TTFT"),
    "ttft_from_schedule": Measure("ns", "lower", "TTFT from schedule"),
    "first_answer": Measure("ns", "lower", "time to first answer token"),
    "itl": Measure("ns", "lower", "ITL"),
    "tpot": Measure("ns", "lower", "TPOT"),
    "chunk_gaps": Measure("ns", "lower", "chunk gap"),
    "longest_gap": Measure("ns", "lower", "longest gap"),
    "e2e": Measure("ns", "lower", "E2E"),
    "e2e_from_schedule": Measure("ns", "lower", "E2E from schedule"),
    "per_user": Measure("1/s", "higher", "output tok/s a user"),
    "output_rate": Measure("1/s", "higher", "output tok/s", percentiles=False),
    "output_rate_steady": Measure("1/s", "higher", "steady output tok/s", percentiles=False),
    "request_rate": Measure("1/s", "higher", "requests/s", percentiles=False),
    "goodput": Measure("1/s", "higher", "goodput, req/s", percentiles=False),
    "prefill_rate": Measure("1/s", "higher", "prefill tok/s", percentiles=False),
    "decode_rate": Measure("1/s", "higher", "decode tok/s", percentiles=False),
    "input_rate": Measure("1/s", "higher", "input tok/s", percentiles=False),
    "total_rate": Measure("1/s", "higher", "all tok/s", percentiles=False),
    "error_rate": Measure("share", "lower", "error rate", percentiles=False),
    "rated": Measure("level", "higher", "rated", percentiles=False),
}

# Percentiles that are compared without being asked for; what is asked for may be any that results hold.
USUAL = ("p50", "p95", "p99")
KNOWN = tuple(f"p{percent:g}" for percent in SHOWN)
# Of a rate a user gets, the percentiles above the median are those of the luckier half. Gaps are of two kinds, with and
# without somebody's prefill between: a percentile near the border of the two jumps where nothing changed.
USUAL_OF: Mapping[str, tuple[str, ...]] = {"per_user": ("p50",), "chunk_gaps": ()}

# What is judged first where no promise is part of the contract: waiting, reading, and work done.
HEADLINE = ("ttft p95", "itl p95", "output_rate", "prefill_rate")


# What a request alone shows, and no load does.
ALONE = ("prefill_rate", "decode_rate")
# Of a cell of a speed matrix: few requests stand behind it, and its latencies are medians.
HEADLINE_OF_CELLS = ("output_rate", "prefill_rate", "ttft p50", "itl p50")


class Statistic(Struct, frozen=True, order=True):
    """Name one number of a trial: a measure, and for those with percentiles which one (`p95`)."""

    measure: str
    percentile: str = ""

    @property
    def kind(self) -> Measure:
        return MEASURES[self.measure]

    @property
    def says(self) -> str:
        """Name it for people."""
        return f"{self.kind.says} {self.percentile}".rstrip()

    def __str__(self) -> str:
        return f"{self.measure} {self.percentile}".rstrip()

    @classmethod
    def parse(cls, text: str) -> Statistic:
        """Read `ttft p95` or `output_rate`; CallerError names what is known."""
        name, _, percentile = text.strip().lower().partition(" ")
        name, percentile = name.replace("-", "_"), percentile.strip()
        kind = MEASURES.get(name)
        if kind is None:
            raise CallerError(f"{name or text!r} is no measure of a comparison.", hint=f"Known: {known()}.")
        if kind.percentiles and not _is_percentile(percentile):
            wrong = f"{percentile!r} is no percentile" if percentile else "it says no percentile"
            raise CallerError(f"{text.strip()!r} cannot be compared: {wrong}.", hint=f"Write {name} p95.")
        if percentile and not kind.percentiles:
            raise CallerError(f"{name} has no percentiles.", hint=f"Write {name} alone.")
        return cls(name, percentile)


def _is_percentile(text: str) -> bool:
    try:
        return text.startswith("p") and 0 < float(text[1:]) < 100
    except ValueError:
        return False


def known() -> str:
    """List the measures in words."""
    with_percentiles = [name for name, kind in MEASURES.items() if kind.percentiles]
    others = [name for name, kind in MEASURES.items() if not kind.percentiles]
    return f"{', '.join(with_percentiles)}, each with p50, p90, p95 or p99; {', '.join(others)}"
