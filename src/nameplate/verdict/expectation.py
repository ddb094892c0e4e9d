"""What a baseline is expected to show, and how far off it may be."""

from __future__ import annotations

from msgspec import Struct

from nameplate.contract.quantity import format_duration

# A rerun of the same server comes within about 8% (seed protocol: prefill +8%, decode -6%); a wrong image or
# kernel path is off by far more.
DEFAULT_TOLERANCE = 0.15


class Expectation(Struct, frozen=True):
    """Expect a median TTFT in nanoseconds, nominal prefill and decode rates in tokens a second, from `source`.

    `tolerance` is the share by which each may differ to either side; what is None is not compared.
    """

    ttft_ns: float | None = None
    prefill_per_s: float | None = None
    decode_per_s: float | None = None
    tolerance: float = DEFAULT_TOLERANCE
    source: str = "--expect"


def differences(
    expected: Expectation,
    ttft_ns: float | None,
    prefill_per_s: float | None,
    decode_per_s: float | None,
) -> tuple[str, ...]:
    """Name what lies outside the tolerance; what was expected and not measured lies outside too."""
    found = []
    if expected.ttft_ns is not None and not _near(expected.ttft_ns, ttft_ns, expected.tolerance):
        measured = "not measured" if ttft_ns is None else format_duration(ttft_ns)
        found.append(f"TTFT p50 is {measured}, {expected.source} says {format_duration(expected.ttft_ns)}")
    for name, wanted, got in (
        ("prefill", expected.prefill_per_s, prefill_per_s),
        ("decode", expected.decode_per_s, decode_per_s),
    ):
        if wanted is not None and not _near(wanted, got, expected.tolerance):
            measured = "not measured" if got is None else f"{got:.1f} tokens/s"
            found.append(f"{name} is {measured}, {expected.source} says {wanted:.1f}")
    return tuple(found)


def _near(wanted: float, got: float | None, tolerance: float) -> bool:
    return got is not None and abs(got - wanted) <= tolerance * wanted
