"""The simulated model's tokenizer, chat template and answers.

A token is at most six letters of a word, at most three digits, or one other visible character; white space
joins no token and is none. So token counts add up over words, and an answer's text has exactly as many tokens
as were generated.
"""

import hashlib
import re
from array import array
from collections.abc import Iterable, Sequence
from random import Random
from zlib import crc32

from nameplate.sim.words import WORDS

_PIECE = re.compile(r"[^\W\d_]{1,6}|\d{1,3}|[^\s\w]|_")
# One punctuation mark in some eleven tokens, about what English prose has.
_VOCABULARY: tuple[str, ...] = tuple(f" {word}" for word in WORDS) + (",", ".") * (len(WORDS) // 20)
# Of six letters each: a loop is one only when it is long enough, in characters.
_REPEATED = (" little", " winter", " window", " always", " closed")


_DRAWN = 50  # of a whole number of repetitions


# Longer words are not remembered, and all are forgotten when there are too many: what a client sends must not decide
# how much memory this takes.
_REMEMBERED_LENGTH = 32
_REMEMBERED_WORDS = 65_536


def _piece_id(piece: str) -> int:
    return crc32(piece.encode("utf-8", "surrogatepass"))


class _KnownWords(dict[str, bytes]):
    """Remember words' token ids, packed: joining bytes takes half of what chaining tuples of numbers does."""

    def __missing__(self, word: str) -> bytes:
        ids = array("I", map(_piece_id, _PIECE.findall(word))).tobytes()
        if len(word) <= _REMEMBERED_LENGTH:
            if len(self) >= _REMEMBERED_WORDS:
                self.clear()
            self[word] = ids
        return ids


_known_words = _KnownWords()


def tokenize(text: str) -> "array[int]":
    """Return the token ids of a text, 32 bits each."""
    tokens = array("I")
    tokens.frombytes(b"".join(map(_known_words.__getitem__, text.split())))
    return tokens


class ChatTemplate:
    """Wrap messages as a chat model does: a shared head, a marker around each message, a prompt to answer.

    `overhead_tokens` is what one user message alone is wrapped in; all of it but six tokens is the head.
    """

    _ROLE = 2  # a marker and the role's name
    _END = 1
    _ANSWER = 3

    def __init__(self, overhead_tokens: int) -> None:
        head = overhead_tokens - self._ROLE - self._END - self._ANSWER
        if head < 0:
            raise ValueError("a chat template takes at least six tokens")
        self._head = array("I", (_piece_id(f"<head {index}>") for index in range(head)))
        self._answer = array("I", (_piece_id(f"<answer {index}>") for index in range(self._ANSWER)))

    def apply(self, messages: Iterable[tuple[str, str]]) -> "array[int]":
        """Return the prompt's token ids for (role, text) pairs."""
        tokens = self._head[:]
        for role, text in messages:
            tokens.append(_piece_id("<start>"))
            tokens.append(_piece_id(f"<role {role}>"))
            tokens.extend(tokenize(text))
            tokens.append(_piece_id("<end>"))
        tokens.extend(self._answer)
        return tokens


def answer_seed(prompt: Sequence[int], salt: int) -> int:
    """Derive an answer's seed from the prompt and a salt (0 when greedy), the same in every process."""
    digest = hashlib.blake2b(digest_size=8, salt=salt.to_bytes(16, "little", signed=True))
    digest.update(prompt if isinstance(prompt, array) else array("I", prompt))
    return int.from_bytes(digest.digest(), "little")


class Answer:
    """Produce an answer piece by piece; how it is split does not change the text."""

    __slots__ = ("_at", "_looping", "_random", "_words")

    def __init__(self, seed: int, *, looping: bool = False) -> None:
        self._random = Random(seed)
        self._looping = looping
        self._words = self._draw()
        if not looping:
            self._words[0] = self._words[0].lstrip()
        self._at = 0

    def next(self, tokens: int) -> str:
        """Return the text of the next `tokens` tokens."""
        first = self._at
        self._at = end = first + tokens
        while end > len(self._words):
            del self._words[:first]
            self._words += self._draw()
            first, self._at = 0, end - first
            end = self._at
        return self._words[first] if tokens == 1 else "".join(self._words[first:end])

    def _draw(self) -> list[str]:
        """Draw many at once: one by one would cost more than all else that is done for a token."""
        if self._looping:
            return list(_REPEATED) * (_DRAWN // len(_REPEATED))
        return self._random.choices(_VOCABULARY, k=_DRAWN)
