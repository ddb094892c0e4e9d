"""The counter-based generator and the elementary functions: uniform, unrelated between streams, the same everywhere."""

from __future__ import annotations

import math
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from nameplate.schedule.counter import MASK, key_of, uniform, word
from nameplate.schedule.elementary import exp, log

N = 1 << 14


def chi_square(counts: list[int]) -> float:
    """Return the distance of counts from equal ones, in standard deviations of the chi-square distribution."""
    expected = sum(counts) / len(counts)
    statistic = sum((count - expected) ** 2 / expected for count in counts)
    return (statistic - (len(counts) - 1)) / math.sqrt(2 * (len(counts) - 1))


def test_words_are_splitmix64() -> None:
    """The words of key 0 are the published first words of SplitMix64 with seed 0, so the generator is that one."""
    assert [word(0, index) for index in range(3)] == [
        0xE220A8397B1DCDAF,
        0x6E789E6AA1B965F4,
        0x06C45D188009454F,
    ]


def test_uniform_numbers_are_uniform() -> None:
    """Over indices, over uses of one index, and over seeds, numbers fall evenly into 256 cells, alone and in pairs."""
    key = key_of(1, "test")
    for numbers in (
        [uniform(key, index) for index in range(N)],
        [uniform(key, 7, use) for use in range(N)],
        [uniform(key_of(seed, "test"), 0) for seed in range(N)],
        [uniform(key, index, use) for index in range(N // 8) for use in range(8)],
    ):
        cells, pairs = [0] * 256, [0] * 256
        for number in numbers:
            cells[min(255, int(number * 256))] += 1
        for one, other in pairwise(numbers):
            pairs[16 * min(15, int(one * 16)) + min(15, int(other * 16))] += 1
        assert abs(chi_square(cells)) < 5 and abs(chi_square(pairs)) < 5
        mean = sum(numbers) / N
        assert abs(mean - 0.5) < 5 / math.sqrt(12 * N)


def test_every_bit_is_fair_and_flips() -> None:
    """Each of the 64 bits is set half of the time, and half of the bits differ between neighbours and between uses."""
    key = key_of(2, "test")
    count = 1 << 12
    for other in ((1, 0), (0, 1), (1 << 20, 0)):
        flips = [word(key, i) ^ word(key, i + other[0], other[1]) for i in range(count)]
        for bit in range(64):
            ones = sum(flip >> bit & 1 for flip in flips)
            assert abs(ones - count / 2) < 5 * math.sqrt(count) / 2
    for bit in range(64):
        ones = sum(word(key, i) >> bit & 1 for i in range(count))
        assert abs(ones - count / 2) < 5 * math.sqrt(count) / 2


def test_words_of_a_stream_do_not_repeat() -> None:
    """No two counters of a stream give the same word."""
    key = key_of(3, "test")
    words = {word(key, index, use) for index in range(2000) for use in range(10)}
    assert len(words) == 20_000


@settings(deadline=None)
@given(seed=st.integers(), index=st.integers(0, 2**40 - 1), use=st.integers(0, 2**20))
def test_numbers_are_in_range_and_pure(seed: int, index: int, use: int) -> None:
    """A number is above 0 and at most 1, is made of its word, and comes again for the same arguments."""
    key = key_of(seed, "test")
    assert 0 <= key <= MASK
    number = uniform(key, index, use)
    assert 0 < number <= 1 and number == uniform(key, index, use)
    assert number == ((word(key, index, use) >> 11) + 1) / 2**53


@settings(deadline=None)
@given(seed=st.integers())
def test_seeds_and_purposes_give_other_keys(seed: int) -> None:
    """Neighbouring seeds and other purposes have keys of their own."""
    keys = {key_of(seed, "arrivals"), key_of(seed + 1, "arrivals"), key_of(-seed - 2, "arrivals")}
    assert key_of(seed, "lengths") not in keys and key_of(seed + 1, "arrivals") != key_of(seed, "arrivals")


@settings(deadline=None)
@given(st.floats(min_value=2.0**-53, max_value=1e300))
def test_log_is_the_logarithm(x: float) -> None:
    """It differs from the C library's by two units in the last place at most, and is 0 at 1."""
    assert abs(log(x) - math.log(x)) <= 2 * math.ulp(math.log(x))
    assert log(1.0) == 0.0


@settings(deadline=None)
@given(st.floats(min_value=-690, max_value=690))
def test_exp_is_the_exponential(x: float) -> None:
    """It differs from the C library's by two units in the last place at most; far below it is 0."""
    assert abs(exp(x) - math.exp(x)) <= 2 * math.ulp(math.exp(x))
    assert exp(-1e9) == 0.0 and exp(0.0) == 1.0


def test_known_bits() -> None:
    """Some values to the last bit: a change of the arithmetic would change every recorded schedule."""
    found = [x.hex() for x in (log(0.3), log(0.999), log(1e-9), exp(-1.5), exp(0.3))]
    assert found == KNOWN


KNOWN = [
    "-0x1.34378fcbda721p+0",
    "-0x1.064670d979b73p-10",
    "-0x1.4b927f32bffb8p+4",
    "0x1.c8f87724b5c1dp-3",
    "0x1.599058c8c1a96p+0",
]
