"""Texts are unique, disjoint by phase, the same again for the same key, and of one cost for one length."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer

from nameplate.prompts import vocabulary
from nameplate.prompts.tests.tokens import additive
from nameplate.prompts.text import (
    HEAD_WORDS,
    LEAD_WORDS,
    MINIMUM_WORDS,
    PERIOD_WORDS,
    PromptKey,
    compose,
    leading_choices,
    shared_prefix,
)

names = st.text(max_size=12)
keys = st.builds(
    PromptKey,
    nonce=names,
    trial=names,
    attempt=st.integers(0, 3),
    index=st.integers(0, 10**6),
    phase=st.sampled_from(["probe", "calibration", "warm-up", "measured"]),
)
lengths = st.integers(MINIMUM_WORDS, 900)
long_lengths = st.integers(PERIOD_WORDS, PERIOD_WORDS + 800)


def key_of(index: int) -> PromptKey:
    return PromptKey("nonce", "trial", 0, index)


@given(keys, lengths)
def test_a_text_has_the_asked_number_of_words(key: PromptKey, words: int) -> None:
    """A text has exactly the words it was asked for, and no white space at either end."""
    text = compose(key, words)
    assert len(text.split()) == words
    assert text == text.strip()


@given(keys, lengths, st.integers(0, 26))
def test_letters_come_on_top(key: PromptKey, words: int, letters: int) -> None:
    """Extra letters are single words, and change nothing before them."""
    text, longer = compose(key, words), compose(key, words, letters)
    assert len(longer.split()) == words + letters
    assert longer.startswith(text[:-1])


@given(st.lists(keys, min_size=2, max_size=6, unique=True), lengths)
def test_different_keys_begin_differently(some: list[PromptKey], words: int) -> None:
    """Texts of different keys differ within their first 64 characters, whichever field of the key differs."""
    heads = {compose(key, words)[:64] for key in some}
    assert len(heads) == len(some)


@given(keys, keys)
def test_no_two_keys_share_an_encoding(one: PromptKey, two: PromptKey) -> None:
    """Two keys have the same digest only if they are equal: no field can run over into the next."""
    assert (one.digest() == two.digest()) == (one == two)


def test_fields_do_not_run_together() -> None:
    """Moving a character from one field to the next gives another prompt."""
    assert PromptKey("ab", "c", 0, 1).digest() != PromptKey("a", "bc", 0, 1).digest()


def test_phases_of_one_trial_are_disjoint() -> None:
    """The same trial, attempt and index in another phase is another text from the beginning on."""
    phases = ["probe", "calibration", "warm-up", "measured"]
    texts = [compose(PromptKey("n", "t", 0, 5, phase), 300) for phase in phases]
    assert len({text[:64] for text in texts}) == len(phases)


@pytest.mark.parametrize("words", [MINIMUM_WORDS, 41, 200, 2_600])
def test_a_prefix_cache_finds_next_to_nothing(words: int) -> None:
    """Among 1,500 prompts hardly two share three first words, and none shares six: far less than any block."""
    openings = [
        tuple(compose(key_of(index), words).split()[:6]) for index in range(1_500 if words < 100 else 200)
    ]
    assert len(set(openings)) == len(openings)
    assert sum(count - 1 for count in Counter(opening[:3] for opening in openings).values()) <= 2


def test_the_head_is_words_without_a_common_beginning() -> None:
    """The very first word already differs: hundreds of first words appear among a thousand prompts."""
    firsts = Counter(compose(key_of(index), 60).split()[0] for index in range(1_000))
    assert len(firsts) > 350 and max(firsts.values()) <= 12


def test_a_text_is_a_function_of_its_key_in_every_process() -> None:
    """Another process with another hash seed writes the same text."""
    code = (
        "from nameplate.prompts.text import *; import sys;"
        "sys.stdout.write(compose(PromptKey('n', 't', 1, 2, 'warm-up'), 500, 3))"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=True, env={"PYTHONHASHSEED": "7"}
    )
    assert run.stdout.decode() == compose(PromptKey("n", "t", 1, 2, "warm-up"), 500, 3)


def test_a_known_text_stays_as_it_is() -> None:
    """The text of a key never changes between versions: earlier evidence must be recomputable."""
    text = compose(PromptKey("nonce", "trial", 0, 0), 120)
    assert hashlib.sha256(text.encode()).hexdigest()[:16] == "b3b2fc221c79be1e"


@settings(max_examples=30)
@given(st.text(max_size=5), lengths, st.integers(1, 6))
def test_all_texts_of_a_length_cost_the_same_but_for_their_head(salt: str, words: int, dearest: int) -> None:
    """On any tokenizer that splits on words, costs differ by at most what the freely drawn words can."""
    count = additive(salt, 1, dearest)
    costs = [count(compose(key_of(index), words)) for index in range(6)]
    assert max(costs) - min(costs) <= leading_choices(words) * (dearest - 1)


@settings(max_examples=10)
@given(st.text(max_size=5), long_lengths, st.integers(2, 6))
def test_long_texts_differ_by_their_first_word_at_most(salt: str, words: int, dearest: int) -> None:
    """From a period on only the first word, which has no space before it, may cost differently."""
    count = additive(salt, 1, dearest)
    costs = [count(compose(key_of(index), words)) for index in range(4)]
    assert leading_choices(words) == 1
    # The word costs something else without its space than it would have with it.
    assert max(costs) - min(costs) <= 2 * (dearest - 1)


@settings(max_examples=10)
@given(st.text(max_size=5), long_lengths)
def test_a_period_costs_the_same_each_time(salt: str, words: int) -> None:
    """Texts a period longer cost the same number of tokens more, again and again, but for the first word."""
    count = additive(salt, 1, 4)
    costs = [count(compose(key_of(1), words + periods * PERIOD_WORDS)) for periods in range(3)]
    assert abs((costs[2] - costs[1]) - (costs[1] - costs[0])) <= 4 * 3


def test_a_real_tokenizer_agrees(bpe: Tokenizer) -> None:
    """With a real byte-level BPE, twenty long prompts differ by no more than two or three tokens."""
    counts = [len(bpe.encode(compose(key_of(index), 3_000)).ids) for index in range(20)]
    assert max(counts) - min(counts) <= 3


def test_the_text_does_not_repeat_itself() -> None:
    """No sentence of a long text occurs twice, so that a model has no reason to loop."""
    sentences = [
        part.strip() for part in compose(key_of(0), 7_000).replace("\n", " ").split(".") if part.strip()
    ]
    repeats = len(sentences) - len(set(sentences))
    assert repeats <= len(sentences) // 100


def test_the_lists_make_whole_periods() -> None:
    """A period uses up every list a whole number of times; the words are unlike each other and short."""
    patterns = "".join(vocabulary.OPENERS + vocabulary.SENTENCES)
    for slot, pool in vocabulary.POOLS.items():
        assert len(set(pool)) == len(pool)
        assert patterns.count(f"{{{slot}}}") * vocabulary.ROUNDS_PER_PERIOD % len(pool) == 0
    assert all(3 <= len(noun) <= 7 and noun.isalpha() and noun.islower() for noun in vocabulary.NOUNS)
    assert len(vocabulary.SENTENCES) % len(vocabulary.OPENERS) == 0
    assert LEAD_WORDS < HEAD_WORDS


@pytest.mark.parametrize(
    ("words", "letters"), [(MINIMUM_WORDS - 1, 0), (-1, 0), (10**9, 0), (50, -1), (50, 27)]
)
def test_impossible_lengths_are_refused(words: int, letters: int) -> None:
    """Lengths that would not be unique, or would fill the memory, are refused."""
    with pytest.raises(ValueError):
        compose(key_of(0), words, letters)


@given(names, st.integers(MINIMUM_WORDS, 400))
def test_a_shared_prefix_is_one_text_and_tails_begin_a_line(nonce: str, words: int) -> None:
    """The prefix is a function of nonce and length, ends with an empty line, and is unlike any prompt's head."""
    prefix = shared_prefix(nonce, words)
    assert prefix == shared_prefix(nonce, words)
    assert prefix.endswith(".\n\n") and len(prefix.split()) == words
    assert prefix[:64] != compose(PromptKey(nonce, "", 0, 0), words)[:64]


@given(keys)
def test_seeds_fit_a_signed_64_bit_field(key: PromptKey) -> None:
    """A request's seed is a function of its key, and small enough for every server."""
    assert 0 <= key.seed() < 1 << 63
    assert key.seed() == key.seed()
