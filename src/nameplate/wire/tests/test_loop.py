"""Loops: what counts as one, exactly, and that it is found in whatever pieces a text comes."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nameplate.wire.events import Channel
from nameplate.wire.loop import (
    KEPT_CHARS,
    LEAST_CHARS,
    LONGEST_PERIOD_CHARS,
    Loop,
    Tail,
    find_loop,
    smallest_period,
)


def by_definition(text: str, least_chars: int, longest_period: int) -> int | None:
    """Try every period, from the smallest on, character by character."""
    end = len(text)
    for period in range(1, longest_period + 1):
        needed = max(4 * period, least_chars)
        if needed > end or text[end - period :].isspace():
            continue
        if all(text[at] == text[at + period] for at in range(end - needed, end - period)):
            return period
    return None


def prose(chars: int, seed: int = 1) -> str:
    """Return text without a repetition of any length."""
    return "".join(random.Random(seed).choices("etaoin shrdlu cmfwyp", k=chars))


def period_of(text: str) -> int | None:
    found = find_loop(text)
    return None if found is None else found.period_chars


# Few letters and whole powers of short words, so that near misses and periods within periods are the rule.
_WORDS = st.text(alphabet="aab \u00e9😀", min_size=1, max_size=9)
_POWERS = st.tuples(_WORDS, st.integers(1, 40)).map(lambda pair: pair[0] * pair[1])


@st.composite
def repetitive(draw: st.DrawFn) -> str:
    """Return powers of short words after one another, perhaps repeated as a whole, perhaps with one letter changed."""
    text = "".join(draw(st.lists(_POWERS, max_size=5))) * draw(st.integers(1, 5))
    if text and draw(st.booleans()):
        at = draw(st.integers(0, len(text) - 1))
        text = text[:at] + draw(st.sampled_from("abz ")) + text[at + 1 :]
    return text


@settings(max_examples=600, deadline=None)
@given(repetitive(), st.sampled_from([4, 7, 16, 32, 61]), st.sampled_from([1, 2, 7, 16, 40]))
def test_the_period_is_the_smallest_by_definition(text: str, least: int, longest: int) -> None:
    """With limits small enough to try everything, the answer is that of the definition."""
    assert smallest_period(text, least, longest) == by_definition(text, least, longest)


@settings(max_examples=40, deadline=None)
@given(repetitive(), st.integers(0, 5000), st.integers(0, 3))
def test_the_same_at_the_real_limits(text: str, chars: int, cut: int) -> None:
    """At 4,096 characters the answer is that of the definition, too, for periods that can be tried."""
    whole = (prose(50) + (text * (chars // max(1, len(text)) + 1))[: max(chars, 1)])[: -cut or None]
    # No text of 5,050 characters has four cycles above 1,262.
    assert period_of(whole) == by_definition(whole, LEAST_CHARS, 1262)


@settings(max_examples=25, deadline=None)
@given(
    st.sampled_from([1, 2, 1000, 1023, 1024, 1025, 3072, 3073, 9216, 9217, 27_648, 27_649, 32_767, 32_768]),
    st.integers(0, 2),
    st.sampled_from(["", "x", "before "]),
)
def test_a_loop_of_any_size_is_found(period: int, more: int, before: str) -> None:
    """Four whole cycles and 4,096 characters are a loop, whatever stands before them."""
    cycle = prose(period - 1, seed=period) + "#"
    chars = max(4 * period, LEAST_CHARS)
    repeated = (cycle * (chars // period + 2))[-chars - more :]
    found = find_loop(prose(3000, seed=2) + "!" + before + repeated)
    assert found is not None and found.period_chars == period
    # What stands before may end as the cycle does.
    assert found.length_chars >= min(chars + more, KEPT_CHARS)


@pytest.mark.parametrize("period", [1, 5, 1023, 1024, 1025, 1500, 3072, 3073, 9217, 27_649, 32_768])
def test_one_character_less_is_no_loop(period: int) -> None:
    """4,095 characters, or 3.99 cycles, are no loop, at the end of any text."""
    cycle = prose(period - 1, seed=period) + "#"
    chars = max(4 * period, LEAST_CHARS)
    repeated = (cycle * (chars // period + 2))[-chars:]
    assert period_of(repeated) == period
    assert period_of(repeated[1:]) is None
    broken = "!" if repeated[0] != "!" else "?"
    assert period_of(prose(9000, seed=3) + broken + repeated[1:]) is None


def test_longer_periods_than_the_limit_do_not_count() -> None:
    """A period of 32,768 characters counts, and one of 32,769 does not, however often it comes."""
    assert period_of((prose(LONGEST_PERIOD_CHARS - 1) + "#") * 6) == LONGEST_PERIOD_CHARS
    assert period_of((prose(LONGEST_PERIOD_CHARS) + "#") * 6) is None


def test_a_loop_that_was_left_is_none() -> None:
    """One other character at the very end, and the text did not end in a loop."""
    assert period_of("round and " * 5000) == 10
    assert period_of("round and " * 5000 + "!") is None


def test_whitespace_alone_does_not_count() -> None:
    """Blank lines without end are no loop; one letter among them makes them one."""
    assert period_of("\n" * 50_000) is None
    assert period_of("the end." + " \n\t\u00a0\u3000" * 20_000) is None
    assert period_of(("x" + " " * 6000) * 5) == 6001


def test_characters_are_code_points() -> None:
    """Periods and lengths count characters, not bytes."""
    assert find_loop("начало: " + "是😀é" * 2000) == Loop(Channel.content, 3, 6000)


def test_only_what_is_kept_counts() -> None:
    """A loop's length is at most that of the kept end; what stood before it changes nothing."""
    found = find_loop("ab" * 100_000, Channel.reasoning)
    assert found == Loop(Channel.reasoning, 2, KEPT_CHARS)
    assert find_loop(prose(77_777) + "ab" * 100_000, Channel.reasoning) == found


def test_the_length_is_that_of_the_repeating_end() -> None:
    """Cycles that are not whole count in the length."""
    assert find_loop("!" + "cd" + "abcd" * 1500) == Loop(Channel.content, 4, 6002)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 9000), max_size=60), st.integers(1, 5000))
def test_a_tail_is_the_end_of_its_text(sizes: list[int], period: int) -> None:
    """However a text is cut into pieces, its tail finds what the whole text has, and counts every character."""
    source = prose(1000) + (prose(period, seed=period)) * (300_000 // period + 1)
    tail, at = Tail(), 0
    for size in sizes:
        tail.add(source[at : at + size])
        at += size
    assert tail.chars == len(source[:at])
    assert tail.loop(Channel.content) == find_loop(source[:at])


def test_a_tail_keeps_few_pieces() -> None:
    """A million pieces of one character, or one of a million, leave no more than the kept end in few blocks."""
    tail = Tail()
    for at in range(300_000):
        tail.add(chr(97 + at % 26))
    assert len(tail._blocks) <= KEPT_CHARS // 4096 + 1
    assert KEPT_CHARS <= sum(map(len, tail._blocks)) < KEPT_CHARS + 4096
    tail.add("x" * 1_000_000)
    assert sum(map(len, tail._blocks)) < 2 * KEPT_CHARS
    assert tail.chars == 1_300_000
