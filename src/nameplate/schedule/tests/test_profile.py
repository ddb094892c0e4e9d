"""Cumulative rates and their inverses: exact to the nanosecond, for any rates and at any index."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nameplate.schedule.gaps import UNIT
from nameplate.schedule.profile import Level, Profile, Slope, Stairs

S = 10**9
rates = st.floats(1e-6, 1e6) | st.sampled_from([0.1, 1.0, 3.0, 1000.0])
or_zero = rates | st.just(0.0)
durations = st.integers(1, 10**15)
profiles = st.one_of(
    st.builds(Level, rates),
    st.builds(Slope, or_zero, rates, durations),
    st.builds(Slope, rates, or_zero, durations),
    st.builds(Stairs, st.lists(st.tuples(or_zero, durations), min_size=1, max_size=6).map(tuple)),
)
counts = st.integers(0, 10**7 * UNIT) | st.integers(0, 20).map(lambda count: count * UNIT)


@settings(deadline=None)
@given(profile=profiles, count=counts)
def test_a_time_is_the_nanosecond_in_which_the_count_is_reached(profile: Profile, count: int) -> None:
    """At the time that is told the count is not yet passed, and one nanosecond later it is: early by under 1 ns."""
    time_ns = profile.time_ns(count)
    target = Fraction(count, UNIT)
    if time_ns is None:
        assert not profile.endless and profile.expected(10**30) <= target
    else:
        assert profile.expected(time_ns) <= target < profile.expected(time_ns + 1)


@settings(deadline=None)
@given(profile=profiles, count=counts, more=st.integers(0, UNIT))
def test_times_do_not_fall(profile: Profile, count: int, more: int) -> None:
    """A higher count is reached no earlier, and one that is never reached has none above it that is."""
    one, other = profile.time_ns(count), profile.time_ns(count + more)
    assert other is None or (one is not None and one <= other)


@pytest.mark.parametrize(
    ("profile", "count", "time_ns"),
    [
        (Level(0.1), 7, 70 * S),
        (Level(3.0), 1, 333_333_333),
        (Level(1000.0), 10**7, 10_000 * S),
        (Slope(0.0, 10.0, 10 * S), 0, 0),
        (Slope(0.0, 10.0, 10 * S), 50, 10 * S),
        (Slope(0.0, 10.0, 10 * S), 60, 11 * S),
        (Slope(0.0, 2.0, 8 * S), 2, 4 * S),
        (Slope(10.0, 0.0, 10 * S), 32, 4 * S),
        (Slope(10.0, 0.0, 10 * S), 50, None),
        (Slope(5.0, 5.0, 10 * S), 100, 20 * S),
        (Stairs(((0.0, 3 * S), (2.0, 2 * S))), 0, 3 * S),
        (Stairs(((2.0, S), (0.0, 5 * S), (1.0, 2 * S))), 1, S // 2),
        (Stairs(((2.0, S), (0.0, 5 * S), (1.0, 2 * S))), 2, 6 * S),
        (Stairs(((2.0, S), (0.0, 5 * S), (1.0, 2 * S))), 3, 7 * S),
        (Stairs(((2.0, S), (0.0, 5 * S), (1.0, 2 * S))), 4, None),
    ],
)
def test_known_times(profile: Profile, count: int, time_ns: int | None) -> None:
    """Times that can be told by hand; nothing comes in a pause, and nothing after the end."""
    assert profile.time_ns(count * UNIT) == time_ns
