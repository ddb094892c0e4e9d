"""The page of a curve: its numbers are the result's, the knee is marked, and status beats number."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from nameplate.contract.curve import CurvePlan
from nameplate.contract.plan import TrialPlan
from nameplate.measure.curve_builder import AboutCurve, build_curve
from nameplate.measure.curve_loss import Loss
from nameplate.measure.curve_result import Border, CurveResult, Probe, encode_curve
from nameplate.measure.result import evaluate
from nameplate.measure.tests.trials import MS, SHAPE, closed_loop, contract, evidence, identity
from nameplate.pages.report import report_page
from nameplate.pages.subject import CurveSubject
from nameplate.pages.tests.reading import Page, wrong
from nameplate.report.tests.test_curve import climb, loads
from nameplate.verdict.curve_level import LevelStatus

HOSTILE = "</script><script>alert(1)</script>\u2028\u202e\"'&<img src=x onerror=alert(1)>"


def subject(result: CurveResult) -> CurveSubject:
    return CurveSubject(directory=Path("runs/curve"), trials=(), manifest_sha256=None, result=result)


def read(result: CurveResult) -> Page:
    return Page(report_page([subject(result)]))


def repeated() -> CurveResult:
    """Return a curve whose levels met two configurations, with two trials of one level."""
    held = structs.replace(contract(), slos=(), curve=CurvePlan(concurrencies=(1, 2, 4), repeat=2))
    small = identity(engine="vllm", model="m", running_limit_effective=2)
    large = identity(engine="vllm", model="m", running_limit_effective=4)
    results = []
    for c, number, server in ((1, 1, small), (2, 1, small), (2, 2, small), (2, 3, large), (4, 1, large)):
        rows = closed_loop(c, 32, ttft=lambda _, c=c: c * 100 * MS)  # type: ignore[misc]
        trial = TrialPlan(f"1000-11.c{c}.t{number}", "level", SHAPE, c, 32, 2)
        found = evidence(rows, contract=held, plan=trial, identity_before=server, identity_after=server)
        results.append(evaluate(found))
    return build_curve(held, AboutCurve(identity=small), results, {}, exit_code=0)


@pytest.mark.parametrize(
    "result", [loads(), loads(hardly=0.9), climb(), repeated()], ids=["loads", "knee", "climb", "two"]
)
def test_every_number_stands_in_the_result(result: CurveResult) -> None:
    """Whatever has a path is what the result holds there; a result that differs is found out."""
    page = read(result)
    assert len(page.values) > 10
    assert list(wrong(page, {"result.json": encode_curve(result)})) == []
    row = structs.replace(result.rows[0], load=77.0)
    other = structs.replace(result, rows=(row, *result.rows[1:]))
    assert "rows.0.load" in {path for path, _, _ in wrong(page, {"result.json": encode_curve(other)})}


def test_the_sentence_comes_first_and_the_knee_is_marked() -> None:
    """The answer is the study's own sentence, and the knee's level stands in both panels."""
    result = loads(hardly=0.9)
    page = read(result)
    assert result.sentences[0] in page.text and result.curves[0].knee.level is not None
    for about in ("Output tokens a second by level", "TTFT p50 and p95 by level"):
        (chart,) = [chart for chart in page.charts if chart["description"] == about]
        layers: list[dict[str, Any]] = chart["layer"]
        assert layers[0]["data"]["values"] == [{"at": result.curves[0].knee.level, "said": "knee"}]
    against = page.rows("against median TTFT")
    assert [row["level"] for row in against] == [1, 2, 4] and [row["knee"] for row in against].count(
        True
    ) == 1
    waits = page.rows("TTFT p50 and p95")
    shown = next(row for row in waits if row["level"] == 2 and row["which"] == "p50")
    point = result.rows[1].points[0]
    assert shown["value"] == pytest.approx((point.sample(result.basis).ttft.p50 or 0) / 1e6)


def test_no_knee_is_made_up() -> None:
    """Where output still rises there is no line, and that is said."""
    page = read(loads())
    assert "not reached: output still rises" in page.text and "No knee is marked" in page.text
    assert not any("'said': 'knee'" in str(chart) for chart in page.charts)


def test_status_beats_number() -> None:
    """A level without a number is a row with its status and reason, and is in no figure."""
    page = read(loads())
    assert "no time was left" in page.text
    assert ("result.json", "rows.3.status", "skipped") in page.values
    assert not any(path.startswith("rows.3.points") for _, path, _ in page.values)
    assert 8 not in {row["level"] for row in page.rows("Output tokens a second by level")}


def test_different_limits_are_not_one_curve() -> None:
    """Several configurations are said first, each with its own line and colour."""
    result = repeated()
    page = read(result)
    assert len(result.curves) == 2
    assert "2 curves, not one: running limit effective changed between levels." in page.text
    names = {row["curve"] for row in page.rows("Output tokens a second by level")}
    assert names == {"1: running limit effective 2", "2: running limit effective 4"}


def test_a_climb_has_its_border() -> None:
    """The end of the context is a number with its source, marked in the figures, with the probes that found it."""
    border = Border(source="found", accepted_tokens=1400, refused_tokens=1480)
    probe = Probe(1480, None, False, "too long")
    result = structs.replace(climb(), border=border, probes=(probe,))
    page = read(result)
    assert "1,400 tokens of input, which were taken, and 1,480" in page.text
    (chart,) = [chart for chart in page.charts if "Median TTFT of single" in str(chart["description"])]
    layers: list[dict[str, Any]] = chart["layer"]
    assert layers[0]["data"]["values"] == [{"at": 1480.0, "said": "context"}]
    assert list(wrong(page, {"result.json": encode_curve(result)})) == []


def test_losses_hostile_words_and_empty_studies() -> None:
    """A loss is told in the answer; words of a server are text; a study without a level has a page as well."""
    result = loads(losses=(Loss(load=8.0, trial=None, error=HOSTILE),))
    rows = (*result.rows[:3], structs.replace(result.rows[3], status=LevelStatus.lost, reason=HOSTILE))
    lost = structs.replace(
        result, rows=rows, reason=HOSTILE, sentences=(HOSTILE,), exit_code=5, spoiled=(HOSTILE,), tool=HOSTILE,
        command=("nameplate", HOSTILE), probes=(Probe(9, None, False, HOSTILE),),
    )  # fmt: skip
    page = read(lost)
    assert "Service was lost at C=8, before its first request" in page.text
    assert "alert(1)" in page.text and not {"img", "iframe"} & set(page.tags)
    assert "\u202e" not in page.text and "\u2028" not in page.text
    clean = read(loads())
    assert page.tags.count("script") - len(page.charts) == clean.tags.count("script") - len(clean.charts)
    empty = structs.replace(loads(), rows=(), curves=(), sentences=(), exit_code=None)
    assert "there is no curve" in read(empty).text
