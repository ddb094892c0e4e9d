"""How a curve looks: the sentence first, statuses in place of numbers, any width, with and without block letters."""

from __future__ import annotations

import io

import pytest
from msgspec import structs
from rich.cells import cell_len
from rich.console import Console

from nameplate.contract.curve import CurvePlan
from nameplate.contract.plan import TrialPlan
from nameplate.contract.shape import Shape
from nameplate.measure.curve_builder import AboutCurve, build_curve
from nameplate.measure.curve_loss import LastState, Loss, LostRequest
from nameplate.measure.curve_result import CurveResult
from nameplate.measure.result import evaluate
from nameplate.measure.tests.trials import MS, SHAPE, closed_loop, contract, evidence, identity
from nameplate.report.bars import Bar, Panel, Panels, drawn
from nameplate.report.curve import curve_summary
from nameplate.report.tests.rendering import text_of
from nameplate.verdict.curve_level import LevelStatus, LevelVerdict

SERVER = identity(engine="vllm", model="m", block_size_tokens=16, running_limit_effective=4, kv_tokens=9000)
FAILED = LevelVerdict(LevelStatus.skipped, "no time was left")


def loads(hardly: float = 0.1, **more: object) -> CurveResult:
    """Return a curve over three levels, whose first token waits for those before it, and one that was skipped."""
    plan = CurvePlan(concurrencies=(1, 2, 4, 8), hardly=hardly)
    held = structs.replace(contract(), slos=(), curve=plan)
    results = []
    for c in (1, 2, 4):
        rows = closed_loop(c, 32, ttft=lambda _, c=c: c * 100 * MS)  # type: ignore[misc]
        alone = None if c == 1 else (90.0 * MS, 100.0 * MS, 110.0 * MS)
        trial = TrialPlan(f"1000-11.c{c}.t1", "level", SHAPE, c, 32, 2, alone_ttft_ns=alone)
        found = evidence(rows, contract=held, plan=trial, identity_before=SERVER, identity_after=SERVER)
        results.append(evaluate(found))
    about = AboutCurve(identity=SERVER, **more)  # type: ignore[arg-type]
    return build_curve(held, about, results, {8.0: FAILED}, exit_code=3, reason="3 of 4 levels have numbers")


def climb() -> CurveResult:
    plan = CurvePlan(inputs=(1000, 2000), output_tokens=11)
    held = structs.replace(contract(), slos=(), shapes=(), curve=plan)
    trial = TrialPlan("in1000.out11.t1", "level", Shape(1000, 11), 1, 3, 2)
    rows = closed_loop(1, 3)
    found = evidence(rows, contract=held, plan=trial, identity_before=SERVER, identity_after=SERVER)
    refused = LevelVerdict(LevelStatus.refused, "This model's maximum context length is 1500 tokens.")
    return build_curve(held, AboutCurve(identity=SERVER), [evaluate(found)], {2000.0: refused}, exit_code=0)


def test_waits_beyond_the_knee_are_estimated_without_the_servers_times() -> None:
    """Where the server has no histograms, the note holds the first level beyond the knee against one client alone."""
    said = " ".join(text_of(curve_summary(loads(hardly=0.9), "x", "nameplate curve"), 120).split())
    assert (
        "At C=2 a request waits some 100.0 ms (90.00 to 110.0 ms) longer for its first token than one alone"
        in said
    )
    assert "an estimate, since the server's own times are not known" in said


def test_the_sentence_comes_first_and_statuses_stand_in_place_of_numbers() -> None:
    """The answer is the first line; a level without a number has its status in the table and its reason below."""
    said = text_of(curve_summary(loads(), "x", "nameplate curve"), 120)
    assert said.startswith(
        "The knee is not reached, output still rises at the highest level: from C=2 to C=4 output"
    )
    assert "Incomplete: 3 of 4 levels have numbers." in said
    row = next(line for line in said.splitlines() if line.strip().startswith("C=8"))
    assert row.split() == ["C=8", "skipped"]
    assert "C=8  skipped: no time was left" in said


@pytest.mark.parametrize("width", [40, 60, 80, 100, 160, 240])
@pytest.mark.parametrize("result", [loads(), climb()], ids=["loads", "climb"])
def test_it_fits_any_width(result: CurveResult, width: int) -> None:
    """No line is wider than the terminal; what a narrow one leaves out is named."""
    said = text_of(curve_summary(result, "x", "nameplate curve sim:demo"), width)
    assert all(cell_len(line) <= width for line in said.splitlines())
    assert "TTFT" in said
    if width <= 60:
        assert "a wider terminal" in said


def test_a_loss_is_told_before_everything() -> None:
    """A loss of service is the first thing said: after what, which request, which state, and whether it came back."""
    loss = Loss(
        load=8.0,
        trial="1000-11.c8.t1",
        error="gone.",
        completed=5,
        planned=34,
        request=LostRequest(
            index=7, phase="steady", input_tokens=1000, output_tokens=11, got_tokens=3, outcome="reset",
            error=None, after_s=2.5,
        ),
        last_state=LastState(before_s=0.4, running=4, waiting=4, kv_usage=0.99),
        returned=True,
        waited_s=10.0,
    )  # fmt: skip
    result = structs.replace(loads(losses=(loss,)))
    rows = (*result.rows[:3], structs.replace(result.rows[3], status=LevelStatus.lost))
    said = " ".join(text_of(curve_summary(structs.replace(result, rows=rows), "x"), 120).split())
    assert said.startswith(
        "Service was lost at C=8, after 5 of 34 requests had ended well and 3 of 4 levels had been measured. "
        "Request 7 (1,000 tokens in, 3 of 11 out) ended as reset 2.5 s after it was sent. Last known, 0.4 s before: "
        "4 running, 4 waiting, 99.0% of the KV pool. It came back within 10 s."
    )


def test_words_of_a_server_move_no_cursor() -> None:
    """A refusal's words are shown harmless."""
    result = climb()
    rows = (result.rows[0], structs.replace(result.rows[1], reason="\x1b[2Jno"))
    assert "\x1b" not in text_of(curve_summary(structs.replace(result, rows=rows), "x"), 80)


def test_bars() -> None:
    """A bar is as long as its value on its panel's own scale; nothing is drawn for nothing, little for little."""
    assert drawn(10.0, 10.0, 4, False) == "████" and drawn(5.0, 10.0, 4, False) == "██"
    assert drawn(None, 10.0, 4, False) == "" == drawn(0.0, 10.0, 4, False)
    assert drawn(0.001, 10.0, 4, False) == "▏" and drawn(0.001, 10.0, 4, True) == "#"
    assert drawn(1.0, 0.0, 4, False) == ""


def test_panels_stand_side_by_side_only_where_they_fit() -> None:
    """Two panels share the lines of a wide terminal and stand one below the other on a narrow one."""
    panels = Panels(
        tuple(
            Panel(name, (Bar("C=1", 1.0, "1 tok/s"), Bar("C=2", 2.0, "2 tok/s"))) for name in ("one", "two")
        )
    )
    assert len(text_of(panels, 80).splitlines()) == 3
    assert len(text_of(panels, 30).splitlines()) == 7


def test_panels_without_block_letters() -> None:
    """A terminal that knows ASCII alone gets bars of number signs."""
    file = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    console = Console(file=file, width=80)
    console.print(Panels((Panel("one", (Bar("C=1", 1.0, "1"),)),)))
    file.seek(0)
    assert "#" in file.read()
