"""Tail probabilities, held against SciPy."""

from __future__ import annotations

from typing import Any

import pytest

from nameplate.statistics.tails import (
    chi_square_quantile,
    chi_square_tails,
    gamma_tails,
    kolmogorov_tail,
    normal_cdf,
    normal_quantile,
    poisson_tails,
    student_quantile,
    student_tail,
    two_sided,
)


@pytest.fixture(scope="module")
def stats() -> Any:
    return pytest.importorskip("scipy.stats", reason="SciPy is not installed")


def test_the_normal_agrees(stats: Any) -> None:
    """Distribution and quantile of the normal agree, deep in both tails."""
    for z in (-30.0, -3.0, 0.0, 1.5, 8.0):
        assert normal_cdf(z) == pytest.approx(stats.norm.cdf(z), rel=1e-12)
        assert two_sided(z) == pytest.approx(2 * stats.norm.sf(abs(z)), rel=1e-12)
    for p in (1e-12, 0.025, 0.5, 0.975, 1 - 1e-9):
        assert normal_quantile(p) == pytest.approx(stats.norm.ppf(p), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("shape", [0.3, 1.0, 5.0, 100.0, 1e4, 1e6])
def test_both_gamma_tails_agree(stats: Any, shape: float) -> None:
    """The lower and the upper tail each keep their relative precision, from far below to far above the mean."""
    for share in (0.3, 0.9, 0.99, 1.0, 1.01, 1.3, 3.0):
        lower, upper = gamma_tails(shape * share, shape)
        assert lower == pytest.approx(stats.gamma.cdf(shape * share, shape), rel=1e-8, abs=1e-290)
        assert upper == pytest.approx(stats.gamma.sf(shape * share, shape), rel=1e-8, abs=1e-290)


def test_the_chi_square_agrees(stats: Any) -> None:
    """Tails and quantiles of chi-square agree."""
    for degrees in (1, 2, 9, 199):
        for p in (0.0005, 0.5, 0.9995):
            x = chi_square_quantile(p, degrees)
            assert x == pytest.approx(stats.chi2.ppf(p, degrees), rel=1e-9)
            assert chi_square_tails(x, degrees)[0] == pytest.approx(p, rel=1e-9)


@pytest.mark.parametrize("mean", [0.2, 7.0, 500.0, 1e6])
def test_poisson_tails_agree(stats: Any, mean: float) -> None:
    """Both tails of a Poisson count agree, inclusive on both sides."""
    for count in {0, int(mean * 0.9), int(mean), int(mean * 1.1) + 1}:
        at_most, at_least = poisson_tails(count, mean)
        assert at_most == pytest.approx(stats.poisson.cdf(count, mean), rel=1e-7, abs=1e-290)
        assert at_least == pytest.approx(stats.poisson.sf(count - 1, mean), rel=1e-7, abs=1e-290)


def test_students_t_agrees(stats: Any) -> None:
    """Tail and quantile of Student's t agree, for whole and broken degrees of freedom."""
    for degrees in (1.0, 1.7, 4.0, 30.0, 1e4):
        for t in (-2.0, 0.0, 0.1, 1.0, 3.0, 20.0):
            assert student_tail(t, degrees) == pytest.approx(stats.t.sf(t, degrees), rel=1e-8)
        for p in (0.025, 0.5, 0.95):
            assert student_quantile(p, degrees) == pytest.approx(stats.t.ppf(p, degrees), rel=1e-8, abs=1e-12)


@pytest.mark.parametrize(
    ("n", "error"), [(1, 1e-12), (3, 1e-12), (20, 1e-9), (21, 6e-4), (50, 6e-4), (100, 2e-4), (2_000, 2e-5)]
)
def test_kolmogorovs_distance_is_within_the_stated_error(stats: Any, n: int, error: float) -> None:
    """Exact up to twenty values; above, the error of the series is what its docstring states."""
    for i in range(1, 100):
        assert kolmogorov_tail(i / 100, n) == pytest.approx(stats.kstwo.sf(i / 100, n), abs=error)


@pytest.mark.parametrize("n", [21, 50, 200, 2_000, 20_000])
def test_small_p_values_of_kolmogorov_keep_their_size(stats: Any, n: int) -> None:
    """Where one in a thousand decides, the p-value is right to 1%."""
    for p in (0.01, 0.001, 1e-6):
        assert kolmogorov_tail(stats.kstwo.isf(p, n), n) == pytest.approx(p, rel=0.01)


@pytest.mark.parametrize("p", [0.0, 1.0, -0.1, 1.1])
def test_quantiles_outside_are_refused(p: float) -> None:
    """A quantile of an impossible probability is an error."""
    for quantile in (normal_quantile, lambda p: chi_square_quantile(p, 3), lambda p: student_quantile(p, 3)):
        with pytest.raises(ValueError):
            quantile(p)
