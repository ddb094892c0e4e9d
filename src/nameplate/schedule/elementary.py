"""Logarithm and exponential from the four operations that IEEE 754 rounds exactly.

The C library's own differ between systems in the last bit, and a schedule that depended on them would be another one
on another machine. Additions, multiplications and divisions of doubles are the same everywhere, and Python neither
fuses nor reorders them.
"""

from __future__ import annotations

from math import frexp, ldexp
from typing import Final

_LN2_HIGH: Final = 6.93147180369123816490e-01
"""The first 32 bits of ln 2, so that its multiples by a small integer are exact (as in fdlibm's e_log.c)."""

_LN2_LOW: Final = 1.90821492927058770002e-10
"""What is left of ln 2 (as in fdlibm's e_log.c)."""

_SQRT_HALF: Final = 0.7071067811865476


def log(x: float) -> float:
    """Return the natural logarithm of a positive finite number, within 2 units in the last place."""
    m, e = frexp(x)
    if m < _SQRT_HALF:
        m += m
        e -= 1
    # ln m = 2 artanh(s), |s| < 0.1716: the first term left out is below 2**-56 of the first.
    f = m - 1.0
    s = f / (m + 1.0)
    q = s * s
    series = q * (
        1 / 3
        + q
        * (
            1 / 5
            + q
            * (1 / 7 + q * (1 / 9 + q * (1 / 11 + q * (1 / 13 + q * (1 / 15 + q * (1 / 17 + q * (1 / 19)))))))
        )
    )
    # 2 s = f - s f: keeps the leading term exact, and the error in what is small beside it.
    return e * _LN2_HIGH + (f - s * (f - 2.0 * series) + e * _LN2_LOW)


def exp(x: float) -> float:
    """Return e to the power of a number from -700 to 700, within 2 units in the last place; 0 below that."""
    if x < -700.0:
        return 0.0
    n = round(x / 0.6931471805599453)
    r = (x - n * _LN2_HIGH) - n * _LN2_LOW
    # The Taylor series for |r| < 0.347: the first term left out is below 2**-55.
    total = 1.0
    for k in range(14, 0, -1):
        total = 1.0 + r * total / k
    return ldexp(total, n)
