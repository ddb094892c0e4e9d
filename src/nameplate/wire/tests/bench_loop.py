"""Print what looking for a loop costs: ``python -m nameplate.wire.tests.bench_loop``.

CPU time, the best of many rounds, because the machine has other work. A measurement, not a test.
"""

import random
import time

from nameplate.wire.loop import CYCLES, KEPT_CHARS, LONGEST_PERIOD_CHARS, find_loop

ROUNDS = 30
LETTERS = "etaoin shrdlu cmfwyp vbgkqjxz"


def best_us(text: str) -> float:
    """Return the CPU microseconds of one look."""
    best = float("inf")
    for _ in range(ROUNDS):
        start = time.process_time_ns()
        find_loop(text)
        best = min(best, (time.process_time_ns() - start) / 1000)
    return best


def prose(chars: int, seed: int = 1, letters: str = LETTERS) -> str:
    """Return text that repeats nothing."""
    return "".join(random.Random(seed).choices(letters, k=chars))


def fibonacci(chars: int) -> str:
    """Return the word that is as full of repeats as one without a fourth power can be."""
    one, two = "a", "ab"
    while len(two) < chars:
        one, two = two, two + one
    return two[:chars]


def texts() -> dict[str, str]:
    """Return the texts by what they are; the later ones are made to be slow."""
    chars, longest = KEPT_CHARS, LONGEST_PERIOD_CHARS
    short_run = "a" * 4095 + "b"
    return {
        "20,000, no loop": prose(20_000),
        "131,072, no loop": prose(chars),
        "131,072, no loop, beyond Latin-1": prose(chars, letters="的一是不了人我在有他"),
        "20,000, loop of 200": prose(10_000) + prose(200) * 50,
        "131,072, loop of 200": prose(200) * (chars // 200 + 1),
        "131,072, loop of 32,768": prose(longest) * CYCLES,
        "131,072, loop of 32,768, emoji": prose(longest, letters="😀😁😂🤣😃😄") * CYCLES,
        "one letter, 4,095 of it at the end": "a" * (chars - 4096) + "b" + "a" * 4095,
        "one letter, its last character another": "a" * (chars - 1) + "b",
        "runs of one letter, each too short": (short_run * 40)[: chars // 2]
        + "c"
        + short_run * 3
        + "a" * 4095,
        "Fibonacci word": fibonacci(chars),
        "Fibonacci word backwards": fibonacci(chars)[::-1],
        "two letters, random": prose(chars, letters="ab"),
        "3.99 cycles of 32,768": (prose(longest, letters="ab") * CYCLES)[1:],
        "four cycles of 32,768, first character another": "#" + (prose(longest) * CYCLES)[1:],
        "period 32,767, three cycles, of runs": "c" + (("a" * 4000 + "b") * 9)[:32_767] * 4,
        "nested: three of three of three": nested(chars),
        "nested, emoji": nested(chars).replace("a", "😀"),
    }


def nested(chars: int) -> str:
    """Return three times the same, each of it three times the same, and so on, a letter between."""
    text = "a" * 1000
    for letter in "bcdefgh":
        text = (text * 3)[: len(text) * 3 - 7] + letter
        if len(text) > chars:
            break
    return text[-chars:]


def main() -> None:
    """Measure and print each text."""
    for name, text in texts().items():
        print(f"{name:50} {best_us(text):8.0f} us  {find_loop(text) is not None}")


if __name__ == "__main__":
    main()
