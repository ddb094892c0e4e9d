"""A service level objective: a metric, how it is judged, and the strict limit it must stay below."""

from __future__ import annotations

import re
from typing import Literal, get_args

from msgspec import Struct

from nameplate.contract.errors import CallerError
from nameplate.contract.quantity import format_limit, parse_duration_ns, parse_ratio

Metric = Literal["ttft", "itl", "tpot", "e2e", "longest_gap", "error_rate"]

_LATENCY = re.compile(r"\s*([a-z_0-9]+)\s+p(\d+(?:\.\d+)?)\s*(<=|<|>=|>)?\s*(.+)", re.IGNORECASE)
_RATE = re.compile(r"\s*error_rate\s*(<=|<|>=|>)?\s*(.+)", re.IGNORECASE)
_HINT = 'Write it like "ttft p95 < 10s", "itl p99 < 50ms" or "error_rate < 1%".'


class Slo(Struct, frozen=True):
    """Promise that a percentile of a latency, or the error rate, stays strictly below a limit.

    `percentile` is in percent (95.0) and None for `error_rate`. `limit_ns` holds a latency's limit in
    nanoseconds, `limit_ratio` an error rate's as a share of one; exactly one of them is set.
    """

    metric: Metric
    percentile: float | None = None
    limit_ns: int | None = None
    limit_ratio: float | None = None

    @classmethod
    def parse(cls, text: str) -> Slo:
        """Read an SLO as people write it; CallerError names what is wrong."""
        rate = _RATE.fullmatch(text)
        if rate is not None:
            cls._strict(rate[1], text)
            share = parse_ratio(rate[2])
            if share <= 0:
                raise CallerError(
                    f"No error rate can be below {rate[2].strip()}.",
                    why="SLOs here are strict.",
                    hint="Leave the error_rate SLO out: then any error fails a trial.",
                )
            return cls("error_rate", limit_ratio=share)
        match = _LATENCY.fullmatch(text)
        if match is None:
            raise CallerError(f"{text!r} is not an SLO.", hint=_HINT)
        metric = match[1].lower()
        if metric not in get_args(Metric):
            raise CallerError(
                f"{match[1]!r} is not a metric with an SLO.",
                hint=f"Known metrics: {', '.join(get_args(Metric))}.",
            )
        cls._strict(match[3], text)
        percentile = float(match[2])
        if not 0 < percentile < 100:
            raise CallerError(
                f"p{match[2]} is not a percentile.", hint="It must lie between 0 and 100, as in p95 or p99.9."
            )
        limit = parse_duration_ns(match[4])
        if limit <= 0:
            raise CallerError(f"The SLO {text!r} has no positive limit.", hint=_HINT)
        return cls(metric, percentile, limit_ns=limit)  # type: ignore[arg-type]

    @staticmethod
    def _strict(sign: str | None, text: str) -> None:
        if sign not in (None, "<"):
            raise CallerError(
                f"{text!r} uses {sign!r}.",
                why="SLOs here are strict: a value equal to the limit does not pass.",
                hint=_HINT,
            )

    def __str__(self) -> str:
        if self.limit_ratio is not None:
            return f"error_rate < {self.limit_ratio:g}"
        assert self.percentile is not None and self.limit_ns is not None
        return f"{self.metric} p{repr(self.percentile).removesuffix('.0')} < {format_limit(self.limit_ns)}"
