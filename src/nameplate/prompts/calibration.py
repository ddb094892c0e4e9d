"""Find how many words make the wanted number of tokens, by the server's own count.

A generator that asks and never does: it yields texts, and is sent the number of prompt tokens the server counts
for each (template included) from wherever the driver gets it. Two facts make few asks enough. All texts of a
length cost the same, so one count speaks for all of them. And texts that differ by `PERIOD_WORDS` differ by the
same number of tokens each time, so a long prompt's cost is known from two short ones before it is ever sent.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator
from typing import Final, Literal

import msgspec

from nameplate.contract.errors import CallerError, NameplateError, PromptRefused
from nameplate.prompts.text import (
    DEFAULT_TOKENS_PER_WORD,
    MAXIMUM_LETTERS,
    MAXIMUM_WORDS,
    MINIMUM_WORDS,
    PERIOD_WORDS,
    PromptKey,
    compose,
    leading_choices,
    shared_prefix,
)

CALIBRATION_PHASE: Final = "calibration"
TOLERANCE_TOKENS: Final = 2
MAXIMUM_ASKS: Final = 5
TAIL_WORDS: Final = 40
"""Length of the unique tail that stands behind a shared prefix while that is measured."""

ASSUMED_TEMPLATE_TOKENS: Final = 16
"""What a plain chat template puts around one user message: role marks, begin and end marks."""

ASSUMED_ERROR: Final = 0.25
"""Large English vocabularies cost 1.05 to 1.4 tokens a word with its punctuation; small ones cost more."""

_SLOPES: Final = (0.3, 12.0)


class Ask(msgspec.Struct, frozen=True):
    """Ask for the server's token count of one prompt; every ask has a text of its own."""

    key: PromptKey
    words: int
    letters: int
    text: str
    purpose: Literal["length", "spread", "tail"]


class Count(msgspec.Struct, frozen=True):
    """Hold one answer of the server."""

    words: int
    letters: int
    tokens: int


class Calibrated(msgspec.Struct, frozen=True):
    """Say how long a composed text must be, and how sure that is.

    `measured_tokens` is the mean count at this length, None where the server counted nothing (`source` is then
    `assumed`). `template_tokens` is what the server adds to every prompt, where the asks could tell.
    `spread_tokens` is the expected difference between the longest and the shortest of many such prompts.
    """

    words: int
    letters: int
    target_tokens: int
    measured_tokens: int | None
    template_tokens: int | None
    tokens_per_word: float
    spread_tokens: int
    source: Literal["counted", "assumed"]
    counts: tuple[Count, ...] = ()

    @property
    def expected_tokens(self) -> tuple[int, int]:
        """Return the range within which the counts of such prompts are expected."""
        middle = self.target_tokens if self.measured_tokens is None else self.measured_tokens
        if self.source == "assumed":
            return middle - self.spread_tokens // 2, middle + self.spread_tokens // 2
        seen = [c.tokens for c in self.counts if (c.words, c.letters) == (self.words, self.letters)]
        # A count that was seen may be the longest or the shortest of them all.
        low, high = min(seen, default=middle), max(seen, default=middle)
        return min(low, high - self.spread_tokens), max(high, low + self.spread_tokens)

    def words_for(self, tokens: int) -> int:
        """Estimate the words of a prompt of another length, on the same server; never below the minimum."""
        base = self.target_tokens if self.measured_tokens is None else self.measured_tokens
        return _clamp(self.words + round((tokens - base) / self.tokens_per_word))


class Uncalibrated(msgspec.Struct, frozen=True):
    """Say why a length cannot be reached; `floor_tokens` is the shortest possible prompt where that is known."""

    reason: Literal["too_short", "not_converged"]
    target_tokens: int
    floor_tokens: int | None
    counts: tuple[Count, ...]

    def error(self) -> NameplateError:
        """Return it as an error for people."""
        if self.reason == "too_short":
            return CallerError(
                f"An input of {self.target_tokens} tokens is too short: the shortest prompt that is still unique "
                f"comes to {self.floor_tokens} tokens here, chat template included.",
                why="Shorter prompts could share their beginning, and the prefix cache would be measured instead.",
                hint=f"Ask for an input of at least {(self.floor_tokens or 0) + TOLERANCE_TOKENS} tokens.",
            )
        seen = ", ".join(f"{count.words} words: {count.tokens}" for count in self.counts)
        return PromptRefused(
            f"The server's prompt token counts do not lead to {self.target_tokens} tokens ({seen}).",
            why="The input length is part of the contract, and is counted by the server.",
            hint="Look whether the server truncates prompts, or counts something else in usage.prompt_tokens.",
        )


Calibration = Generator[Ask, int | None, Calibrated | Uncalibrated]


def calibrate(
    target_tokens: int,
    *,
    nonce: str,
    trial: str = "",
    first_index: int = 0,
    prefix: str = "",
    prefix_tokens: int | None = None,
    previous: Calibrated | None = None,
    tolerance_tokens: int = TOLERANCE_TOKENS,
    max_asks: int = MAXIMUM_ASKS,
) -> Calibration:
    """Find the length of a composed text for which the server counts `target_tokens`, template and prefix included.

    Send the count to each yielded ask, or None where the server tells none. `first_index` keeps the prompts of
    several calibrations apart. `prefix` is a shared prefix and `prefix_tokens` what that was measured to cost;
    `previous` is an earlier result on this server without a prefix, and saves asks.
    """

    def ask(number: int, words: int, letters: int, purpose: Literal["length", "spread"]) -> Ask:
        key = PromptKey(nonce, trial, 0, first_index + number, CALIBRATION_PHASE)
        return Ask(key, words, letters, prefix + compose(key, words, letters), purpose)

    ratio = previous.tokens_per_word if previous else DEFAULT_TOKENS_PER_WORD
    shared = round(len(prefix.split()) * ratio) if prefix_tokens is None else prefix_tokens
    result = yield from _search(
        target_tokens - shared, ask, previous, tolerance_tokens, max_asks, offset=shared
    )
    return _shifted(result, shared)


def calibrate_prefix(
    target_tokens: int,
    *,
    nonce: str,
    trial: str = "",
    first_index: int = 0,
    block_tokens: int = 16,
    previous: Calibrated | None = None,
    max_asks: int = MAXIMUM_ASKS,
) -> Calibration:
    """Find the length of the shared prefix of `target_tokens`, within one cache block.

    The first ask is a short prompt without a prefix; the prefix's own count is the difference to it.
    `template_tokens` of the result stays None; the words are those for `shared_prefix`.
    """
    key = PromptKey(nonce, trial, 0, first_index, CALIBRATION_PHASE)
    tail = compose(key, TAIL_WORDS)
    alone = yield Ask(key, TAIL_WORDS, 0, tail, "tail")
    if alone is None:
        return _assumed(target_tokens, previous)

    def ask(number: int, words: int, letters: int, purpose: Literal["length", "spread"]) -> Ask:
        of_ask = PromptKey(nonce, trial, 0, first_index + 1 + number, CALIBRATION_PHASE)
        text = shared_prefix(nonce, words, letters) + compose(of_ask, TAIL_WORDS)
        return Ask(of_ask, words, letters, text, purpose)

    tolerance = max(TOLERANCE_TOKENS, block_tokens // 2)
    result = yield from _search(target_tokens, ask, previous, tolerance, max_asks - 1, offset=alone)
    return msgspec.structs.replace(result, template_tokens=None) if isinstance(result, Calibrated) else result


def _search(
    target: int,
    ask: Callable[[int, int, int, Literal["length", "spread"]], Ask],
    previous: Calibrated | None,
    tolerance: int,
    max_asks: int,
    offset: int = 0,
) -> Calibration:
    """Search; `offset` is what is counted beside the text that is varied, and `target` is without it."""
    counts: list[Count] = []
    words, letters = _first(target, previous), 0
    purpose: Literal["length", "spread"] = "length"
    for number in range(max_asks):
        reply = yield ask(number, words, letters, purpose)
        if reply is None or reply <= 0:
            if not counts:
                return _assumed(target, previous)
            continue
        counts.append(Count(words, letters, reply - offset))
        best = _best(counts, target)
        off = abs(best.tokens - target)
        if off <= tolerance:
            if purpose == "spread" and (words, letters) == (best.words, best.letters):
                break
            words, letters, purpose = best.words, best.letters, "spread"
            continue
        if best.words == MINIMUM_WORDS and best.letters == 0 and best.tokens > target:
            return Uncalibrated("too_short", target, best.tokens, tuple(counts))
        words, letters = _next(counts, target)
        purpose = "length"
    best = _best(counts, target)
    if abs(best.tokens - target) > max(8, 2 * tolerance, target // 200):
        return Uncalibrated("not_converged", target, None, tuple(counts))
    template = _template(counts)
    slope = _slope(counts, best)
    seen = [c.tokens for c in counts if (c.words, c.letters) == (best.words, best.letters)]
    return Calibrated(
        words=best.words,
        letters=best.letters,
        target_tokens=target,
        measured_tokens=best.tokens,
        template_tokens=template,
        tokens_per_word=slope,
        spread_tokens=max(max(seen) - min(seen), _expected_spread(best.words, slope)),
        source="counted",
        counts=tuple(counts),
    )


def _shifted(result: Calibrated | Uncalibrated, shared: int) -> Calibrated | Uncalibrated:
    """Put the shared part back into every number."""
    counts = tuple(Count(count.words, count.letters, count.tokens + shared) for count in result.counts)
    target = result.target_tokens + shared
    if isinstance(result, Uncalibrated):
        floor = None if result.floor_tokens is None else result.floor_tokens + shared
        return Uncalibrated(result.reason, target, floor, counts)
    measured = None if result.measured_tokens is None else result.measured_tokens + shared
    return msgspec.structs.replace(result, target_tokens=target, measured_tokens=measured, counts=counts)


def _clamp(words: int) -> int:
    return min(max(words, MINIMUM_WORDS), MAXIMUM_WORDS)


def _first(target: int, previous: Calibrated | None) -> int:
    if previous is not None:
        return previous.words_for(target)
    guess = round((target - ASSUMED_TEMPLATE_TOKENS) / DEFAULT_TOKENS_PER_WORD)
    # A long prompt takes a server many seconds to read: its cost is worked out from two shorter ones first.
    return _clamp(guess if guess <= 4 * PERIOD_WORDS else PERIOD_WORDS + guess % PERIOD_WORDS)


def _best(counts: list[Count], target: int) -> Count:
    """Return the length nearest to the target, with the mean of its counts."""
    groups: dict[tuple[int, int], list[int]] = {}
    for count in counts:
        groups.setdefault((count.words, count.letters), []).append(count.tokens)
    means = [Count(words, letters, round(sum(t) / len(t))) for (words, letters), t in groups.items()]
    return min(means, key=lambda mean: abs(mean.tokens - target))


def _slope(counts: list[Count], near: Count, target: int | None = None) -> float:
    """Estimate tokens a word between `near` and another count, else from `near` alone.

    The other is the nearest beyond the target, where there is one, for a vocabulary may know the words at the end
    less well than the rest; else the farthest. Two counts close together tell nothing: the head's few free words
    would pass for the difference.
    """
    far = max(counts, key=lambda c: abs(c.words - near.words))
    if target is not None:
        beyond = [c for c in counts if (c.tokens - target) * (near.tokens - target) < 0]
        far = min(beyond, key=lambda c: abs(c.words - near.words), default=far)
    if abs(far.words - near.words) >= max(12, near.words // 8):
        slope = ((near.tokens - near.letters) - (far.tokens - far.letters)) / (near.words - far.words)
    else:
        slope = (near.tokens - near.letters - ASSUMED_TEMPLATE_TOKENS) / near.words
    return min(max(slope, _SLOPES[0]), _SLOPES[1])


def _next(counts: list[Count], target: int) -> tuple[int, int]:
    near = _best(counts, target)
    slope = _slope(counts, near, target)
    gap = target - near.tokens
    one_length = len({count.words for count in counts}) == 1
    if one_length and gap > 2 * PERIOD_WORDS * slope:
        return _clamp(near.words + PERIOD_WORDS), 0
    # Where a word costs many tokens the vocabulary is (almost) bytes, and " a" costs two.
    letter = 2 if slope > 3.5 else 1
    letters = near.letters + round(gap / letter)
    if 0 <= letters <= MAXIMUM_LETTERS and abs(gap) < 40:
        return near.words, letters
    step = math.floor((gap + near.letters * letter) / slope)
    letters = round((gap + near.letters * letter - step * slope) / letter)
    words = _clamp(near.words + step)
    if (words, 0) == (near.words, near.letters):
        words = _clamp(words + (1 if gap > 0 else -1))
    return words, min(max(letters, 0), MAXIMUM_LETTERS) if words > MINIMUM_WORDS else 0


def _template(counts: list[Count]) -> int | None:
    """Extrapolate to a prompt of no words, where two counts are far enough apart for that to mean something."""
    low, high = min(counts, key=lambda c: c.words), max(counts, key=lambda c: c.words)
    if high.words < 2 * low.words:
        return None
    slope = ((high.tokens - high.letters) - (low.tokens - low.letters)) / (high.words - low.words)
    return max(0, round(low.tokens - low.letters - slope * low.words))


def _expected_spread(words: int, slope: float) -> int:
    """Estimate the spread that the head's freely drawn words cause: five deviations, the range of about a hundred.

    The deviation of one noun's cost was measured: 0.75 tokens with a byte pair vocabulary of 8,000 entries, at 1.9
    tokens a word of text; 1.0 with plain bytes, at 5.7; nothing where each word is one token. The first word, which
    only lacks its space, counts for a quarter of a word.
    """
    deviation = min(0.8 * math.sqrt(max(slope - DEFAULT_TOKENS_PER_WORD, 0.0)), 1.0)
    free = leading_choices(words)
    return math.ceil(5 * deviation * math.sqrt(free if free > 1 else 0.25) + 0.25)


def _assumed(target: int, previous: Calibrated | None) -> Calibrated:
    ratio = previous.tokens_per_word if previous else DEFAULT_TOKENS_PER_WORD
    return Calibrated(
        words=_clamp(round((target - ASSUMED_TEMPLATE_TOKENS) / ratio)),
        letters=0,
        target_tokens=target,
        measured_tokens=None,
        template_tokens=None,
        tokens_per_word=ratio,
        spread_tokens=math.ceil(2 * ASSUMED_ERROR * max(target, 0)),
        source="assumed",
    )
