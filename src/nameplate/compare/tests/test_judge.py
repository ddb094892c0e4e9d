"""What may be said of one measure of two sides."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from nameplate.compare.document import Compared, Settings
from nameplate.compare.judge import Drawn, Samples, compare_measure, settle
from nameplate.compare.measures import Statistic
from nameplate.compare.side import Observed
from nameplate.compare.tests.making import MS, RATE, TTFT, noisy, seen

SETTINGS = Settings()
ERRORS = Statistic("error_rate")


def judged(
    a: list[float | Observed], b: list[float | Observed], statistic: Statistic = TTFT, **more: Any
) -> Compared:
    held = [
        tuple(
            Drawn(at, value if isinstance(value, Observed) else seen(value)) for at, value in enumerate(side)
        )
        for side in (a, b)
    ]
    return compare_measure(statistic, Samples(held[0], held[1], **more), SETTINGS, gated=True)


@pytest.mark.parametrize(
    ("a", "b", "statistic", "verdict"),
    [
        ([100, 101, 99], [110, 111, 109], TTFT, "worse"),
        ([100, 101, 99], [90, 91, 89], TTFT, "better"),
        ([100, 101, 99], [110, 111, 109], RATE, "better"),
        ([100, 101, 99], [90, 91, 89], RATE, "worse"),
        ([100, 100.2, 99.8], [100.1, 100.3, 99.9], TTFT, "equal"),
        ([100, 120, 80], [110, 130, 90], TTFT, "not known"),
        ([100, 100.01, 99.99], [101.5, 101.51, 101.49], TTFT, "equal"),
        ([100, 100.5, 99.5], [101.7, 102.2, 101.2], TTFT, "not known"),
    ],
)
def test_verdicts(
    a: list[float | Observed], b: list[float | Observed], statistic: Statistic, verdict: str
) -> None:
    """A clear change is better or worse by the measure's direction; a small one equal; a wide interval not known."""
    assert judged(a, b, statistic).verdict == verdict


def test_equal_is_not_unknown() -> None:
    """Equal is an interval within the margin; not known one that reaches beyond it: their reasons differ."""
    assert "within 2%" in judged([100, 100.1, 99.9], [100, 100.1, 99.9]).reason
    assert "both sides of zero" in judged([100, 120, 80], [100, 120, 80]).reason
    assert "about less than 2%" in judged([100, 100.5, 99.5], [101.7, 102.2, 101.2]).reason


@pytest.mark.parametrize("sizes", [(1, 1), (2, 3), (3, 2), (2, 2)])
def test_fewer_than_three_trials_are_not_known(sizes: tuple[int, int]) -> None:
    """However far apart two sides lie, a verdict needs three trials on each; the difference is shown without bounds."""
    found = judged([100.0] * sizes[0], [300.0] * sizes[1])
    assert found.verdict == "not known" and "a verdict needs 3" in found.reason
    assert (
        found.relative is not None
        and found.relative.estimate == pytest.approx(2)
        and found.relative.low is None
    )


def test_never_is_certain_only_where_all_trials_say_so() -> None:
    """A percentile that is infinite in all trials of one side and none of the other is worse; otherwise nothing is."""
    never = Observed(None, 64, infinite=True)
    lost = judged([1 * MS, 2 * MS, 3 * MS], [never, never, never])
    assert (
        lost.verdict == "worse" and lost.relative is None and lost.b.typical is None and lost.b.infinite == 3
    )
    assert judged([never] * 3, [1 * MS, 2 * MS, 3 * MS]).verdict == "better"
    assert judged([1 * MS, 2 * MS, 3 * MS], [never, never, 2 * MS]).verdict == "not known"
    assert judged([never] * 3, [never] * 3).verdict == "not known"


def test_requests_that_we_cut_leave_it_open() -> None:
    """A percentile that reaches requests that were cut while they waited may be anything."""
    found = judged([1.0, 1.0, 1.0], [Observed(None, 64, open=True), 9.0, 9.0])
    assert found.verdict == "not known" and "cut while they waited, in B" in found.reason


def test_unsupported_percentiles_have_no_verdict() -> None:
    """Too few requests carry a p99 of 64: it is shown, and nothing is concluded."""
    found = judged([seen(1.0, unsupported=True)] * 3, [seen(9.0, unsupported=True)] * 3)
    assert found.verdict == "not known" and "too few requests" in found.reason and found.relative is not None


@given(
    st.lists(st.floats(1, 1e12), min_size=3, max_size=6),
    st.lists(st.floats(1, 1e12), min_size=3, max_size=6),
)
def test_sides_change_places(a: list[float | Observed], b: list[float | Observed]) -> None:
    """What is worse one way round is better the other, and what is equal or not known stays so."""
    there, back = judged(a, b), judged(b, a)
    turned = {"worse": "better", "better": "worse"}
    assert back.verdict == turned.get(there.verdict, there.verdict)
    assert there.p_value == pytest.approx(back.p_value)


@given(st.lists(st.floats(1, 1e9), min_size=3, max_size=6), st.floats(1e-3, 1e3))
def test_units_do_not_matter(values: list[float], scale: float) -> None:
    """Relative differences and their verdict are the same in every unit."""
    moved = [value * 1.1 for value in values]
    one, other = judged([*values], [*moved]), judged([v * scale for v in values], [v * scale for v in moved])
    assert one.relative is not None and other.relative is not None
    assert one.relative.estimate == pytest.approx(other.relative.estimate, abs=1e-9)
    assert one.p_value == pytest.approx(other.p_value, abs=1e-6)


def _errors(*counts: int, n: int = 64) -> list[float | Observed]:
    return [Observed(count / n, n, count=count) for count in counts]


def test_error_rates_are_counted() -> None:
    """None of 192 on both sides bounds the difference by what 192 can show; a clear rise is worse."""
    none = judged(_errors(0, 0, 0), _errors(0, 0, 0), ERRORS)
    assert none.absolute is not None and none.absolute.high == pytest.approx(0.019, abs=0.001)
    assert none.verdict == "equal" and none.relative is None
    assert judged(_errors(0, 0, 0, n=20), _errors(0, 0, 0, n=20), ERRORS).verdict == "not known"
    assert judged(_errors(0, 1, 0), _errors(10, 12, 11), ERRORS).verdict == "worse"
    # Three equal counts do not vary, and are no proof: the counts themselves have an interval.
    assert judged(_errors(0, 0, 0), _errors(1, 1, 1), ERRORS).verdict == "not known"
    assert judged(_errors(0, 0, 0), _errors(2, 2, 2), ERRORS).p_value == pytest.approx(0.030, abs=0.001)


def test_zeros_are_compared_as_they_are() -> None:
    """A goodput of zero has no ratio: zero on both sides is equal, and a rise from it better."""
    goodput = Statistic("goodput")
    assert judged([0.0] * 3, [0.0] * 3, goodput).verdict == "equal"
    risen = judged([0.0] * 3, [5.0, 5.1, 4.9], goodput)
    assert risen.verdict == "better" and risen.relative is None


def test_pairs_take_out_what_they_share() -> None:
    """Trials that vary widely and alike tell a small difference only as pairs."""
    a: list[float | Observed] = [100.0, 150.0, 80.0]
    b: list[float | Observed] = [105.1, 157.4, 84.1]
    assert judged(a, b).verdict == "not known" and judged(a, b, paired=True).verdict == "worse"


def test_results_are_the_sample_where_there_are_enough() -> None:
    """Trials of one result that are alike, and results that are not: nine trials are three values."""
    samples = [
        tuple(
            Drawn(source, seen(level * (1 + 0.001 * trial)))
            for source, level in enumerate(levels)
            for trial in range(3)
        )
        for levels in ((100, 104, 96), (107, 111, 103))
    ]
    by_trial = compare_measure(TTFT, Samples(samples[0], samples[1]), SETTINGS, gated=True)
    by_result = compare_measure(TTFT, Samples(samples[0], samples[1], by_result=True), SETTINGS, gated=True)
    assert by_trial.verdict == "worse" and by_result.verdict == "not known"


def test_two_runs_of_one_server_are_seldom_told_apart() -> None:
    """Of 60 comparisons of thirty measures each that differ by nothing but noise, at most 10% name any difference."""
    draws, wrong = Random(3), 0
    for _ in range(60):
        found = [
            structs.replace(
                judged([*noisy(draws, 100, 0.02, 3)], [*noisy(draws, 100, 0.02, 3)]), gated=at < 2
            )
            for at in range(30)
        ]
        wrong += any(one.verdict in ("better", "worse") for one in settle(found, SETTINGS))
    assert wrong <= 6


def test_small_differences_lend_no_weight_to_a_chance_one() -> None:
    """Thirty true differences of 0.5% do not make one of chance stand; thirty of 6% stand together."""
    small = [structs.replace(judged([100, 100.1, 99.9], [100.5, 100.6, 100.4]), gated=False)] * 30
    chance = structs.replace(judged([100, 101, 99], [103.6, 104.6, 102.6]), gated=False)
    assert chance.verdict == "worse"
    assert settle([*small, chance], SETTINGS)[-1].verdict == "not known"
    true = structs.replace(judged([100, 101, 99], [106, 107, 105]), gated=False)
    assert {one.verdict for one in settle([true] * 30, SETTINGS)} == {"worse"}


def test_one_result_a_side_must_clear_the_margin() -> None:
    """A shift of 3% of trials that vary by 1% may be a restart's within one result; over three results it is not."""
    values = [100, 101, 99], [103.6, 104.6, 102.6]
    for results, verdict in ((1, "not known"), (3, "worse")):
        held = [tuple(Drawn(at % results, seen(value)) for at, value in enumerate(side)) for side in values]
        one = compare_measure(TTFT, Samples(held[0], held[1]), SETTINGS, gated=True)
        assert one.repeated == (results == 3)
        (settled,) = settle([one], SETTINGS)
        assert settled.verdict == verdict
    assert (
        "which a restart alone can do" in settle([structs.replace(one, repeated=False)], SETTINGS)[0].reason
    )


def test_a_regression_of_five_percent_is_found() -> None:
    """With trials that vary by 1%, at least 85 of 100 regressions by 5% are found with three trials a side."""
    draws, found = Random(4), 0
    for _ in range(100):
        one = judged([*noisy(draws, 100, 0.01, 3)], [*noisy(draws, 105, 0.01, 3)])
        found += settle([one], SETTINGS)[0].verdict == "worse"
    assert found >= 85
