"""One unit for an axis, so that its numbers read well."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nameplate.pages.scale import time_scale


@pytest.mark.parametrize(
    ("most_ns", "unit"),
    [(None, "ms"), (2e4, "us"), (250e6, "ms"), (1e9, "s"), (599e9, "s"), (601e9, "min"), (4 * 3600e9, "h")],
)
def test_the_largest_value_decides(most_ns: float | None, unit: str) -> None:
    """Nine minutes of waiting are seconds that people compare with a limit; hours are hours."""
    assert time_scale([None, most_ns]).unit == unit


@given(st.floats(min_value=1, max_value=1e14))
def test_a_value_in_its_unit_is_the_value(ns: float) -> None:
    """To six digits, which no axis shows."""
    scale = time_scale([ns])
    held = scale.of(ns)
    assert held is not None and held * scale.ns == pytest.approx(ns, rel=1e-5)
