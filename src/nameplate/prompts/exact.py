"""Exact lengths, where the server's `tokenizer.json` is at hand. Needs the `tokenizers` package, an extra."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Final

from nameplate.contract.errors import CallerError
from nameplate.prompts.text import (
    DEFAULT_TOKENS_PER_WORD,
    MAXIMUM_LETTERS,
    MAXIMUM_WORDS,
    MINIMUM_WORDS,
    PromptKey,
    compose,
)

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_COARSE_STEPS: Final = 12
_FINE_WORDS: Final = 12
"""So many lengths just below the wanted one are tried, each with all numbers of letters that could fit."""


class LocalTokenizer:
    """Count tokens, and write prompts of an exact count, with a local tokenizer.

    Counts are those of the user text alone: no special tokens, no chat template.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._tokens_per_word = DEFAULT_TOKENS_PER_WORD
        self._known_words: dict[int, int] = {}

    @classmethod
    def open(cls, path: Path) -> LocalTokenizer:
        """Load a `tokenizer.json`. Raises `CallerError` if the package is missing or the file is none."""
        try:
            from tokenizers import Tokenizer
        except ImportError:
            raise CallerError(
                "A local tokenizer needs the package `tokenizers`, which is not installed.",
                why="Without it lengths are calibrated by the server's own counts.",
                hint="Run pip install 'nameplate[tokenizer]', or leave the tokenizer out.",
            ) from None
        try:
            return cls(Tokenizer.from_str(path.read_text(encoding="utf-8")))
        except OSError as error:
            raise CallerError(f"The tokenizer {path} cannot be read: {error.strerror}.") from None
        except Exception as error:  # the package raises plain Exception for every malformed file
            raise CallerError(
                f"{path} is not a tokenizer file: {error}.",
                hint="Give the tokenizer.json that lies beside the model.",
            ) from None

    def count(self, text: str) -> int:
        """Count the tokens of a text."""
        return len(self._tokenizer.encode(text, add_special_tokens=False).ids)

    def compose(self, key: PromptKey, tokens: int) -> str:
        """Write the prompt of a key with exactly `tokens` tokens.

        Raises `CallerError` if that is shorter than the shortest unique prompt, or if no arrangement has exactly
        that many.
        """
        words = self._words_below(key, tokens)
        for fewer in range(_FINE_WORDS):
            if words - fewer < MINIMUM_WORDS:
                break
            text = self._with_letters(key, words - fewer, tokens)
            if text is not None:
                self._known_words[tokens] = words
                return text
        shortest = self.count(compose(key, MINIMUM_WORDS))
        raise CallerError(
            f"No prompt of exactly {tokens} tokens can be written with this tokenizer.",
            why=f"The shortest unique one has {shortest}." if tokens < shortest else "",
            hint="Ask for another length, or leave the tokenizer out: lengths are then calibrated with the server.",
        )

    def _words_below(self, key: PromptKey, tokens: int) -> int:
        """Find a number of words that costs the wanted tokens or a little less."""
        # All prompts of a length cost nearly the same: what was found for the last one needs no search again.
        known = self._known_words.get(tokens)
        if known is not None:
            return known
        words = _clamp(round(tokens / self._tokens_per_word))
        low, high = (0, 0), (MAXIMUM_WORDS, 0)
        for _ in range(_COARSE_STEPS):
            cost = self.count(compose(key, words))
            if cost <= tokens:
                low = max(low, (words, cost))
            else:
                high = min(high, (words, cost))
            if tokens - MAXIMUM_LETTERS // 2 < low[1] or high[0] - low[0] <= 1:
                break
            # Before the length is enclosed the ratio leads there; then only what is enclosed counts, for the words
            # that are added last may cost more than the average.
            enclosed = low[1] and high[1]
            slope = (high[1] - low[1]) / (high[0] - low[0]) if enclosed else max(cost / words, 0.1)
            base, base_cost = low if low[1] else (words, cost)
            step = math.floor((tokens - 1 - base_cost) / slope)
            words = _clamp(min(max(base + step, low[0] + 1), high[0] - 1))
            self._tokens_per_word = max(cost / words, 0.1)
        return low[0] or MINIMUM_WORDS

    def _with_letters(self, key: PromptKey, words: int, tokens: int) -> str | None:
        letters, tried = 0, set[int]()
        while letters not in tried:
            tried.add(letters)
            text = compose(key, words, letters)
            gap = tokens - self.count(text)
            if gap == 0:
                return text
            # A letter costs one token, or two where the vocabulary is bytes: then half the gap is right.
            step = gap if len(tried) % 2 else math.copysign(max(1, abs(gap) // 2), gap)
            letters = min(max(letters + int(step), 0), MAXIMUM_LETTERS)
        return None


def _clamp(words: int) -> int:
    return min(max(words, MINIMUM_WORDS), MAXIMUM_WORDS)
