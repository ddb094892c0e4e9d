"""Durations, counts and shares are read exactly, or refused with words."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nameplate.contract.errors import CallerError
from nameplate.contract.quantity import (
    format_bytes,
    format_duration,
    parse_bytes,
    parse_duration_ns,
    parse_ratio,
    parse_tokens,
)

UNITS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9, "min": 60 * 10**9, "h": 3600 * 10**9}


@given(number=st.integers(0, 10**15 - 1), unit=st.sampled_from(sorted(UNITS)), gap=st.sampled_from(["", " "]))
@example(number=9_007_199_254_740_993 // 10, unit="ns", gap="")
def test_whole_durations_are_exact(number: int, unit: str, gap: str) -> None:
    """A whole number with a unit is that many nanoseconds, to the last one."""
    assert parse_duration_ns(f" {number}{gap}{unit} ") == number * UNITS[unit]


@given(parts=st.lists(st.tuples(st.integers(0, 999), st.sampled_from(["h", "m", "s", "ms"])), min_size=1))
def test_parts_of_a_duration_add_up(parts: list[tuple[int, str]]) -> None:
    """`1h30m` is the sum of its parts."""
    text = "".join(f"{number}{unit}" for number, unit in parts)
    assert parse_duration_ns(text) == sum(number * UNITS[unit] for number, unit in parts)


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("10s", 10**10),
        ("0.1s", 10**8),
        ("2.5 ms", 2_500_000),
        ("8h", 288 * 10**11),
        ("1.5us", 1500),
        ("3µs", 3000),
    ],
)
def test_durations_as_people_write_them(text: str, ns: int) -> None:
    """The usual spellings are read as people mean them."""
    assert parse_duration_ns(text) == ns


@pytest.mark.parametrize(
    "text", ["", " ", "10", "s", "-1s", "1e3s", "10 parsecs", "1s2", "1,5s", "nan s", "9" * 400 + "s"]
)
def test_what_is_no_duration_is_refused(text: str) -> None:
    """Anything else is the caller's mistake, and the message shows how to write it."""
    with pytest.raises(CallerError) as caught:
        parse_duration_ns(text)
    assert "unit" in caught.value.hint and caught.value.exit_code == 2


@given(st.text(max_size=30))
def test_parsers_raise_nothing_but_caller_errors(text: str) -> None:
    """Whatever is typed, a parser gives a value or a CallerError."""
    for parse in (parse_duration_ns, parse_tokens, parse_ratio, parse_bytes):
        with contextlib.suppress(CallerError):
            assert parse(text) >= 0


@given(st.integers(0, 10**15 - 1))
def test_plain_token_counts_are_exact(number: int) -> None:
    """A whole number of tokens is read to the last digit."""
    assert parse_tokens(str(number)) == number


@pytest.mark.parametrize(
    ("text", "tokens"),
    [("8k", 8192), ("8K", 8192), ("0.5k", 512), ("1m", 1_048_576), (" 64 ", 64), ("1.0", 1)],
)
def test_k_means_1024(text: str, tokens: int) -> None:
    """In token counts k is 1,024 and m its square."""
    assert parse_tokens(text) == tokens


@pytest.mark.parametrize("text", ["", "k", "-1", "1.5", "0.3k", "8kb", "1e3", "inf", "9" * 400])
def test_what_is_no_token_count_is_refused(text: str) -> None:
    """Fractions of a token and words are refused."""
    with pytest.raises(CallerError):
        parse_tokens(text)


@pytest.mark.parametrize(
    ("text", "ratio"), [("1%", 0.01), ("0.01", 0.01), ("100%", 1.0), ("0", 0.0), (" 5 % ", 0.05)]
)
def test_shares(text: str, ratio: float) -> None:
    """A share is written in percent or as a fraction of one."""
    assert parse_ratio(text) == pytest.approx(ratio)


@pytest.mark.parametrize("text", ["", "%", "101%", "1.1", "-1%", "nan", "inf", "a"])
def test_what_is_no_share_is_refused(text: str) -> None:
    """A share outside 0..1 is refused."""
    with pytest.raises(CallerError):
        parse_ratio(text)


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (8_710_000_000, "8.710 s"),
        (43_900_000, "43.9 ms"),
        (212_000, "212.0 us"),
        (7, "7 ns"),
        (180 * 10**9, "3.0 min"),
        (7200 * 10**9, "2.00 h"),
        (-5_000_000, "-5.0 ms"),
    ],
)
def test_durations_are_written_for_people(ns: int, text: str) -> None:
    """Each size has the unit that people would use."""
    assert format_duration(ns) == text


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("0", 0),
        ("123", 123),
        ("500MB", 5 * 10**8),
        ("8 GiB", 8 << 30),
        ("1.5k", 1500),
        ("2Ti", 2 << 40),
        ("7b", 7),
    ],
)
def test_sizes_are_read(text: str, size: int) -> None:
    """A unit is a power of 1,000, with an i one of 1,024; the letter b may be left out."""
    assert parse_bytes(text) == size


@pytest.mark.parametrize("text", ["", "GB", "5 furlongs", "-1MB", "5iB", "1e9", "5 MBs"])
def test_what_is_no_size_is_refused(text: str) -> None:
    """A hint says how sizes are written."""
    with pytest.raises(CallerError, match="not a size"):
        parse_bytes(text)


def test_sizes_are_written_with_three_digits() -> None:
    """The unit changes where the number would need a fourth digit."""
    said = [format_bytes(size) for size in (0, 999, 1000, 999_499, 999_950, 1_520_000_000, 3e13)]
    assert said == ["0 bytes", "999 bytes", "1 kB", "999 kB", "1 MB", "1.52 GB", "30 TB"]
