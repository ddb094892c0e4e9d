"""Tail probabilities that the tests need: normal, gamma, chi-square, Poisson and Kolmogorov."""

from __future__ import annotations

import math
from collections.abc import Callable

# Relative size of a term that ends a series or a continued fraction.
_NEGLIGIBLE = 2.0**-54
# Keeps Lentz's continued fraction from dividing by zero.
_TINY = 1e-300
# Doublings of a bracket and halvings of it: more than a double has bits.
_STEPS = 200
# The exact distribution of Kolmogorov's distance costs (2 n D)^3 log n steps: a millisecond here.
_EXACT_UP_TO = 20
# A scaled distance from which on both sides exceed it at once with a probability below 2 exp(-8 x^2) = 2e-5.
_ONE_SIDED_FROM = 1.2
# The one-sided tail is a sum of n terms.
_SUMMED_UP_TO = 10_000


def normal_cdf(z: float) -> float:
    """Return P(Z <= z) of a standard normal variable."""
    return 0.5 * math.erfc(-z / math.sqrt(2))


def two_sided(z: float) -> float:
    """Return P(|Z| >= |z|) of a standard normal variable."""
    return math.erfc(abs(z) / math.sqrt(2))


def normal_quantile(p: float) -> float:
    """Return the z with P(Z <= z) = p; ValueError outside the open interval 0..1."""
    if not 0 < p < 1:
        raise ValueError(f"{p} is not a probability inside 0..1")
    # From the small tail, where erfc keeps its precision.
    if p > 0.5:
        return -_bisect(lambda z: normal_cdf(z) >= 1 - p, -40.0, 0.0)
    return _bisect(lambda z: normal_cdf(z) >= p, -40.0, 0.0)


def student_tail(t: float, degrees: float) -> float:
    """Return P(T > t) of Student's t with real degrees of freedom, through the incomplete beta function.

    Lentz's method on the continued fraction of Abramowitz & Stegun 1964, 26.5.8.
    """
    if not degrees > 0:
        raise ValueError(f"{degrees} degrees of freedom")
    if t == 0:
        return 0.5
    if math.isinf(t):
        return 0.0 if t > 0 else 1.0
    tail = _beta(degrees / (degrees + t * t), degrees / 2, 0.5) / 2
    return tail if t > 0 else 1 - tail


def student_quantile(p: float, degrees: float) -> float:
    """Return the t with P(T <= t) = p; ValueError outside the open interval 0..1."""
    if not 0 < p < 1:
        raise ValueError(f"{p} is not a probability inside 0..1")
    if p < 0.5:
        return -student_quantile(1 - p, degrees)
    # Newton from the normal's quantile, which lies below: the tail is convex there, so the steps never overshoot.
    t = max(0.0, normal_quantile(p))
    scale = math.lgamma((degrees + 1) / 2) - math.lgamma(degrees / 2) - 0.5 * math.log(degrees * math.pi)
    for _ in range(_STEPS):
        density = math.exp(scale - (degrees + 1) / 2 * math.log1p(t * t / degrees))
        step = (student_tail(t, degrees) - (1 - p)) / density
        t += step
        if step <= 1e-13 * t:
            break
    return t


def _beta(x: float, a: float, b: float) -> float:
    """Return the regularised incomplete beta function I_x(a, b)."""
    if x <= 0 or x >= 1:
        return 0.0 if x <= 0 else 1.0
    if x > (a + 1) / (a + b + 2):
        return 1 - _beta(1 - x, b, a)
    log_front = a * math.log(x) + b * math.log1p(-x) + math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    c, d = 1.0, 1 / (1 - (a + b) * x / (a + 1))
    h = d
    for m in range(1, 1_000):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        before = h
        for term in (even, odd):
            d = 1 + term * d
            d = 1 / (d if abs(d) > _TINY else _TINY)
            c = 1 + term / c
            c = c if abs(c) > _TINY else _TINY
            h *= c * d
        if abs(h - before) <= 4 * _NEGLIGIBLE * abs(h):
            break
    return min(1.0, math.exp(log_front) * h / a)


def gamma_tails(x: float, shape: float) -> tuple[float, float]:
    """Return P(X <= x) and P(X > x) of a gamma variable with unit scale.

    The power series below the mean and Lentz's continued fraction above it (Abramowitz & Stegun 1964, 6.5.29 and
    6.5.31): the smaller of the two keeps its relative precision. ValueError for a shape that is not positive.
    """
    if not shape > 0 or math.isinf(shape):
        raise ValueError(f"{shape} is not a gamma shape")
    if x <= 0:
        return 0.0, 1.0
    if math.isinf(x):
        return 1.0, 0.0
    front = math.exp(shape * math.log(x) - x - math.lgamma(shape))
    # Both need a number of terms that grows with the root of the shape.
    most = 1_000 + int(60 * math.sqrt(shape + x))
    if x < shape + 1:
        term = total = 1 / shape
        for i in range(1, most):
            term *= x / (shape + i)
            total += term
            if term < _NEGLIGIBLE * total:
                break
        lower = min(1.0, front * total)
        return lower, 1 - lower
    b = x + 1 - shape
    c = 1 / _TINY
    d = 1 / b
    h = d
    for i in range(1, most):
        a = -i * (i - shape)
        b += 2
        d = a * d + b
        d = 1 / (d if abs(d) > _TINY else _TINY)
        c = b + a / c
        c = c if abs(c) > _TINY else _TINY
        h *= d * c
        if abs(d * c - 1) < 4 * _NEGLIGIBLE:
            break
    upper = min(1.0, front * h)
    return 1 - upper, upper


def chi_square_tails(x: float, degrees: int) -> tuple[float, float]:
    """Return P(X <= x) and P(X > x) of a chi-square variable."""
    return gamma_tails(x / 2, degrees / 2)


def chi_square_quantile(p: float, degrees: int) -> float:
    """Return the x with P(X <= x) = p of a chi-square variable; ValueError outside the open interval 0..1."""
    if not 0 < p < 1:
        raise ValueError(f"{p} is not a probability inside 0..1")
    high = float(degrees + 1)
    while chi_square_tails(high, degrees)[0] < p:
        high *= 2
    return _bisect(lambda x: chi_square_tails(x, degrees)[0] >= p, 0.0, high)


def poisson_tails(count: int, mean: float) -> tuple[float, float]:
    """Return P(X <= count) and P(X >= count) of a Poisson variable, exactly, through the gamma distribution."""
    if count < 0 or mean < 0:
        raise ValueError(f"a count of {count} with mean {mean} is impossible")
    if mean == 0:
        return 1.0, 1.0 if count == 0 else 0.0
    at_most = gamma_tails(mean, count + 1)[1]
    at_least = gamma_tails(mean, count)[0] if count else 1.0
    return at_most, at_least


def kolmogorov_tail(distance: float, n: int) -> float:
    """Return P(D >= distance) for n independent values of a known continuous distribution.

    Exact up to n = 20 (Marsaglia, Tsang & Wang 2003, J. of Statistical Software 8). Up to n = 10,000 twice the
    one-sided tail of Birnbaum & Tingey 1951, where both sides at once are too unlikely to count. Otherwise
    Kolmogorov's series with the corrected argument of Vrbik 2018 (Pioneer J. of Theoretical and Applied Statistics
    15). The error is below 0.0006 (0.0002 from n = 100 on), and below 1% of a p-value under 0.01.
    """
    if n <= 0:
        raise ValueError("a distance of no values")
    if distance * n <= 0.5:
        return 1.0
    if distance >= 1:
        return 0.0
    if distance >= 0.5:
        return min(1.0, 2 * _one_sided(distance, n))
    if n <= _EXACT_UP_TO:
        return max(0.0, 1 - _exact_kolmogorov(distance, n))
    root = math.sqrt(n)
    corrected = distance * root + 1 / (6 * root) + (distance * root - 1) / (4 * n)
    if corrected > _ONE_SIDED_FROM and n <= _SUMMED_UP_TO:
        return min(1.0, 2 * _one_sided(distance, n))
    return _kolmogorov_series(corrected)


def _exact_kolmogorov(distance: float, n: int) -> float:
    """Return P(D < distance) as n!/n^n times the middle element of a matrix's n-th power."""
    k = math.floor(n * distance) + 1
    size = 2 * k - 1
    h = k - n * distance
    matrix = [[1.0 if i - j + 1 >= 0 else 0.0 for j in range(size)] for i in range(size)]
    for i in range(size):
        matrix[i][0] -= h ** (i + 1)
        matrix[size - 1][i] -= h ** (size - i)
    if 2 * h > 1:
        matrix[size - 1][0] += (2 * h - 1) ** size
    for i in range(size):
        for j in range(size):
            if i - j + 1 > 0:
                matrix[i][j] /= math.factorial(i - j + 1)
    power = matrix
    for bit in bin(n)[3:]:
        power = _product(power, power)
        if bit == "1":
            power = _product(power, matrix)
    return power[k - 1][k - 1] * math.factorial(n) / float(n) ** n


def _product(left: list[list[float]], right: list[list[float]]) -> list[list[float]]:
    columns = list(zip(*right, strict=True))
    return [[sum(a * b for a, b in zip(row, column, strict=True)) for column in columns] for row in left]


def _kolmogorov_series(x: float) -> float:
    """Sum 2 sum (-1)^(k-1) exp(-2 k^2 x^2), or its theta-function twin, which converges where x is small."""
    if x <= 0:
        return 1.0
    if x < 1.18:
        y = math.exp(-((math.pi / x) ** 2) / 8)
        total = y + y**9 + y**25 + y**49
        return 1 - math.sqrt(2 * math.pi) / x * total
    y = math.exp(-2 * x * x)
    return 2 * (y - y**4 + y**9 - y**16)


def _one_sided(distance: float, n: int) -> float:
    """Return P(D+ >= distance) by the finite sum of Birnbaum & Tingey."""
    total = 0.0
    ways = math.lgamma(n + 1)
    for j in range(math.floor(n * (1 - distance)) + 1):
        place = distance + j / n
        left = 1 - place
        if left <= 0:
            break
        chosen = ways - math.lgamma(j + 1) - math.lgamma(n - j + 1)
        total += math.exp(chosen + (n - j) * math.log(left) + (j - 1) * math.log(place))
    return distance * total


def _bisect(reached: Callable[[float], bool], low: float, high: float) -> float:
    """Return the smallest double in low..high at which `reached` holds."""
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if not low < middle < high:
            break
        if reached(middle):
            high = middle
        else:
            low = middle
    return high
