"""How many tokens a composed prompt of any length costs: counted at a few lengths, and between them on straight lines.

The multiset of a text's words is a function of their number alone, so one count speaks for all prompts of a length; and
from one period of the text on, further periods cost the same each.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Generator, Sequence
from typing import Final

from nameplate.contract.errors import PromptRefused
from nameplate.prompts.calibration import ASSUMED_TEMPLATE_TOKENS, CALIBRATION_PHASE, Ask
from nameplate.prompts.text import (
    DEFAULT_TOKENS_PER_WORD,
    MINIMUM_WORDS,
    PERIOD_WORDS,
    PromptKey,
    compose,
)

# Short texts change with each sentence that fits, long ones hardly: the steps between counts grow with the length.
_STEPS: Final = (
    MINIMUM_WORDS, 20, 30, 40, 60, 80, 120, 160, 240, 320, 480, 640, 960, 1280, 1850, PERIOD_WORDS, 2 * PERIOD_WORDS,
)  # fmt: skip
_ASSUMED: Final = (
    (0, ASSUMED_TEMPLATE_TOKENS),
    (10_000, ASSUMED_TEMPLATE_TOKENS + round(10_000 * DEFAULT_TOKENS_PER_WORD)),
)


class Lengths:
    """Answer how many words a prompt of so many tokens has, template included, by what was counted.

    `points` are (words, tokens), ascending in both; without any the usual cost of English is assumed.
    """

    def __init__(self, points: Sequence[tuple[int, int]]) -> None:
        self.counted = bool(points)
        self._points = tuple(points) if len(points) > 1 else _ASSUMED
        self._words = [words for words, _ in self._points]
        self._tokens = [tokens for _, tokens in self._points]

    @property
    def template_tokens(self) -> int:
        """Return what a prompt costs beside its words, by the line through the two shortest counts."""
        return max(0, round(self._at(self._words, self._tokens, 0.0)))

    @property
    def floor_tokens(self) -> int:
        """Return what the shortest prompt costs that is still unique."""
        return round(self._at(self._words, self._tokens, MINIMUM_WORDS))

    def words_for(self, tokens: float) -> int:
        """Return the number of words for which the fewest tokens are missing or too many; it may be below 1."""
        return round(self._at(self._tokens, self._words, tokens))

    @staticmethod
    def _at(xs: Sequence[int], ys: Sequence[int], x: float) -> float:
        place = min(max(bisect_right(xs, x), 1), len(xs) - 1)
        (x0, x1), (y0, y1) = xs[place - 1 : place + 1], ys[place - 1 : place + 1]
        return y0 + (y1 - y0) * (x - x0) / (x1 - x0)


def count_lengths(most_tokens: int, *, nonce: str) -> Generator[Ask, int | None, tuple[tuple[int, int], ...]]:
    """Ask for the counts that prompts of up to `most_tokens` need; empty where the server counts nothing.

    PromptRefused where its counts do not grow with the text.
    """
    points: list[tuple[int, int]] = []
    for number, words in enumerate(_STEPS):
        key = PromptKey(nonce, "trace lengths", 0, number, CALIBRATION_PHASE)
        tokens = yield Ask(key, words, 0, compose(key, words), "length")
        if not tokens:
            return ()
        if points and tokens <= points[-1][1]:
            seen = ", ".join(f"{w} words: {t}" for w, t in (*points, (words, tokens)))
            raise PromptRefused(
                f"The server's prompt token counts do not grow with the prompt ({seen}).",
                why="A trace's prompts are as long as it says by these counts.",
                hint="Look whether the server truncates prompts, or counts something else in usage.prompt_tokens.",
            )
        points.append((words, tokens))
        # The line through the last two counts leads a little further.
        if tokens >= most_tokens and len(points) > 1:
            break
    return tuple(points)
