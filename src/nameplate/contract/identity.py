"""What server a number belongs to: facts with their sources, and how two readings of them compare."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Literal

from msgspec import Struct, field

Value = str | int | float | bool

# Held against each other before and after a trial, and between trials (reference: protocol rules, Identity).
COMPARED = (
    "engine",
    "version",
    "model",
    "model_root",
    "context_limit_tokens",
    "kv_tokens",
    "block_size_tokens",
    "running_limit_requested",
    "running_limit_effective",
    "prefix_caching",
    "process_start_time_s",
)

# What a plate is held to later: a restart alone changes no number.
CONFIGURATION = COMPARED[:-1]

# Without these a rated number cannot be carried to another machine: the plate lists what is missing.
PORTABLE = (
    *CONFIGURATION,
    "accepted_connections",
    "image_digest",
    "model_snapshot",
    "quantisation",
    "hardware",
    "driver",
    "parallel_degrees",
    "graph_policy",
    "speculative",
    "server_arguments",
)


class Fact(Struct, frozen=True):
    """Hold one value and where it was read: an address, a metric's name, `--fact`, a log line."""

    value: Value
    source: str


class Identity(Struct, frozen=True):
    """Hold the facts known of one server at one moment; what is absent is unknown."""

    facts: Mapping[str, Fact] = field(default_factory=dict)

    def value(self, name: str) -> Value | None:
        fact = self.facts.get(name)
        return None if fact is None else fact.value

    def integer(self, name: str) -> int | None:
        """Return a whole-number fact, or None where it is unknown or not a number."""
        value = self.value(name)
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            return None
        return int(value)

    def text(self, name: str) -> str | None:
        value = self.value(name)
        return None if value is None else str(value)

    @property
    def missing(self) -> tuple[str, ...]:
        """Name the facts without which a rated number is not portable."""
        return tuple(name for name in PORTABLE if name not in self.facts)

    def with_facts(self, more: Mapping[str, Fact]) -> Identity:
        """Return a copy where `more` wins over what was known."""
        return Identity({**self.facts, **more})


class IdentityChange(Struct, frozen=True):
    """Name one fact that differs between two readings; `unverified` is known that became unknown."""

    name: str
    kind: Literal["changed", "unverified"]
    before: Value | None
    after: Value | None

    def __str__(self) -> str:
        if self.kind == "unverified":
            return f"{self.name} was {self.before} and can no longer be read"
        return f"{self.name} changed from {self.before} to {self.after}"


def compare(
    before: Identity, after: Identity, names: tuple[str, ...] = COMPARED
) -> tuple[IdentityChange, ...]:
    """List what changed between two readings; a fact that was unknown before cannot have changed."""
    changes = []
    for name in names:
        old, new = before.value(name), after.value(name)
        if old is None or old == new:
            continue
        kind: Literal["changed", "unverified"] = "unverified" if new is None else "changed"
        changes.append(IdentityChange(name, kind, old, new))
    return tuple(changes)
