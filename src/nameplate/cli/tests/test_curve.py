"""`nameplate curve` on the built-in engine in simulated time: the knee, the climb, losses, resuming, errors."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec import structs

from nameplate.cli.tests.conftest import Run
from nameplate.contract.identity import Identity
from nameplate.measure.curve_result import CurveResult, decode_curve
from nameplate.sim import presets
from nameplate.studies.conduct import Prepared, prepare
from nameplate.verify import verify

Curve = Callable[..., CurveResult]
SHAPE = ("--shape", "128/16", "--requests", "12")
# The probe takes five generation requests on the built-in engine; prompts are counted without.
PROBES = 7


def read(directory: str = "x") -> CurveResult:
    return decode_curve((Path(directory) / "result.json").read_bytes())


@pytest.fixture
def curve(run: Run) -> Curve:
    """Run `nameplate curve` into `x`, hold that its evidence verifies, and return what it found."""

    def call(*arguments: str, code: int = 0) -> CurveResult:
        found, _out, err = run("curve", *arguments, *(() if "--resume" in arguments else ("--out", "x")))
        assert found == code, err
        result = read()
        assert result.exit_code == code
        report = verify(Path("x"))
        assert not [check for check in report.all_checks() if check.status == "fail"], report
        return result

    return call


def statuses(result: CurveResult) -> list[str]:
    return [row.status.value for row in result.rows]


def limited(monkeypatch: pytest.MonkeyPatch, running: int) -> None:
    """Serve a preset `limited` that runs so many requests at once, each about as fast beside others as alone."""
    engine = structs.replace(
        presets.DEMO.engine,
        running_limit=running,
        running_limit_requested=running,
        decode_sequence_ns=1000.0,
        prefill_token_ns=1000.0,
        step_ns=10_000_000,
    )
    monkeypatch.setitem(
        presets.PRESETS, "limited", structs.replace(presets.DEMO, name="limited", engine=engine)
    )


def test_the_knee_is_at_the_running_limit(curve: Curve, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that runs R at once at no cost has its knee at R, and beyond it only the wait grows."""
    running = 4
    limited(monkeypatch, running)
    result = curve("sim:limited", *SHAPE, "-c", "1,2,4,8,16", "--requests", "48")
    (found,) = result.curves
    assert found.knee.status == "found" and found.knee.level == running and found.knee.adds == "waiting"
    # No fewer clients than the server runs at once reach its highest output.
    assert found.knee.least_load is not None and running * 0.8 < found.knee.least_load <= running * 1.05
    assert result.sentences[0].startswith(
        f"From C={running} on more clients add waiting and hardly any output"
    )
    points = {row.load: row.points[0] for row in result.rows}
    assert points[8].running_limit == running
    waits = points[16].waits
    assert waits is not None and waits.queue is not None and waits.prefill is not None
    assert waits.queue.mean_ns > 10 * waits.prefill.mean_ns
    running_now = points[16].running
    assert running_now is None or running_now.max <= running
    for load, point in points.items():
        assert point.in_flight is not None and point.in_flight <= load + 0.01
        assert point.by_little == pytest.approx(point.in_flight, rel=0.02)


def test_a_curve_that_still_rises(curve: Curve, run: Run) -> None:
    """Below the knee it is not reached, and the sentence says by how much output rose; `show` prints it again."""
    result = curve("sim:demo", *SHAPE, "-c", "1,2")
    assert result.curves[0].knee.status == "not_reached"
    assert result.basis == "steady" and result.reason == "every level was measured"
    assert "output still rises" in result.sentences[0]
    code, out, _err = run("show", "x")
    assert code == 0 and "output tok/s" in out and "median TTFT" in out
    code, out, _err = run("show", "x", "--json")
    assert code == 0 and json.loads(out)["schema"] == "nameplate.curve/1"


def test_rates(curve: Curve) -> None:
    """An open loop's knee lies between the rate that is kept up with and the one whose queue grows."""
    result = curve("sim:demo", "--shape", "256/16", "--rate", "4,200", "--requests", "100")
    (found,) = result.curves
    assert (found.knee.after, found.knee.level, found.knee.rule) == (4, 200, "queue")
    assert result.rows[1].points[0].queue == "rising"


def test_too_much_outstanding_fails_a_rate(curve: Curve) -> None:
    """A rate at which the safety limit is reached is a failed level with its reason, and an answer."""
    result = curve(
        "sim:demo", "--shape", "256/16", "--rate", "4,200", "--requests", "64", "--outstanding-limit", "30"
    )
    assert statuses(result) == ["valid", "failed"]
    assert "30 requests were unanswered" in result.rows[1].reason


def test_a_failed_level_is_shown_with_its_reason(run: Run) -> None:
    """A level whose requests fail has its status and no number, in the table and in the record."""
    code, out, _err = run("curve", "sim:demo", *SHAPE, "-c", "1,2", "--fault", "429@26", "--out", "x")
    assert code == 0
    assert "C=2  failed: rejected: 1 of 12 requests" in out
    row = read().rows[1]
    assert row.status.value == "failed" and row.points == ()


def test_levels_under_different_limits_are_not_one_curve(run: Run) -> None:
    """A server that changed between levels gives two curves, and that is the first thing said."""
    code, out, _err = run(
        "curve", "sim:demo", *SHAPE, "-c", "1,2,4", "--fault", "identity_change:30", "--out", "x"
    )
    assert code == 0 and out.startswith("2 curves, not one: context limit tokens and version changed")
    result = read()
    assert [len(found.levels) for found in result.curves] == [1, 2]
    assert "curve 1" in out and "curve 2" in out
    # The trial in which it changed is of neither.
    assert result.rows[1].trials == ("128-16.c2.t1", "128-16.c2.t1.retry1")
    report = verify(Path("x"))
    assert report.exit_code == 0 and report.check("study_identity").status == "invalid"


def test_the_climb_to_the_limit(curve: Curve) -> None:
    """Each length has its wait, prefill and KV use; the limit is what the context leaves beside the output."""
    result = curve("sim:demo", "--input", "1k,4k,limit,16k", "--output", "64")
    assert [row.load for row in result.rows] == [1024, 4096, 8192 - 64 - 16, 16_384]
    assert statuses(result) == ["valid", "valid", "valid", "over_limit"]
    for row in result.rows[:3]:
        (point,) = row.points
        assert point.ok == 3 and point.output_tokens_mean == 64 and point.alone is not None
        assert point.prompt_tokens is not None and abs(point.prompt_tokens.high - row.load) <= 8
        assert point.resident_share == pytest.approx((row.load + 64) / 65_536, rel=0.01)
        assert point.alone.prefill_counted.n == 3
    usage = result.rows[2].points[0].kv_usage
    assert usage is not None and usage.max == pytest.approx(8176 / 65_536, rel=0.05)
    assert result.border is not None and result.border.source == "told"
    assert "at concurrency one" in result.sentences[0].lower()


def test_the_climb_to_a_limit_that_is_not_told(curve: Curve, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the server does not tell its limit, the border is found by its refusals, in its own words."""

    def without_limit(*arguments: object) -> Prepared:
        prepared = prepare(*arguments)  # type: ignore[arg-type]
        report = prepared.site.report
        facts = {name: fact for name, fact in report.identity.facts.items() if name != "context_limit_tokens"}
        told = structs.replace(report, identity=Identity(facts))
        return structs.replace(prepared, site=structs.replace(prepared.site, report=told))

    monkeypatch.setattr("nameplate.studies.curve_conduct.prepare", without_limit)
    engine = structs.replace(presets.DEMO.engine, context_tokens=1024)
    monkeypatch.setitem(presets.PRESETS, "short", structs.replace(presets.DEMO, name="short", engine=engine))
    result = curve("sim:short", "--input", "700,limit", "--output", "8", "--requests", "1")
    border = result.border
    assert border is not None and border.accepted_tokens is not None and border.refused_tokens is not None
    assert border.accepted_tokens + 8 <= 1024 < border.refused_tokens + 8 + 8
    refused = next(row for row in result.rows if row.status.value == "refused")
    assert "maximum context length" in refused.reason
    assert result.rows[-2].load == border.accepted_tokens and result.rows[-2].points
    path = Path("x/result.json")
    path.write_bytes(path.read_bytes().replace(b"maximum context length", b"maximum patience"))
    assert verify(Path("x")).check("curve").status == "fail"


def test_a_loss_of_service_is_named(run: Run) -> None:
    """A server that dies at a length: after what, during which request, in which state; the rest stays."""
    code, out, _err = run(
        "curve",
        "sim:demo",
        "--input",
        "1k,2k,4k",
        "--output",
        "64",
        "--fault",
        f"die@{PROBES + 7}",
        "--out",
        "x",
    )
    assert code == 5
    assert out.startswith("Service was lost at 2,048 tokens, after 2 of 3 requests had ended well")
    result = read()
    assert statuses(result) == ["valid", "lost", "interrupted"]
    (loss,) = result.losses
    assert loss.trial == "in2K.out64.t1" and loss.completed == 2 and loss.planned == 3
    assert loss.request is not None and loss.request.outcome == "reset" and loss.request.got_tokens == 8
    assert loss.returned is False and loss.waited_s == pytest.approx(60)
    report = verify(Path("x"))
    assert report.exit_code == 0 and report.check("curve").status == "pass"


@pytest.mark.parametrize("away_s", [2, 20])
def test_a_server_that_comes_back_was_lost(curve: Curve, away_s: int) -> None:
    """A server that exits and is started again ends the study, whether it is back within the trial or after it."""
    fault = f"restart:{away_s}@{PROBES + 7}"
    result = curve("sim:demo", "--input", "1k,2k", "--output", "16", "--fault", fault, code=5)
    assert statuses(result) == ["valid", "lost"]
    (loss,) = result.losses
    assert loss.returned and loss.waited_s is not None and loss.waited_s <= (0 if away_s == 2 else 20)
    assert loss.trial == "in2K.out16.t1" and loss.request is not None and loss.completed == 2
    if away_s == 2:
        # The trial is sealed and whole, and does not count.
        again = curve("sim:demo", "--resume", "x")
        assert statuses(again) == ["valid", "valid"] and again.spoiled == ("in2K.out16.t1",)


def test_a_study_goes_on_after_a_loss(curve: Curve) -> None:
    """What was measured stays, the lost level is measured again, and the loss is still told."""
    first = curve("sim:demo", "--input", "1k,2k", "--output", "64", "--fault", f"die@{PROBES + 7}", code=5)
    again = curve("sim:demo", "--resume", "x")
    assert statuses(again) == ["valid", "valid"]
    assert again.rows[0] == first.rows[0]
    assert again.rows[1].trials == ("in2K.out64.t1.retry1",)
    assert len(again.losses) == 1 and again.spoiled == ("in2K.out64.t1",)
    # A study that is complete is what it is.
    assert curve("sim:demo", "--resume", "x") == again


def test_a_time_budget_leaves_levels_out(curve: Curve) -> None:
    """Levels that the time does not reach are skipped, said, and the exit code is 3."""
    result = curve("sim:demo", *SHAPE, "-c", "1,2,4", "--max-time", "2s", code=3)
    assert statuses(result)[-1] == "skipped" and "levels have numbers" in result.reason
    # Who goes on without a limit gives it the time that it takes.
    assert statuses(curve("sim:demo", "--resume", "x")) == ["valid"] * 3


def test_a_study_that_goes_on_under_another_limit(
    run: Run, curve: Curve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that was started again with another running limit makes a second curve; what is given anew is said."""
    curve("sim:demo", *SHAPE, "-c", "1,2,4,8", "--fault", f"die@{PROBES + 32}", code=5)
    engine = structs.replace(presets.DEMO.engine, running_limit=16, running_limit_requested=16)
    monkeypatch.setitem(presets.PRESETS, "demo", structs.replace(presets.DEMO, engine=engine))
    code, out, err = run("curve", "sim:demo", "--resume", "x", "-c", "1,99")
    assert code == 0 and "these are not used: --concurrency" in err
    assert "2 curves, not one: running limit effective and running limit requested changed" in out
    result = read()
    assert [[level.load for level in found.levels] for found in result.curves] == [[1, 2], [4, 8]]
    assert verify(Path("x")).check("curve").status == "pass"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("sim:demo", *SHAPE), "One list of levels is wanted"),
        (("sim:demo", *SHAPE, "-c", "1", "--rate", "2"), "One list of levels is wanted"),
        (("sim:demo", "-c", "1,2"), "--shape is missing"),
        (("sim:demo", *SHAPE, "--input", "8k"), "takes no --shape"),
        (("sim:demo", *SHAPE, "-c", "1,x"), "not a list of numbers"),
        (("sim:demo", *SHAPE, "-c", "1.5"), "whole numbers"),
        (("sim:demo", *SHAPE, "-c", "0"), "above 0"),
        (("sim:demo", *SHAPE, "-c", ","), "no level"),
        (("sim:demo", *SHAPE, "--rate", "nan"), "above 0"),
        (("sim:demo", *SHAPE, "--rate", "1", "--arrivals", "uniform"), "not known"),
        (("sim:demo", *SHAPE, "-c", "1", "--output", "8"), "belongs to --input"),
        (("sim:demo", *SHAPE, "-c", "1", "--start", "handover"), "begin as a burst"),
        (("sim:demo", *SHAPE, "-c", "1", "--hardly", "0"), "any output much"),
        (("sim:demo", "--shape", "9k/1k", "-c", "1"), "context holds"),
        (("sim:demo", "--input", "0"), "no tokens"),
        (("sim:demo", "--input", "4"), "too short"),
        (("sim:demo", "--input", "1k", "--cache", "warm:512"), "cold prompts"),
        (("sim:demo", "--input", "1k", "--output", "0"), "nothing to time"),
        ((*SHAPE, "-c", "1"), "TARGET is missing"),
    ],
)
def test_mistakes_are_refused_before_any_load(run: Run, arguments: tuple[str, ...], words: str) -> None:
    """A caller's mistake is exit 2 with what to try, and leaves nothing behind."""
    code, _out, err = run("curve", *arguments, "--out", "x")
    assert code == 2 and words in " ".join(err.split())
    assert not Path("x").exists()


def test_resuming_something_else_is_refused(run: Run) -> None:
    """A capacity study's directory, another server's study and an unnamed engine are refused by name."""
    run("trial", "sim:demo", *SHAPE, "-c", "1", "--out", "t")
    assert "no curve study" in run("curve", "sim:demo", "--resume", "t")[2]
    run("curve", "sim:demo", *SHAPE, "-c", "1,2,4", "--max-time", "2s", "--out", "x")
    assert "Name it again" in run("curve", "--resume", "x")[2]
    assert "belongs to" in run("curve", "http://127.0.0.1:9", "--resume", "x")[2]
