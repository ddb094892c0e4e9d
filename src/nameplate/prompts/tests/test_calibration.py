"""The asked length is reached on any tokenizer, in few asks, or it is said why not."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer

from nameplate.contract.errors import CallerError, ServerError
from nameplate.prompts.calibration import (
    MAXIMUM_ASKS,
    Ask,
    Calibrated,
    Calibration,
    Uncalibrated,
    calibrate,
    calibrate_prefix,
)
from nameplate.prompts.tests.tokens import Counter, additive
from nameplate.prompts.text import PERIOD_WORDS, PromptKey, compose, shared_prefix

Outcome = Calibrated | Uncalibrated


def drive(calibration: Calibration, count: Callable[[str], int | None]) -> tuple[Outcome, list[Ask]]:
    """Answer every ask with the scripted server's count."""
    asks = []
    try:
        ask = next(calibration)
        while True:
            asks.append(ask)
            ask = calibration.send(count(ask.text))
    except StopIteration as stop:
        outcome: Outcome = stop.value
        return outcome, asks


def server(count: Counter, template: int) -> Counter:
    """Add a chat template to a tokenizer."""
    return lambda text: template + count(text)


def found(outcome: Outcome) -> Calibrated:
    """Expect success."""
    assert isinstance(outcome, Calibrated), outcome
    return outcome


def reached(result: Calibrated, count: Counter, prefix: str = "") -> list[int]:
    """Count prompts of the found length that calibration has never seen."""
    keys = [PromptKey("fresh", "t", 0, index) for index in range(8)]
    return [count(prefix + compose(key, result.words, result.letters)) for key in keys]


@settings(max_examples=30, deadline=None)
@given(st.integers(100, 12_000), st.integers(0, 60), st.text(max_size=4))
def test_a_large_vocabulary_is_met_exactly(target: int, template: int, salt: str) -> None:
    """Where words cost one token, every prompt is within two tokens, after four asks unless it is short."""
    count = server(additive(salt), template)
    outcome, asks = drive(calibrate(target, nonce="n"), count)
    result = found(outcome)
    assert all(abs(tokens - target) <= 2 for tokens in reached(result, count))
    assert len(asks) <= (4 if target > 500 else 5)


@settings(max_examples=30, deadline=None)
@given(
    st.integers(800, 12_000), st.integers(0, 400), st.integers(1, 3), st.integers(0, 3), st.text(max_size=4)
)
def test_small_vocabularies_are_met_within_the_protocol(
    target: int, template: int, cheapest: int, more: int, salt: str
) -> None:
    """Whatever words cost, every prompt lies within max(8, 0.5%) plus the stated spread, in five asks at most."""
    count = server(additive(salt, cheapest, cheapest + more), template)
    outcome, asks = drive(calibrate(target, nonce="n"), count)
    result = found(outcome)
    assert len(asks) <= MAXIMUM_ASKS
    assert abs((result.measured_tokens or 0) - target) <= max(8, target // 200)
    allowed = max(8, target // 200) + result.spread_tokens
    assert all(abs(tokens - target) <= allowed for tokens in reached(result, count))


@pytest.mark.parametrize("target", [100, 300, 1_024, 8_192])
def test_a_real_byte_pair_tokenizer_is_met(bpe: Tokenizer, target: int) -> None:
    """A real BPE with a small vocabulary is met, and the stated range holds what further prompts cost."""
    count: Counter = server(lambda text: len(bpe.encode(text).ids), 25)
    outcome, _ = drive(calibrate(target, nonce="n"), count)
    result = found(outcome)
    low, high = result.expected_tokens
    counts = reached(result, count)
    assert all(abs(tokens - target) <= 8 for tokens in counts)
    assert min(counts) >= low and max(counts) <= high


@pytest.mark.parametrize("target", [400, 1_024, 8_192])
def test_plain_bytes_are_met(target: int) -> None:
    """A vocabulary of bytes, at nearly six tokens a word, is met as well."""
    count: Counter = server(lambda text: len(text.encode()), 20)
    result = found(drive(calibrate(target, nonce="n"), count)[0])
    assert abs((result.measured_tokens or 0) - target) <= 2
    assert result.tokens_per_word > 5


def test_fewer_tokens_than_words_are_met() -> None:
    """A vocabulary that joins words, at 0.7 tokens a word, is met."""
    one = additive("x")
    count: Counter = lambda text: int(10 + 0.62 * one(text))  # noqa: E731
    result = found(drive(calibrate(4_000, nonce="n"), count)[0])
    assert abs((result.measured_tokens or 0) - 4_000) <= 2
    assert result.tokens_per_word < 0.8


def test_noise_does_not_lead_astray() -> None:
    """A count that wavers by two tokens still leads to within a few tokens."""
    noise = random.Random(5)
    one = server(additive("x"), 30)
    count: Counter = lambda text: one(text) + noise.randint(-2, 2)  # noqa: E731
    for target in (200, 1_000, 8_192):
        result = found(drive(calibrate(target, nonce="n"), count)[0])
        assert all(abs(tokens - target) <= 6 for tokens in reached(result, one))


def test_long_prompts_are_worked_out_from_short_ones() -> None:
    """For 128K tokens at most three asks are long, and the first two are short."""
    count = server(additive("x", 1, 2), 700)
    outcome, asks = drive(calibrate(131_072, nonce="n"), count)
    result = found(outcome)
    assert abs((result.measured_tokens or 0) - 131_072) <= 2
    assert all(ask.words <= 3 * PERIOD_WORDS for ask in asks[:2])
    assert result.template_tokens is not None and abs(result.template_tokens - 700) <= 25


def test_every_ask_has_a_text_of_its_own() -> None:
    """No ask could be answered from the cache of another, or of a measured prompt."""
    _, asks = drive(calibrate(2_000, nonce="n", first_index=3), server(additive("x", 1, 3), 9))
    assert len({ask.text[:64] for ask in asks}) == len(asks)
    assert {ask.key.phase for ask in asks} == {"calibration"}
    assert [ask.key.index for ask in asks] == list(range(3, 3 + len(asks)))


def test_a_previous_result_saves_asks() -> None:
    """What one shape taught makes the next one as quick as its check."""
    count = server(additive("x"), 40)
    first = found(drive(calibrate(8_192, nonce="n"), count)[0])
    outcome, asks = drive(calibrate(4_096, nonce="n", first_index=10, previous=first), count)
    assert abs((found(outcome).measured_tokens or 0) - 4_096) <= 2
    assert abs(asks[0].words - found(outcome).words) <= 40


def test_too_short_is_said_with_the_floor() -> None:
    """An input below the template and the shortest unique prompt is refused, with the least that is possible."""
    outcome, asks = drive(calibrate(64, nonce="n"), server(additive("x"), 200))
    assert isinstance(outcome, Uncalibrated) and outcome.reason == "too_short"
    assert len(asks) <= 3
    error = outcome.error()
    assert isinstance(error, CallerError) and str(outcome.floor_tokens) in str(error)


@pytest.mark.parametrize("count", [lambda _: 7, lambda text: min(len(text), 2_048), lambda _: 10**9])
def test_counts_that_make_no_sense_are_said(count: Counter) -> None:
    """A server that counts nonsense, or truncates, does not lead to a length."""
    outcome, asks = drive(calibrate(5_000, nonce="n"), count)
    assert isinstance(outcome, Uncalibrated)
    assert len(asks) <= MAXIMUM_ASKS
    assert isinstance(outcome.error(), CallerError | ServerError)


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.one_of(st.none(), st.integers(-5, 10**12)), min_size=5, max_size=5), st.integers(1, 200_000)
)
def test_no_answer_breaks_it(replies: list[int | None], target: int) -> None:
    """Whatever the server answers, the calibration ends within its asks with a result or a reason."""
    left = iter(replies)
    outcome, asks = drive(calibrate(target, nonce="n"), lambda _: next(left))
    assert isinstance(outcome, Calibrated | Uncalibrated)
    assert len(asks) <= MAXIMUM_ASKS


def test_a_server_that_counts_nothing_gives_an_assumed_length() -> None:
    """Without counts the length is assumed, and labelled so, with a wide range."""
    outcome, asks = drive(calibrate(8_192, nonce="n"), lambda _: None)
    result = found(outcome)
    assert result.source == "assumed" and result.measured_tokens is None
    assert len(asks) == 1
    low, high = result.expected_tokens
    assert low < 7_000 and high > 9_000
    actual = server(additive("x"), 20)(compose(PromptKey("n", "t", 0, 0), result.words))
    assert low <= actual <= high


@pytest.mark.parametrize(("prefix_tokens", "total"), [(512, 1_024), (2_048, 8_192), (8_192, 8_500)])
@pytest.mark.parametrize("dearest", [1, 2, 3])
def test_a_shared_prefix_is_met_within_a_block(prefix_tokens: int, total: int, dearest: int) -> None:
    """The prefix costs what is asked within one block, and the whole prompt what is asked within the protocol."""
    count = server(additive("x", 1, dearest), 35)
    shared = found(drive(calibrate_prefix(prefix_tokens, nonce="n"), count)[0])
    assert abs((shared.measured_tokens or 0) - prefix_tokens) <= 16
    prefix = shared_prefix("n", shared.words, shared.letters)
    whole = calibrate(total, nonce="n", prefix=prefix, prefix_tokens=shared.measured_tokens, first_index=10)
    outcome, asks = drive(whole, count)
    assert all(ask.text.startswith(prefix) for ask in asks)
    assert all(
        abs(tokens - total) <= max(8, total // 200) for tokens in reached(found(outcome), count, prefix)
    )


def test_a_prefix_without_counts_is_assumed() -> None:
    """Without counts the prefix's length is assumed as well."""
    result = found(drive(calibrate_prefix(1_000, nonce="n"), lambda _: None)[0])
    assert result.source == "assumed"
