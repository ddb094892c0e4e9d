"""The trials of a curve as points, each with its curve and where its numbers stand in the result."""

from __future__ import annotations

from msgspec import Struct

from nameplate.contract.curve import say_load
from nameplate.measure.curve_point import Point, Sample
from nameplate.measure.curve_result import CurveResult, LevelRow
from nameplate.pages.curve.answer import plan_of
from nameplate.report.curve import limits_words, middle
from nameplate.report.safe import safe
from nameplate.verdict.curve import differing


class Placed(Struct, frozen=True, kw_only=True):
    """Hold one trial of a level: `path` is the point's, `sample_path` that of the sample that is shown.

    `curve` is the place of the curve that it belongs to, `middle` whether it stands for its level.
    """

    row: LevelRow
    point: Point
    sample: Sample
    path: str
    sample_path: str
    said: str
    curve: int | None
    middle: bool
    knee: bool


def placed(result: CurveResult) -> list[Placed]:
    """Return every trial that has numbers, by level."""
    kind = plan_of(result).kind
    found = []
    for at, row in enumerate(result.rows):
        for place, point in enumerate(row.points):
            path = f"rows.{at}.points.{place}"
            steady = result.basis == "steady" and point.steady is not None
            curve = next(
                (
                    n
                    for n, one in enumerate(result.curves)
                    if not differing(one.configuration, point.configuration)
                ),
                None,
            )
            found.append(
                Placed(
                    row=row,
                    point=point,
                    sample=point.sample(result.basis),
                    path=path,
                    sample_path=f"{path}.{'steady' if steady else 'whole'}",
                    said=say_load(kind, row.load),
                    curve=curve,
                    middle=point is middle(result, row),
                    knee=curve is not None and result.curves[curve].knee.level == row.load,
                )
            )
    return found


def name_of(result: CurveResult, curve: int | None) -> str:
    """Name a curve by what tells it from the others; empty where there is one."""
    if curve is None or len(result.curves) < 2:
        return ""
    return f"{curve + 1}: {safe(limits_words(result.curves[curve], result.curves), 120)}"
