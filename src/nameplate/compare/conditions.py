"""Conditions for a build: `--fail-if "ttft p95 +5%"`, broken only where the whole interval says so."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence

from msgspec import Struct

from nameplate.compare.document import CellCompared, Compared, Condition, Interval, RatedCompared
from nameplate.compare.measures import MEASURES, Statistic, known
from nameplate.contract.errors import CallerError
from nameplate.contract.quantity import format_duration, parse_duration_ns

_WORDS = re.compile(r"\s*(.+?)\s+([+-])\s*(\d{1,12}(?:\.\d{1,9})?)\s*([a-zA-Zµ%/]*)\s*")
_HINT = 'Write a measure and how much worse is too much: "ttft p95 +5%", "ttft p95 +20ms", "output_rate -3%".'
_RATES = ("", "/s", "tok/s", "req/s")


class FailIf(Struct, frozen=True):
    """Hold one condition: the statistic, and the limit as a share of A or in the measure's unit, with its sign."""

    text: str
    statistic: Statistic
    limit: float
    relative: bool

    @classmethod
    def parse(cls, text: str) -> FailIf:
        """Read a condition; CallerError says what is wrong, and which measures there are."""
        match = _WORDS.fullmatch(text)
        if match is None:
            raise CallerError(f"{text!r} is no condition.", why=_HINT, hint=f"Known measures: {known()}.")
        statistic = Statistic.parse(match[1])
        kind = statistic.kind
        sign = 1.0 if match[2] == "+" else -1.0
        if (sign > 0) != (kind.better == "lower"):
            other = "+" if kind.better == "lower" else "-"
            raise CallerError(
                f"{text.strip()!r} would fail where {statistic} gets better.",
                hint=f"Write {statistic} {other}{match[3]}{match[4]}.",
            )
        number, unit = float(match[3]), match[4]
        if unit == "%":
            # A share of errors is compared by percentage points: from none, every rise is infinite.
            return cls(text.strip(), statistic, sign * number / 100, kind.unit != "share")
        return cls(text.strip(), statistic, sign * _absolute(text, statistic, match[3], unit), relative=False)

    def judge(self, cells: Sequence[CellCompared], rated: Sequence[RatedCompared]) -> Condition:
        """Judge the condition by every load that has its measure: broken by one is broken, held by all is held."""
        found = list(self._of_rated(rated) if self.statistic.measure == "rated" else self._of_cells(cells))
        outcomes = [outcome for outcome, _ in found]
        return Condition(
            text=self.text,
            outcome="broken"
            if "broken" in outcomes
            else "held"
            if outcomes and set(outcomes) == {"held"}
            else "not known",
            details=tuple(detail for _, detail in found) or (f"nothing has {self.statistic} on both sides",),
        )

    def _of_cells(self, cells: Sequence[CellCompared]) -> Iterator[tuple[str, str]]:
        having = [
            (cell, one) for cell in cells for one in cell.measures if one.statistic == str(self.statistic)
        ]
        # A baseline is one trial by plan: where loads have the measure it decides nothing.
        loaded = [(cell, one) for cell, one in having if cell.group != "baseline"]
        for cell, one in loaded or having:
            outcome = self._outcome(one)
            yield (
                outcome,
                f"{cell.cell}: {outcome}" + (f" ({self._why(one)})" if outcome == "not known" else ""),
            )
        for cell in cells:
            for apart in cell.not_compared:
                if apart.statistic in (self.statistic.measure, str(self.statistic)):
                    yield "not known", f"{cell.cell}: not compared: {'; '.join(apart.reasons)}"

    def _of_rated(self, rated: Sequence[RatedCompared]) -> Iterator[tuple[str, str]]:
        for one in rated:
            interval = one.absolute
            if interval is not None and self.relative:
                interval = _scaled(interval, one.a.rated)
            # A rated number is whole: one fewer is beyond "-0" and not beyond "-1".
            outcome = "not known" if interval is None else self._beyond(interval)
            yield outcome, f"{one.shape}: {outcome}" + (f" ({one.reason})" if outcome == "not known" else "")

    def _outcome(self, one: Compared) -> str:
        interval = one.relative if self.relative else one.absolute
        if one.a.infinite or one.b.infinite:
            # What is never reached is beyond every limit; only where all trials say so is that certain.
            return {"worse": "broken", "better": "held"}.get(one.verdict, "not known")
        return "not known" if interval is None else self._beyond(interval)

    def _why(self, one: Compared) -> str:
        """Say why an outcome is not known: the limit lies within the interval, or there is none."""
        interval = one.relative if self.relative else one.absolute
        if interval is None or interval.low is None or interval.high is None:
            return one.reason
        return f"the limit lies within the interval of {self._written(interval.low)} to {self._written(interval.high)}"

    def _written(self, value: float) -> str:
        if self.relative or self.statistic.kind.unit == "share":
            return f"{value * 100:+.1f}%"
        sign = "-" if value < 0 else "+"
        return f"{sign}{format_duration(abs(value))}" if self.statistic.kind.unit == "ns" else f"{value:+.4g}"

    def _beyond(self, interval: Interval) -> str:
        low = -math.inf if interval.low is None else interval.low
        high = math.inf if interval.high is None else interval.high
        if self.statistic.kind.better == "lower":
            return "broken" if low > self.limit else "held" if high <= self.limit else "not known"
        return "broken" if high < self.limit else "held" if low >= self.limit else "not known"


def exit_code(conditions: Sequence[Condition], *, answered: bool) -> int:
    """Return 1 where a condition is broken, else 3 where one is not known; without any, 3 where nothing is known."""
    if not conditions:
        return 0 if answered else 3
    outcomes = {condition.outcome for condition in conditions}
    return 1 if "broken" in outcomes else 3 if "not known" in outcomes else 0


def _absolute(text: str, statistic: Statistic, number: str, unit: str) -> float:
    kind = MEASURES[statistic.measure]
    if kind.unit == "ns" and unit:
        return float(parse_duration_ns(f"{number}{unit}"))
    if kind.unit == "1/s" and unit in _RATES:
        return float(number)
    if kind.unit == "level" and unit in ("", "/s", "req/s"):
        return float(number)
    wanted = {"ns": "a duration (+20ms) or a share (+5%)", "share": "percentage points (+1%)"}.get(
        kind.unit, "a number (-50) or a share (-3%)"
    )
    raise CallerError(f"{text.strip()!r} says how much in no unit of {statistic}.", hint=f"Write {wanted}.")


def _scaled(interval: Interval, size: float | None) -> Interval | None:
    if not size:
        return None
    low = None if interval.low is None else interval.low / size
    high = None if interval.high is None else interval.high / size
    return Interval(interval.estimate / size, low, high)
