"""SLOs and shapes are read as people write them; what is wrong is named."""

from __future__ import annotations

import contextlib
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nameplate.contract.cache import CachePolicy
from nameplate.contract.errors import CallerError
from nameplate.contract.shape import Shape
from nameplate.contract.slo import Metric, Slo

LATENCIES = [metric for metric in get_args(Metric) if metric != "error_rate"]


@given(
    metric=st.sampled_from(LATENCIES),
    percentile=st.decimals(1, 99, places=1).map(str),
    limit_ms=st.integers(1, 10**6),
    sign=st.sampled_from(["<", " < ", " "]),
)
def test_latency_slos_are_read(metric: str, percentile: str, limit_ms: int, sign: str) -> None:
    """Metric, percentile and limit come out as written, in any case and spacing."""
    slo = Slo.parse(f" {metric.upper()} p{percentile}{sign}{limit_ms}ms")
    assert slo == Slo(metric, float(percentile), limit_ns=limit_ms * 10**6)  # type: ignore[arg-type]


def test_an_error_rate_is_a_share() -> None:
    """The error rate is judged as a share of all requests and has no percentile."""
    assert Slo.parse("error_rate < 1%") == Slo.parse("error_rate<0.01") == Slo("error_rate", limit_ratio=0.01)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("ttft p95 <= 10s", "strict"),
        ("error_rate >= 1%", "strict"),
        ("error_rate < 0", "strict"),
        ("latency p95 < 1s", "Known metrics"),
        ("ttft p0 < 1s", "percentile"),
        ("ttft p100 < 1s", "percentile"),
        ("ttft p95 < 0s", "positive"),
        ("ttft p95 < 10", "unit"),
        ("ttft < 10s", "not an SLO"),
        ("error_rate < 200%", "share"),
        ("", "not an SLO"),
    ],
)
def test_what_is_wrong_with_an_slo_is_named(text: str, word: str) -> None:
    """Each kind of mistake has a message of its own."""
    with pytest.raises(CallerError, match=word):
        Slo.parse(text)


@given(st.text(max_size=40))
def test_slo_shape_and_cache_raise_nothing_but_caller_errors(text: str) -> None:
    """Whatever is typed, the answer is a value or a CallerError."""
    for parse in (Slo.parse, Shape.parse, CachePolicy.parse):
        with contextlib.suppress(CallerError):
            parse(text)


@pytest.mark.parametrize(
    "text", ["ttft p95 < 10s", "itl p99.9 < 50ms", "e2e p99.99999 < 1h", "error_rate < 1%"]
)
def test_an_slo_can_be_read_back_from_its_own_words(text: str) -> None:
    """What is shown of an SLO reads back as the same SLO, and no percentile is rounded to 100."""
    slo = Slo.parse(text)
    assert Slo.parse(str(slo)) == slo


@given(st.integers(1, 10**6), st.integers(1, 10**6))
def test_shapes_read_back(given_input: int, given_output: int) -> None:
    """A shape's words read back as the same shape."""
    shape = Shape(given_input, given_output)
    assert Shape.parse(str(shape)) == shape
    assert Shape.parse("8k/1k") == Shape(8192, 1024)


@pytest.mark.parametrize("text", ["8192", "8k/", "/8k", "0/5", "5/0", "8k/1k/1k", "a/b"])
def test_what_is_no_shape_is_refused(text: str) -> None:
    """Both lengths must be there and positive."""
    with pytest.raises(CallerError):
        Shape.parse(text)


def test_cache_policies() -> None:
    """Cold is the absence of a shared prefix; warm states its length."""
    assert CachePolicy.parse("cold").cold and not CachePolicy.parse("warm:2k", "never").cold
    assert CachePolicy.parse("warm:2k") == CachePolicy(2048) and str(CachePolicy(2048)) == "warm:2048"
    for text in ("", "warm", "warm:", "warm:0", "cold:1", "hot", "warm:x"):
        with pytest.raises(CallerError):
            CachePolicy.parse(text)
