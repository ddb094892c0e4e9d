"""Whether a text ended in a loop: one passage, again and again, up to its last character.

A text *loops* when one period of at most 32,768 characters fills its end for at least four whole cycles and at least
4,096 characters, and its cycle is not whitespace alone. So yes or no depends on the last 131,072 characters only, and
no more than these are kept. The figures are the protocol's.

How: read backwards, the text begins with its end. If it has period p there, then its first characters occur again at
distance p, so occurrences are the candidates, and ``str.find`` finds them at the speed of C. Of all candidates in
one window of periods, only the first can be the smallest period that loops. Let the window's pattern be at least as
long as its largest period, and short enough to occur at distance p in whatever loops with a p of the window. If the
pattern occurs at a and at p > a, it has the periods a and p - a, whose sum is not above its length; then it has
their greatest common divisor g as a period (Fine and Wilf). A loop of p repeats what its last p characters are, and
these have period g, which divides p: so all of it has period g, and g, which is at most a, loops as well. Windows
that grow threefold keep both conditions, so five searches and five comparisons decide any text.
"""

from msgspec import Struct

from nameplate.wire.events import Channel

CYCLES = 4
LEAST_CHARS = 4_096
LONGEST_PERIOD_CHARS = 32_768
KEPT_CHARS = CYCLES * LONGEST_PERIOD_CHARS

# Texts are kept in blocks of at least this many characters, so that a channel has at most 33 of them.
_BLOCK_CHARS = 4_096


class Loop(Struct, frozen=True, gc=False):
    """Hold what a channel's text repeated at its end, in characters (Unicode code points).

    ``period_chars`` is the smallest period that counts; ``length_chars`` how long the repeating end is within the
    last 131,072 characters of the channel, which are all that is kept: a longer one counts as that.
    """

    channel: Channel
    period_chars: int
    length_chars: int


# CPU time (`wire/tests/bench_loop.py`; CPython 3.11, 2.4 GHz): text without a loop 25 us for 20,000 characters and
# 45 us for 131,072; with one of 200 characters 30 us and 110 us, of 32,768 characters 280 us (emoji 620 us). Made to be
# slow: runs of one letter 520 us, the Fibonacci word 470 us, and the worst that a random search for it found 1.3 ms:
# three cycles of 27,000 characters.
def find_loop(text: str, channel: Channel = Channel.content) -> Loop | None:
    """Return the loop that a channel's text ends in, None where it does not or is too short to tell."""
    text = text[-KEPT_CHARS:]
    period = smallest_period(text)
    return None if period is None else Loop(channel, period, _extent(text, period))


def smallest_period(
    text: str, least_chars: int = LEAST_CHARS, longest_period: int = LONGEST_PERIOD_CHARS
) -> int | None:
    """Return the smallest period with which the end of a text loops, None where none does."""
    longest = min(longest_period, len(text) // CYCLES)
    if len(text) < least_chars or longest < 1:
        return None
    size = max(1, min(least_chars // CYCLES, longest))
    # Ordinary text ends here: nothing of it is as long as this and occurs twice.
    backwards = text[-(longest_period + max(size, least_chars)) :][::-1]
    at = backwards.find(backwards[:size], 1)
    if not 0 < at <= longest:
        return None
    backwards = text[::-1]
    while True:
        if at <= size:
            if _loops(text, at, least_chars):
                return at
            at = size + 1
        if size == longest:
            return None
        size = min(3 * size, longest)
        # No further than can matter, and far enough for the search that is linear whatever the text: CPython takes
        # it from three patterns' length on.
        at = backwards.find(backwards[:size], at, longest + 4 * size)
        if not 0 < at <= longest:
            return None


def _loops(text: str, period: int, least_chars: int) -> bool:
    start = len(text) - max(CYCLES * period, least_chars)
    if start < 0 or text[start:-period] != text[start + period :]:
        return False
    return not text[-period:].isspace()


def _extent(text: str, period: int) -> int:
    """Return how many of the last characters have this period."""
    start, step = len(text) - period, _BLOCK_CHARS
    while step:
        # Coarse steps first: one comparison each, and at most seven of every finer size.
        while start >= step and text[start - step : start] == text[start - step + period : start + period]:
            start -= step
        step //= 8
    return len(text) - start


class Tail:
    """Keep the end of one channel's text, in few pieces, and count all its characters."""

    __slots__ = ("_blocks", "_kept_chars", "chars")

    def __init__(self) -> None:
        self.chars = 0
        self._blocks: list[str] = []
        self._kept_chars = 0

    def add(self, text: str) -> None:
        """Append what came next."""
        self.chars += len(text)
        text = text[-KEPT_CHARS:]
        blocks = self._blocks
        if blocks and len(blocks[-1]) < _BLOCK_CHARS:
            blocks[-1] += text
        else:
            blocks.append(text)
        self._kept_chars += len(text)
        while self._kept_chars - len(blocks[0]) >= KEPT_CHARS:
            self._kept_chars -= len(blocks.pop(0))

    def loop(self, channel: Channel) -> Loop | None:
        """Return the loop that the text ends in, if any."""
        return find_loop("".join(self._blocks), channel) if self.chars >= LEAST_CHARS else None
