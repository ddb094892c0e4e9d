"""The prompts of a recorded trace: each as long as its row says, beginning with the text of the blocks it names.

The text of a block is a function of the study's nonce and the block's id, and is cut at a place that is a function of
where in the prompt the block stands. So requests whose rows begin with the same blocks begin with the same text, to the
letter, and are different from the first word on behind it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Generator
from functools import lru_cache
from typing import Final

from nameplate.contract.errors import CallerError, PromptRefused
from nameplate.contract.trace import TraceRow
from nameplate.prompts.calibration import CALIBRATION_PHASE, Ask
from nameplate.prompts.lengths import Lengths
from nameplate.prompts.text import (
    DEFAULT_TOKENS_PER_WORD,
    MAXIMUM_WORDS,
    MINIMUM_WORDS,
    ORDERED_WORDS,
    PromptKey,
    compose,
    reference,
)

BLOCK_PHASE: Final = "trace block"
LEAST_BLOCK_WORDS: Final = 6
"""Six words from 512 tell blocks apart, 54 bits; of shorter ones two could have the same text."""

_KEPT_BLOCKS: Final = 4096
# A block's cost is the mean over so many tokens of blocks; where their words are drawn and differ, over more.
_ASKED_TOKENS: Final = 512
_ASKED_IF_DRAWN: Final = 4096
_TRIES: Final = 6
_PLAUSIBLE: Final = (0.3, 12.0)

_WORD: Final = re.compile(r"\S+\s*")

Costs = tuple[tuple[int, float], ...]
"""(words, tokens) of a block's text: of one length, or of two between which the wanted tokens lie."""


class BlockText:
    """Write what stands for a row of blocks of `block_tokens`; `costs` say how many words make so many tokens."""

    def __init__(self, nonce: str, block_tokens: int, costs: Costs, phase: str = BLOCK_PHASE) -> None:
        self._nonce = nonce
        self._phase = phase
        self._block_tokens = block_tokens
        self._low, self._high = costs[0], costs[-1]
        between = self._high[1] - self._low[1]
        # Which share of the blocks is written in the longer of the two lengths.
        self._share = min(max((block_tokens - self._low[1]) / between, 0.0), 1.0) if between else 0.0
        self._words_of = lru_cache(maxsize=_KEPT_BLOCKS)(self._compose)

    def _compose(self, block: int, words: int) -> tuple[str, ...]:
        key = PromptKey(self._nonce, "", 0, block, self._phase)
        return tuple(_WORD.findall(reference(key, max(words, MINIMUM_WORDS))))

    def tokens(self, blocks: int) -> float:
        """Return what so many whole blocks cost."""
        longer = round(blocks * self._share)
        return longer * self._high[1] + (blocks - longer) * self._low[1]

    def text(self, blocks: tuple[int, ...], tokens: float) -> str:
        """Return the text of the blocks, cut after so many tokens."""
        parts = []
        for number, block in enumerate(blocks):
            # Which length a block has is a function of where it stands, so that those who share it share it whole.
            longer = round((number + 1) * self._share) - round(number * self._share)
            words, cost = self._high if longer else self._low
            left = tokens - self.tokens(number)
            sent = words if left >= cost else round(left * words / cost)
            if sent <= 0:
                break
            parts.append("".join(self._words_of(block, words)[:sent]).rstrip())
        return " ".join(parts)


class ReplayText:
    """Write a trace's prompts; a pure function of nonce, counts, row and key."""

    def __init__(self, nonce: str, lengths: Lengths, block_tokens: int | None, block_costs: Costs) -> None:
        self._lengths = lengths
        size = block_tokens or 1
        self._blocks = BlockText(nonce, size, block_costs or ((1, float(size)),))

    def text(self, row: TraceRow, key: PromptKey) -> str:
        """Return the prompt of a row; `key` makes what is the request's own unlike every other's."""
        if not row.blocks:
            return compose(key, _bounded(self._lengths.words_for(row.input_tokens)))
        # The template stands before the text and is part of the input's length, so the text is shorter by it.
        tokens = max(1, row.input_tokens - self._lengths.template_tokens)
        shared = self._blocks.text(row.blocks, tokens)
        own = round(tokens - self._blocks.tokens(len(row.blocks)))
        if own > 0:
            return f"{shared}\n\n{self._own(key, own)}"
        return shared or _few(key, 1)

    def _own(self, key: PromptKey, tokens: int) -> str:
        words = self._lengths.words_for(tokens + self._lengths.template_tokens)
        return compose(key, _bounded(words)) if words >= MINIMUM_WORDS else _few(key, max(1, words))


def _few(key: PromptKey, words: int) -> str:
    """Return the first words of the shortest prompt: fewer than make it unique."""
    return "".join(_WORD.findall(compose(key, MINIMUM_WORDS))[:words]).rstrip()


def _bounded(words: int) -> int:
    return min(max(words, MINIMUM_WORDS), MAXIMUM_WORDS)


def count_blocks(block_tokens: int, *, nonce: str) -> Generator[Ask, int | None, Costs]:
    """Find how many words stand for a block, by the server's counts of one block and of several.

    CallerError where blocks are too short to be told apart, PromptRefused where the counts make no sense.
    """
    words = max(1, round(block_tokens / DEFAULT_TOKENS_PER_WORD))
    costs: dict[int, float] = {}
    for number in range(_TRIES):
        cost = yield from _cost_of(block_tokens, words, number, nonce)
        if cost is None:
            return _told_apart(block_tokens, ((words, float(block_tokens)),))
        costs[words] = cost
        low = max((w for w, c in costs.items() if c <= block_tokens), default=None)
        high = min((w for w, c in costs.items() if c > block_tokens), default=None)
        if cost == block_tokens or (low is not None and high is not None and high - low <= 1):
            break
        # The next length is where the last one's cost a word leads, and nearer to it than what was counted before.
        words = max(
            1, words + (round((block_tokens - cost) * words / cost) or (1 if cost < block_tokens else -1))
        )
        if words in costs and low is not None and high is not None:
            words = (low + high) // 2
        if words in costs:
            break
    ordered = sorted(costs.items(), key=lambda pair: abs(pair[1] - block_tokens))
    below = [pair for pair in ordered if pair[1] <= block_tokens][:1]
    above = [pair for pair in ordered if pair[1] > block_tokens][:1]
    return _told_apart(block_tokens, tuple(below + above))


def _cost_of(
    block_tokens: int, words: int, number: int, nonce: str
) -> Generator[Ask, int | None, float | None]:
    """Count what a block of so many words costs; None where the server counts nothing."""
    asked = _ASKED_IF_DRAWN if words < ORDERED_WORDS else _ASKED_TOKENS
    more = max(1, asked // block_tokens)
    # Others each time: what was asked before may be cached, and is no measure then.
    first = number * (more + 2)
    text = BlockText(nonce, block_tokens, ((words, float(block_tokens)),), CALIBRATION_PHASE)
    counts = []
    for at, blocks in ((first, 1), (first + 1, 1 + more)):
        key = PromptKey(nonce, "trace blocks", 0, at, CALIBRATION_PHASE)
        tokens = yield Ask(key, words, 0, text.text(tuple(range(at, at + blocks)), math.inf), "length")
        if not tokens:
            return None
        counts.append(tokens)
    cost = (counts[1] - counts[0]) / more
    if not _PLAUSIBLE[0] <= cost / words <= _PLAUSIBLE[1]:
        raise PromptRefused(
            f"The server's prompt token counts do not grow with the prompt ({counts[0]}, then {counts[1]}).",
            why="A trace's shared blocks are as long as it says by these counts.",
            hint="Look whether the server truncates prompts, or counts something else in usage.prompt_tokens.",
        )
    return cost


def _told_apart(block_tokens: int, costs: Costs) -> Costs:
    words = min(words for words, _ in costs)
    if words < LEAST_BLOCK_WORDS:
        raise CallerError(
            f"A block of {block_tokens} tokens is {words} words here, too few to tell two blocks apart.",
            why="Prompts would share more than the trace says.",
            hint=f"Merge blocks in the trace, so that each has {LEAST_BLOCK_WORDS} words at least.",
        )
    return costs
