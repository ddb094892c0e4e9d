"""The axis of a promise's values: its unit, the limit in words, and the limit as a line."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from nameplate.contract.slo import Slo
from nameplate.pages.scale import TimeScale, time_scale
from nameplate.report import numbers


def slo_scale(slo: Slo, values: Iterable[float | None]) -> TimeScale:
    """Return the axis of an SLO's judged values: a time unit, or percent for an error rate."""
    if slo.limit_ratio is not None:
        return TimeScale("%", 0.01)
    return time_scale([slo.limit_ns, *values])


def limit_words(slo: Slo) -> str:
    """Write an SLO's limit."""
    return f"{slo.limit_ratio * 100:.6g}%" if slo.limit_ratio is not None else numbers.limit(slo.limit_ns)


def limit_rule(slo: Slo, scale: TimeScale, on: Literal["x", "y"] = "y") -> dict[str, object]:
    """Return the limit as a dashed line across an axis, with its words."""
    limit = scale.of(slo.limit_ratio if slo.limit_ratio is not None else slo.limit_ns)
    place = {"field": "limit", "type": "quantitative"}
    words = (
        # At the right: the title of the axis stands at the left above the plot, where a limit can be the highest value.
        {"align": "right", "x": "width", "dx": -2, "dy": -6}
        if on == "y"
        else {"align": "left", "y": 0, "dx": 5, "baseline": "top"}
    )
    return {
        "data": {"values": [{"limit": limit, "said": f"limit {limit_words(slo)}"}]},
        "layer": [
            {"mark": {"type": "rule", "strokeDash": [5, 4], "color": "var(--ink)"}, "encoding": {on: place}},
            {
                "mark": {"type": "text", "color": "var(--soft)", **words},
                "encoding": {on: place, "text": {"field": "said"}},
            },
        ],
    }
