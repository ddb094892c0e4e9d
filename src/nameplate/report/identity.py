"""Who the server is, in one line and in a table with sources."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.console import RenderableType

from nameplate.contract.identity import Fact
from nameplate.report.safe import safe
from nameplate.report.table import Column, FittingTable

_VALUE_LIMIT = 160


def value_of(fact: Fact) -> str:
    """Write a fact's value: whole numbers with thousands, words as they are."""
    value = fact.value
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return safe(value, _VALUE_LIMIT)


def one_line(facts: Mapping[str, Fact]) -> str:
    """Say in one line what is known that decides capacity."""

    def known(form: str, name: str) -> list[str]:
        fact = facts.get(name)
        return [] if fact is None else [form.format(value_of(fact))]

    engine = " ".join(known("{}", "engine") + known("{}", "version"))
    said = [
        *([engine] if engine else []),
        *known("model {}", "model"),
        *known("{}", "hardware"),
        *known("context {} tokens", "context_limit_tokens"),
        *known("KV {} tokens", "kv_tokens"),
        *known("runs {} at once", "running_limit_effective"),
    ]
    return ", ".join(said) or "a server that tells nothing of itself"


def identity_table(facts: Mapping[str, Fact]) -> RenderableType:
    """Return every known fact with its source, in the order of the identity."""
    rows: Sequence[tuple[str, str, str]] = [
        (safe(name, 60), value_of(fact), safe(fact.source, _VALUE_LIMIT)) for name, fact in facts.items()
    ]
    columns = [Column("fact", side="left"), Column("value", side="left"), Column("source", side="left")]
    return FittingTable(columns, rows, wraps=(1, 2))
