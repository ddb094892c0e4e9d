"""How many further requests a decision about a share would need."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nameplate.statistics.binomial import extra_sample, lower_bound, upper_bound


def test_one_miss_of_sixty_four_needs_twenty_nine_more() -> None:
    """The classical 95/95 sample for one miss is 93: 29 more than 64."""
    found = extra_sample(1, 64, 0.05)
    assert (found.decided, found.without_miss) == (None, 29)


def test_a_decided_sample_needs_nothing() -> None:
    """0 of 59 decides below, 20 of 64 decides above."""
    below, above = extra_sample(0, 59, 0.05), extra_sample(20, 64, 0.05)
    assert (below.decided, below.without_miss, below.at_observed_rate) == ("below", 0, 0)
    assert (above.decided, above.at_observed_rate) == ("above", 0)
    assert above.without_miss is not None
    assert upper_bound(20, 64 + above.without_miss) < 0.05 <= upper_bound(20, 63 + above.without_miss)


def test_a_share_as_observed_is_never_decided() -> None:
    """5 of 100 at a claimed 5%: no number at that rate decides, though enough without a miss do."""
    found = extra_sample(5, 100, 0.05)
    assert found.at_observed_rate is None
    assert found.without_miss == 208 - 100


def test_a_share_too_close_is_never_decided() -> None:
    """49,999 of a million at 5% would need more than ten million requests."""
    assert extra_sample(49_999, 1_000_000, 0.05).at_observed_rate is None


def test_nothing_seen_knows_no_rate() -> None:
    """Before the first request only the sample without a miss is known."""
    found = extra_sample(0, 0, 0.05)
    assert (found.without_miss, found.at_observed_rate) == (59, None)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 200), st.sampled_from([0.01, 0.05, 0.1]), st.data())
def test_the_extra_sample_decides_and_one_less_does_not(n: int, share: float, data: st.DataObject) -> None:
    """So many further requests without a miss bound the share; at the observed rate its side is decided as well."""
    over = data.draw(st.integers(0, min(n, 15)))
    found = extra_sample(over, n, share)
    clean = found.without_miss
    assert clean is not None
    assert upper_bound(over, n + clean) < share
    if clean:
        assert upper_bound(over, n + clean - 1) >= share
    more = found.at_observed_rate
    if more:
        if over / n < share:
            assert upper_bound(over + -(-over * more // n), n + more) < share
        else:
            assert lower_bound(over + over * more // n, n + more) > share


def test_bounds_agree_with_scipy() -> None:
    """Both one-sided bounds are the ends of SciPy's exact two-sided interval at 90%."""
    stats: Any = pytest.importorskip("scipy.stats", reason="SciPy is not installed")
    for over, n in ((0, 10), (3, 64), (17, 512), (64, 64)):
        exact = stats.binomtest(over, n).proportion_ci(0.9, method="exact")
        assert lower_bound(over, n) == pytest.approx(exact.low, abs=1e-9)
        assert upper_bound(over, n) == pytest.approx(exact.high if over < n else 1.0, abs=1e-9) or over == 0
