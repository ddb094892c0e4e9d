"""Meaningful, varied English of a wanted length, without a tokenizer.

Nearly all tokenizers split a text into words before anything else, so the cost of a text is the sum over its
words. Therefore the multiset of words and sentence patterns is a function of the *number of words* alone, and
each prompt is another arrangement of it: all prompts of one length cost the same number of tokens, on any such
tokenizer, without knowing it. What may differ is the head: the first word stands without a space before it,
and in a text too short to hold the whole noun list once, the leading words are drawn from outside the multiset.

A text opens with twelve nouns, drawn from 512, in an order of its own: about 100 bits in the first 64
characters, so no prefix cache finds more than a word or two of another prompt.
"""

from __future__ import annotations

import hashlib
import random
import re
from functools import lru_cache
from itertools import chain
from typing import Final, TypeVar

import msgspec

from nameplate.prompts.vocabulary import (
    NOUNS,
    OPENERS,
    POOLS,
    ROUNDS_PER_PERIOD,
    SENTENCES,
    SENTENCES_PER_PARAGRAPH,
)

MINIMUM_WORDS: Final = 10
"""Below this the first 64 characters cannot hold 64 bits of difference."""

HEAD_WORDS: Final = 12
"""Nouns of at most seven letters: the first 64 characters hold at least eight of them."""

LEAD_WORDS: Final = 4
"""So many leading words come from the whole noun list even where the text is too short to use it up: 36 bits."""

ORDERED_WORDS: Final = 14
"""So many words have more orders than would agree by chance: 14! is 36 bits."""

MAXIMUM_LETTERS: Final = 26
"""Single letters that may be appended to adjust a length by less than a word."""

MAXIMUM_WORDS: Final = 4_000_000
"""Far above any context window; a bound on the memory of one call."""

DEFAULT_TOKENS_PER_WORD: Final = 1.15
"""One token a word and a punctuation mark every seventh word: what large English vocabularies cost."""

_LETTERS: Final = "abcdefghijklmnopqrstuvwxyz"
_T = TypeVar("_T")


class PromptKey(msgspec.Struct, frozen=True, order=True):
    """Name one prompt: everything that its text is a function of, beside its length.

    The phase (probe, calibration, warm-up, measured, ...) is part of the key, so the phases' prompts are disjoint
    by construction; so are those of two trials, of two attempts at a trial, and of two nonces.
    """

    nonce: str
    trial: str
    attempt: int
    index: int
    phase: str = "measured"

    def digest(self) -> bytes:
        """Return 32 bytes that stand for the key: SHA-256 over an encoding that no two keys share."""
        fields = [self.nonce, self.trial, self.attempt, self.index, self.phase]
        return hashlib.sha256(b"nameplate prompt 1\0" + msgspec.json.encode(fields)).digest()

    def seed(self) -> int:
        """Return a seed of 63 bits for the request's `seed` field, not linked to the text's arrangement."""
        return int.from_bytes(hashlib.sha256(b"seed\0" + self.digest()).digest()[:8], "big") >> 1


class _Closing(msgspec.Struct, frozen=True):
    """The end of a text: a pattern with noun slots, and where the words that make up the length go."""

    pattern: str
    nouns: int
    words: int


def _closing(pattern: str) -> _Closing:
    return _Closing(
        pattern=pattern.replace("{n}", "%s"),
        nouns=pattern.count("{n}"),
        words=len(pattern.split()) - 1,
    )


_STORY: Final = _closing(
    "Now write a long and varied story about the {n} and the {n}. Never repeat a sentence, and use these words: {pads}."
)
_REFERENCE: Final = _closing("Keep the {n} and the {n} in mind. These words matter: {pads}.")


class _Sentence(msgspec.Struct, frozen=True):
    pattern: str
    slots: str
    words: int


def _sentence(pattern: str) -> _Sentence:
    return _Sentence(
        pattern=re.sub(r"\{.\}", "%s", pattern),
        slots="".join(re.findall(r"\{(.)\}", pattern)),
        words=len(pattern.split()),
    )


_OPENERS: Final = tuple(map(_sentence, OPENERS))
_SENTENCES: Final = tuple(map(_sentence, SENTENCES))
_PARAGRAPH: Final = 1 + SENTENCES_PER_PARAGRAPH

PERIOD_WORDS: Final = ROUNDS_PER_PERIOD * sum(sentence.words for sentence in _OPENERS + _SENTENCES)
"""Texts that differ by a whole period differ by the same number of tokens each time (both above one period)."""


class _Plan(msgspec.Struct, frozen=True):
    """What a text of a length is made of, before it is arranged."""

    openers: tuple[int, ...]
    sentences: tuple[int, ...]
    counts: tuple[tuple[str, int], ...]
    head: int
    lead: int
    pads: int


@lru_cache(maxsize=256)
def _plan(words: int, closing: _Closing) -> _Plan:
    """Spend `words`: head, whole sentences in a fixed cycle while they fit, the rest as single nouns."""
    left = words - HEAD_WORDS - closing.words - 1
    if left < 0:
        return _Plan(
            openers=(),
            sentences=(),
            counts=(("n", words),),
            head=words,
            lead=min(words, 2 * LEAD_WORDS),
            pads=0,
        )
    openers: list[int] = []
    sentences: list[int] = []
    counts = dict.fromkeys(POOLS, 0)
    position = 0
    while True:
        opens = position % _PARAGRAPH == 0
        number = len(openers) % len(_OPENERS) if opens else len(sentences) % len(_SENTENCES)
        sentence = (_OPENERS if opens else _SENTENCES)[number]
        if sentence.words > left:
            break
        left -= sentence.words
        (openers if opens else sentences).append(number)
        for slot in sentence.slots:
            counts[slot] += 1
        position += 1
    counts["n"] += HEAD_WORDS + closing.nouns + left + 1
    return _Plan(
        openers=tuple(openers),
        sentences=tuple(sentences),
        counts=tuple(counts.items()),
        head=HEAD_WORDS,
        lead=LEAD_WORDS,
        pads=left + 1,
    )


class _Deck:
    """Shuffle with `random()` alone, the one method whose sequence Python promises to keep for a seed."""

    def __init__(self, digest: bytes) -> None:
        self._random = random.Random(int.from_bytes(digest, "big")).random

    def shuffle(self, items: list[_T]) -> list[_T]:
        rand = self._random
        for i in range(len(items) - 1, 0, -1):
            j = int(rand() * (i + 1))
            items[i], items[j] = items[j], items[i]
        return items

    def draw(self, pool: tuple[str, ...]) -> str:
        return pool[int(self._random() * len(pool))]


def _deal(deck: _Deck, pool: tuple[str, ...], count: int) -> list[str]:
    """Return the first `count` words of the endlessly repeated pool, shuffled."""
    rounds, rest = divmod(count, len(pool))
    return deck.shuffle(list(pool * rounds + pool[:rest]))


def _nouns(deck: _Deck, count: int, lead: int) -> list[str]:
    """Deal nouns whose first `lead` come from the whole list, from inside the multiset wherever it holds the list."""
    if count >= len(NOUNS):
        return _deal(deck, NOUNS, count)
    rest = _deal(deck, NOUNS, count - lead)
    return [deck.draw(NOUNS) for _ in range(lead)] + rest


def _arrange(deck: _Deck, words: int, letters: int, closing: _Closing, lead: int | None = None) -> str:
    if not MINIMUM_WORDS <= words <= MAXIMUM_WORDS:
        raise ValueError(f"a prompt has {MINIMUM_WORDS} to {MAXIMUM_WORDS} words, not {words}")
    if not 0 <= letters <= MAXIMUM_LETTERS:
        raise ValueError(f"a prompt has 0 to {MAXIMUM_LETTERS} extra letters, not {letters}")
    plan = _plan(words, closing)
    counts = dict(plan.counts)
    nouns = _nouns(deck, counts.pop("n"), plan.lead if lead is None else lead)
    head = nouns[: plan.head]
    tail_letters = list(_LETTERS[:letters])
    if not plan.pads:
        return " ".join(head + tail_letters) + "."
    decks = {slot: iter(_deal(deck, POOLS[slot], count)) for slot, count in counts.items()}
    decks["n"] = iter(nouns[plan.head :])
    openers = [_OPENERS[i] for i in deck.shuffle(list(plan.openers))]
    sentences = [_SENTENCES[i] for i in deck.shuffle(list(plan.sentences))]
    paragraphs = []
    slots: list[str] = []
    for number, opener in enumerate(openers):
        start = number * SENTENCES_PER_PARAGRAPH
        paragraph = [opener, *sentences[start : start + SENTENCES_PER_PARAGRAPH]]
        paragraphs.append(" ".join([sentence.pattern for sentence in paragraph]))
        slots.extend([sentence.slots for sentence in paragraph])
    fill = {slot: words_of.__next__ for slot, words_of in decks.items()}
    filled = [fill[slot]() for slot in chain.from_iterable(slots)]
    ending = [fill["n"]() for _ in range(closing.nouns)]
    pads = [fill["n"]() for _ in range(plan.pads)]
    last = closing.pattern.replace("{pads}", "%s") % (*ending, " ".join(pads + tail_letters))
    return "\n\n".join(
        [" ".join(head) + ".", "\n\n".join(paragraphs) % tuple(filled), last]
        if paragraphs
        else [" ".join(head) + ".", last]
    )


def compose(key: PromptKey, words: int, letters: int = 0) -> str:
    """Write the prompt of a key: `words` words, then `letters` single letters as a fine adjustment.

    Raises `ValueError` for fewer than `MINIMUM_WORDS` words, or letters outside 0..`MAXIMUM_LETTERS`. The text
    begins and ends without white space, so a chat template that trims leaves it as it is.
    """
    return _arrange(_Deck(key.digest()), words, letters, _STORY)


def shared_prefix(nonce: str, words: int, letters: int = 0) -> str:
    """Write the part that all prompts of a study share; a prompt is this text followed by a composed one.

    It ends with an empty line, so the tail's first word stands at the beginning of a line, and is unique from
    there on.
    """
    key = PromptKey(nonce=nonce, trial="", attempt=0, index=0, phase="shared prefix")
    return _arrange(_Deck(key.digest()), words, letters, _REFERENCE) + "\n\n"


def reference(key: PromptKey, words: int) -> str:
    """Write a text to refer to, that asks for nothing: what stands for a block that several prompts begin with.

    From 14 words on only their order differs, 36 bits of it, so that all such texts of a length cost the same.
    """
    lead = 0 if words >= ORDERED_WORDS else None
    return _arrange(_Deck(key.digest()), words, 0, _REFERENCE, lead)


def leading_choices(words: int) -> int:
    """Count the words of a text whose cost may differ from prompt to prompt of this length.

    One in long texts: the first, which has no space before it.
    """
    plan = _plan(words, _STORY)
    return 1 if dict(plan.counts)["n"] >= len(NOUNS) else plan.lead
