"""Token counts add up, and answers are what was generated."""

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nameplate.sim import tokens
from nameplate.sim.tokens import Answer, ChatTemplate, answer_seed, tokenize
from nameplate.sim.words import WORDS


def test_pieces_are_six_letters_three_digits_or_one_mark() -> None:
    """The rule that callers may rely on, in one example."""
    assert len(tokenize("Extraordinary 1234567, straße_x!")) == 3 + 3 + 1 + 1 + 1 + 1 + 1


@given(st.text(), st.text())
def test_counts_add_over_words(left: str, right: str) -> None:
    """Texts joined by a blank have as many tokens as both together."""
    assert len(tokenize(f"{left} {right}")) == len(tokenize(left)) + len(tokenize(right))


@given(st.text())
def test_every_visible_character_counts(text: str) -> None:
    """No text of visible characters is free, and ids fit in 32 bits."""
    tokens = tokenize(text)
    assert bool(tokens) == bool(text.strip() and any(not c.isspace() for c in text))
    assert all(0 <= token < 2**32 for token in tokens)


def test_more_words_than_are_remembered_change_no_ids(monkeypatch: pytest.MonkeyPatch) -> None:
    """A flood of new words makes the tokenizer forget, not grow, and the ids stay the same."""
    text = " ".join(f"word{number}x" for number in range(200))
    known = tokens._KnownWords()
    expected = tokenize(text)
    monkeypatch.setattr(tokens, "_REMEMBERED_WORDS", 16)
    monkeypatch.setattr(tokens, "_known_words", known)
    assert tokenize(text) == expected
    assert len(known) <= 16


@given(st.integers(0, 2**63), st.lists(st.integers(1, 9), min_size=1, max_size=20), st.booleans())
def test_an_answer_has_as_many_tokens_as_were_generated(seed: int, parts: list[int], looping: bool) -> None:
    """However an answer is split into steps, its text is the same and its tokens are counted right."""
    answer = Answer(seed, looping=looping)
    text = "".join(answer.next(part) for part in parts)
    assert text.strip() == Answer(seed, looping=looping).next(sum(parts)).strip()
    assert len(tokenize(text)) == sum(parts)


def test_vocabulary_is_one_token_a_word() -> None:
    """Every word is a single token, and there are no duplicates."""
    assert all(len(tokenize(word)) == 1 for word in WORDS)
    assert len(set(WORDS)) == len(WORDS) > 500


def test_unlike_prompts_get_unlike_answers() -> None:
    """A changed token or another salt changes the answer; the same prompt and salt do not."""
    seeds = {answer_seed([1, 2, index], 0) for index in range(1_000)} | {answer_seed([1, 2, 3], 5)}
    assert len(seeds) == 1_001
    assert answer_seed([1, 2, 3], 5) == answer_seed([1, 2, 3], 5)
    assert len({Answer(seed).next(12) for seed in seeds}) == 1_001


def test_ids_and_answers_are_the_same_in_every_process() -> None:
    """Nothing depends on Python's randomised string hashes."""
    code = "from nameplate.sim.tokens import *; print(tokenize('hello world'), answer_seed([1, 2], 3))"
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code], env={"PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in ("1", "2")
    }
    assert outputs == {f"{tokenize('hello world')} {answer_seed([1, 2], 3)}\n".encode()}


def test_a_template_adds_its_overhead_and_shares_its_head() -> None:
    """One user message costs the stated overhead; unlike prompts share the head and no more."""
    template = ChatTemplate(30)
    first = template.apply([("user", "alpha beta")])
    second = template.apply([("user", "gamma delta")])
    assert len(first) == 32
    same = next(index for index, (a, b) in enumerate(zip(first, second, strict=True)) if a != b)
    assert same == 30 - 6 + 2
