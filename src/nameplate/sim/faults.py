"""Faults on demand: what a broken, overloaded or dishonest server does, for tests of those who must notice."""

from collections.abc import Iterable
from typing import Literal

import msgspec

FaultName = Literal[
    "die",
    "error_event",
    "stall",
    "cut",
    "loop",
    "wrong_usage",
    "no_usage",
    "429",
    "503",
    "slow_headers",
    "refuse_flush",
    "early_stop",
    "no_cached",
    "phantom",
    "html",
    "wrong_model",
    "identity_change",
    "slowing",
    "slower",
    "restart",
]

# name: (what it does with its argument, the argument's default)
FAULTS: dict[FaultName, tuple[str, float]] = {
    "die": ("the process exits after ARG output tokens of the request", 8),
    "error_event": ("an error event and [DONE] after ARG output tokens, status 200", 8),
    "stall": ("nothing more is sent after ARG output tokens, the connection stays open", 8),
    "cut": ("the connection is reset after ARG output tokens", 8),
    "loop": ("the answer repeats the same five words (ARG unused)", 0),
    "wrong_usage": ("usage reports ARG output tokens more than were made", -1),
    "no_usage": ("no usage is ever sent (ARG unused)", 0),
    "429": ("429 with Retry-After: ARG", 1),
    "503": ("503 with Retry-After: ARG", 1),
    "slow_headers": ("the response begins ARG seconds late", 2),
    "refuse_flush": (
        "/reset_prefix_cache answers 200 with success false and flushes nothing (ARG unused)",
        0,
    ),
    "early_stop": ("ignore_eos is ignored: the answer stops after ARG output tokens", 8),
    "no_cached": ("usage says nothing of cached tokens (ARG unused)", 0),
    "phantom": ("the metrics page shows ARG running requests of somebody else, from request INDEX on", 1),
    "html": ("an HTML page with status 200 instead of any answer (ARG unused)", 0),
    "wrong_model": ("answers and /v1/models name another model (ARG unused)", 0),
    "identity_change": ("after ARG requests the server looks restarted, with another context limit", 16),
    "slowing": ("each hour since the first request adds ARG of itself to the time a step takes", 0.5),
    "restart": ("the process exits when the request comes, and is started again ARG seconds later", 5),
    "slower": ("from request INDEX on every step takes ARG times as long", 2),
}


class Fault(msgspec.Struct, frozen=True):
    """Name one fault, its argument, and which generation requests (counted from 0) it befalls.

    With `at` only that request; with `every` N the last of each N; with neither all of them.
    """

    name: FaultName
    argument: float
    every: int | None = None
    at: int | None = None

    def befalls(self, index: int) -> bool:
        """Say whether generation request `index` has this fault."""
        if self.at is not None:
            return index == self.at
        if self.every is not None:
            return index % self.every == self.every - 1
        return True


def parse_fault(text: str) -> Fault:
    """Read `NAME[:ARG][@INDEX|@every N]`; raise ValueError saying what is wrong and what would be right."""
    head, marker, where = text.partition("@")
    word, colon, argument = head.strip().partition(":")
    name = next((known for known in FAULTS if known == word), None)
    if name is None:
        raise ValueError(f"unknown fault {word!r}: choose one of {', '.join(FAULTS)}")
    every = at = None
    try:
        value = float(argument) if colon else FAULTS[name][1]
        if marker:
            words = where.split()
            if words[:1] == ["every"]:
                (every,) = map(int, words[1:])
            else:
                (at,) = map(int, words)
    except ValueError:
        raise ValueError(
            f"cannot read fault {text!r}: write NAME[:NUMBER][@INDEX] or NAME[:NUMBER][@every N]"
        ) from None
    if (every is not None and every < 1) or (at is not None and at < 0):
        raise ValueError(f"cannot use fault {text!r}: N is at least 1 and INDEX at least 0")
    return Fault(name, value, every, at)


class FaultPlan:
    """Answer which faults befall which request."""

    def __init__(self, faults: tuple[Fault, ...] = ()) -> None:
        self._faults = faults

    def of(self, name: FaultName, index: int) -> float | None:
        """Return the argument if the fault befalls request `index`, else None."""
        for fault in self._faults:
            if fault.name == name and fault.befalls(index):
                return fault.argument
        return None

    def and_then(self, texts: Iterable[str]) -> "FaultPlan":
        """Return a plan in which these faults, as `parse_fault` reads them, follow those that are here."""
        return FaultPlan((*self._faults, *map(parse_fault, texts)))

    def since(self, name: FaultName, requests: int) -> float | None:
        """Return the argument of a fault that begins with the request it names, once so many have come."""
        for fault in self._faults:
            if fault.name == name and (fault.at is None or requests > fault.at):
                return fault.argument
        return None

    def any(self, name: FaultName) -> float | None:
        """Return the argument if the fault is there at all: for what belongs to no request."""
        return next((fault.argument for fault in self._faults if fault.name == name), None)

    def pace(self, requests: int, passed_ns: int) -> float:
        """Return how many times as long steps take as they should, after so many requests and so much time."""
        hours = passed_ns / 3.6e12
        return (self.since("slower", requests) or 1.0) * (1.0 + (self.any("slowing") or 0.0) * hours)
