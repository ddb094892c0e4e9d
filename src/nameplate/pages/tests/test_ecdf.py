"""Empirical distributions: ascending, exact at every rank that is shown, and below 1 where members never came."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from nameplate.contract.slo import Slo
from nameplate.pages.ecdf import Curve, Mark, ecdf, ecdf_panel
from nameplate.pages.scale import TimeScale

VALUES = st.lists(st.integers(0, 10**12), max_size=100)


@given(values=VALUES, never=st.integers(0, 50), most=st.integers(2, 60))
def test_each_point_is_the_share_at_or_below_its_value(values: list[int], never: int, most: int) -> None:
    """At a value stands the share of all members at or below it, whatever was thinned."""
    found = ecdf(values, never, most, [0.5, 0.95])
    n = len(values) + never
    assert (found.n, found.never) == (n, never)
    for value, share in found.points:
        assert share == sum(one <= value for one in values) / n


@given(values=VALUES.filter(bool), never=st.integers(0, 50), most=st.integers(2, 60))
def test_a_curve_ascends_to_the_share_that_came(values: list[int], never: int, most: int) -> None:
    """Values and shares ascend strictly, begin at the least and end at the largest value, below 1 if any never came."""
    points = ecdf(values, never, most).points
    assert all(a[0] < b[0] and a[1] < b[1] for a, b in pairwise(points))
    assert points[0][0] == min(values) and points[-1][0] == max(values)
    assert points[-1][1] == len(values) / (len(values) + never)


@given(n=st.integers(300, 2000), step=st.integers(1, 10**6))
def test_thinning_keeps_the_ranks_around_a_judged_share(n: int, step: int) -> None:
    """The two neighbours of the judged rank are shown exactly, and the number of points stays bounded."""
    ordered = [at * step for at in range(n)]
    points = dict(ecdf(reversed(ordered), 0, 40, [0.95]).points)
    rank = int(0.95 * (n - 1))
    assert ordered[rank] in points and ordered[rank + 1] in points
    assert len(points) <= 42


def test_nothing_that_came_has_no_points() -> None:
    """A sample in which no member came to a value has its n and no curve."""
    found = ecdf([], 7)
    assert (found.n, found.never, found.points) == (7, 7, ())


def curve(*values: float) -> Curve:
    return Curve(name="a", group="whole", ecdf=ecdf(values))


def panel_of(*values: float) -> dict[str, object]:
    made = ecdf_panel(
        [curve(*values)],
        "TTFT",
        "about",
        TimeScale("ms", 1e6),
        limit=Slo.parse("ttft p95 < 250ms"),
        marks=[Mark(value=2e6, share=0.95, said="p95 2 ms")],
        colours={"whole": "s1"},
    )
    return dict(made.spec)


def test_values_that_spread_widely_stand_on_a_logarithmic_axis() -> None:
    """A factor of a thousand between values is read in logarithms, a factor of two is not."""
    assert '"type": "log"' in str(panel_of(1e6, 1e9)).replace("'", '"')
    assert '"type": "log"' not in str(panel_of(1e6, 2e6)).replace("'", '"')


def test_a_zero_has_no_place_on_a_logarithmic_axis() -> None:
    """Gaps of nothing are left out of the drawn line, while the shares above still count them."""
    data = panel_of(0.0, 0.0, 1e6, 1e9)["data"]
    assert isinstance(data, dict)
    (held,) = data["curves"]
    assert [x for x, _ in held["points"]] == [1.0, 1000.0]
    assert [y for _, y in held["points"]] == [0.75, 1.0]
