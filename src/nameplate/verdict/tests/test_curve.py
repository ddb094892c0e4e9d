"""The knee of a curve, and the sentence that follows from it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nameplate.contract.curve import HARDLY, CurveKind
from nameplate.contract.identity import Fact, Identity, Value
from nameplate.verdict.curve import Curve, Measured, configuration_of, curves_of, differing
from nameplate.verdict.curve_words import sentence

S = 1_000_000_000


def trial(load: float, output: float, ttft_s: float | None = None, **more: object) -> Measured:
    ttft_ns = None if ttft_s is None else ttft_s * S
    return Measured(load=load, output_per_s=output, ttft_ns=ttft_ns, **more)  # type: ignore[arg-type]


def one_curve(*trials: Measured, kind: CurveKind = "concurrency", hardly: float = HARDLY) -> Curve:
    (curve,) = curves_of(kind, trials, hardly)
    return curve


def of_outputs(*outputs: float) -> Curve:
    """Return a curve over 1, 2, 4, ... clients with these outputs."""
    return one_curve(*(trial(2.0**at, output) for at, output in enumerate(outputs)))


def test_the_sentence_of_a_published_pair() -> None:
    """Of two published points the sentence says what they show, with their own figures."""
    curve = one_curve(trial(16, 1018.93, 0.177), trial(32, 1021.06, 7.788))
    said = sentence("concurrency", curve)
    assert said.startswith("From C=16 on more clients add waiting and hardly any output: ")
    assert (
        "from C=16 to C=32 output rose 0.2% (1,018.93 -> 1,021.06 tok/s) while median TTFT rose 44-fold "
        "(0.177 s -> 7.788 s)."
    ) in said
    assert "The knee lies at C=16, the lowest level measured, or below." in said


def test_a_published_pair_under_different_limits_is_no_curve() -> None:
    """The same two points under two sequence limits are two curves, of which neither has a knee."""
    sixteen: dict[str, Value] = {"running_limit_effective": 16}
    other: dict[str, Value] = {"running_limit_effective": 32}
    found = curves_of(
        "concurrency",
        [
            trial(16, 1018.93, 0.177, configuration=other),
            trial(32, 1021.06, 7.788, configuration=sixteen),
        ],
        HARDLY,
    )
    assert [curve.knee.status for curve in found] == ["unknown", "unknown"]
    assert differing(found[0].configuration, found[1].configuration) == ("running_limit_effective",)


def test_what_is_not_known_makes_no_other_curve() -> None:
    """A fact that one reading lacks does not tell two servers apart; a restart alone does not, either."""
    facts = {"kv_tokens": Fact(1000, "t"), "process_start_time_s": Fact(1.0, "t"), "driver": Fact("x", "t")}
    known = configuration_of(Identity(facts))
    assert known == {"kv_tokens": 1000}
    found = curves_of("concurrency", [trial(1, 10.0, configuration=known), trial(2, 20.0)], HARDLY)
    assert len(found) == 1 and found[0].configuration == known


@pytest.mark.parametrize(
    ("outputs", "status", "level", "after"),
    [
        ((100, 200, 400, 405, 400), "found", 4, 2),
        ((100, 200, 400, 800), "not_reached", None, None),
        ((100, 101), "found", 1, None),
        # A step that did not pay before one that does is no knee.
        ((100, 101, 200, 201), "found", 4, 2),
        ((100, 200, 150, 120), "found", 2, 1),
        # Eleven percent a doubling still pay, nine do not.
        ((100, 111, 123.3), "not_reached", None, None),
        ((100, 109, 118.8), "found", 1, None),
        ((100,), "unknown", None, None),
        ((0, 100, 100), "found", 2, 1),
    ],
)
def test_the_knee(outputs: tuple[float, ...], status: str, level: float | None, after: float | None) -> None:
    """The knee is the lowest level that no higher one beats by 10% a doubling."""
    knee = of_outputs(*outputs).knee
    assert (knee.status, knee.level, knee.after) == (status, level, after)


@given(
    st.lists(st.floats(1, 1e6), min_size=2, max_size=8),
    st.floats(1e-3, 1e3),
    st.lists(st.floats(0.2, 1.0), max_size=4),
)
def test_the_knee_depends_on_neither_unit_nor_reach(
    outputs: list[float], unit: float, beyond: list[float]
) -> None:
    """Another unit moves no knee, and neither do further levels that give no more than the knee's own."""
    knee = of_outputs(*outputs).knee
    scaled = of_outputs(*(output * unit for output in outputs)).knee
    assert (knee.status, knee.level) == (scaled.status, scaled.level)
    if knee.level is not None:
        own = outputs[[2.0**at for at in range(len(outputs))].index(knee.level)]
        longer = of_outputs(*outputs, *(own * share for share in beyond)).knee
        assert longer.level is not None and longer.level <= knee.level
        assert longer.level == knee.level


@given(st.lists(st.lists(st.floats(1, 1e3), min_size=1, max_size=3), min_size=2, max_size=5), st.data())
def test_the_uncertainty_holds_every_combination(outputs: list[list[float]], data: st.DataObject) -> None:
    """Whichever trial stands for each level, the knee lies within the bounds that are given."""
    trials = [trial(2.0**at, one) for at, many in enumerate(outputs) for one in many]
    knee = one_curve(*trials).knee
    picked = of_outputs(*(data.draw(st.sampled_from(many)) for many in outputs)).knee
    if all(len(many) == 1 for many in outputs):
        assert knee.lowest is knee.highest is None
        return
    level = picked.level if picked.level is not None else 2.0 ** (len(outputs) - 1)
    if knee.lowest is not None:
        assert level >= knee.lowest
    else:
        assert picked.level is None
    if knee.highest is not None:
        assert level <= knee.highest


def test_several_trials_say_how_certain_the_knee_is() -> None:
    """Trials that disagree widen the knee, and the sentence says so."""
    curve = one_curve(
        trial(1, 100), trial(1, 100), trial(2, 180), trial(2, 212), trial(4, 205), trial(4, 206)
    )
    assert (curve.knee.level, curve.knee.lowest, curve.knee.highest) == (None, 2, None)
    curve = one_curve(*(trial(load, 100.0 * min(load, 4)) for load in (1, 2, 4, 8) for _ in range(3)))
    assert (curve.knee.level, curve.knee.lowest, curve.knee.highest) == (4, 4, 4)
    assert "other combinations" not in sentence("concurrency", curve)


def test_the_bound_of_operational_analysis() -> None:
    """The highest output needs at least as many clients as it is times that of one."""
    assert of_outputs(100, 180, 300, 305).knee.least_load == pytest.approx(3.05)


def test_slower_streams_are_no_waiting() -> None:
    """Where the time goes into the answer and not into the wait, the sentence says slower streams."""
    curve = one_curve(
        trial(8, 1000, 0.1, e2e_ns=2 * S, itl_ns=10**7), trial(16, 1010, 0.12, e2e_ns=4 * S, itl_ns=2 * 10**7)
    )
    said = sentence("concurrency", curve)
    assert "add slower streams and hardly any output" in said
    assert "median E2E rose 2-fold" in said


def test_a_rate_whose_queue_grows_is_beyond_the_knee() -> None:
    """Of an open loop the knee lies between the last rate that was kept up with and the next."""
    curve = one_curve(
        trial(8, 500, 0.04), trial(16, 1000, 0.05), trial(32, 1390, 14.0, behind=True), kind="rate"
    )
    assert (curve.knee.level, curve.knee.after, curve.knee.rule) == (32, 16, "queue")
    assert sentence("rate", curve).startswith("The server keeps up with 16 req/s and not with 32 req/s")
    lowest = one_curve(trial(8, 500, 3.0, behind=True), kind="rate")
    assert sentence("rate", lowest).startswith("The server does not keep up with 8 req/s, the lowest rate")
    rising = one_curve(trial(8, 500, 0.04), trial(16, 1000, 0.05), kind="rate")
    assert rising.knee.status == "not_reached"


def test_one_trial_that_fell_behind_is_enough() -> None:
    """Noise is not rounded upwards: a rate at which one of three trials fell behind is not kept up with."""
    curve = one_curve(trial(8, 500), trial(16, 900), trial(16, 900, behind=True), trial(16, 900), kind="rate")
    assert (curve.knee.level, curve.knee.after) == (16, 8)


def test_a_climb_has_steps_and_no_knee() -> None:
    """Longer prompts are no more clients: their curve says how the wait grows."""
    curve = one_curve(trial(1024, 10, 0.1), trial(8192, 9, 1.2), kind="input")
    assert curve.knee.status == "unknown"
    assert curve.steps[0].ttft_factor == pytest.approx(12)
    assert "8,192 tokens alone waits 1.200 s" in sentence("input", curve)


def test_an_output_that_fell_is_said_to_fall() -> None:
    """A server that thrashes beyond its knee gives less, in words and as a gain below zero."""
    curve = of_outputs(100, 200, 120)
    assert curve.steps[1].output_gain == pytest.approx(-0.4)
    assert "output fell 40.0% (200.00 -> 120.00 tok/s)" in sentence("concurrency", curve)
