"""The server and its contract as cards: who was measured, under what, and what nobody knows of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

import htpy as h

from nameplate.contract.contract import Contract
from nameplate.contract.identity import PORTABLE, Fact
from nameplate.contract.sampling import Sampling
from nameplate.pages.table import Cell, Column, table
from nameplate.pages.values import ABSENT
from nameplate.pages.words import command, facts
from nameplate.report.again import repeating
from nameplate.report.identity import value_of
from nameplate.report.safe import safe

# What stands on the card itself, with people's names for it; the rest is in the table below.
_CARD = (
    ("hardware", "Hardware"),
    ("driver", "Driver"),
    ("engine", "Engine"),
    ("version", "Version"),
    ("model", "Model"),
    ("model_snapshot", "Snapshot"),
    ("quantisation", "Quantisation"),
    ("image_digest", "Image"),
    ("parallel_degrees", "Parallel"),
    ("context_limit_tokens", "Context, tokens"),
    ("kv_tokens", "KV pool, tokens"),
    ("running_limit_effective", "Runs at once"),
)


def server_card(known: Mapping[str, Fact], address: str) -> h.Element:
    """Return the machine's plate: what it is, and "not stated" where nobody told."""
    entries: list[tuple[h.Node, h.Node]] = [("Address", h.code[safe(address, 300)])]
    for name, title in _CARD:
        fact = known.get(name)
        said: h.Node = h.span(".soft")["not stated"] if fact is None else value_of(fact)
        entries.append((title, said))
    return h.div(".card")[h.h2["Server"], facts(entries)]


def launch(known: Mapping[str, Fact]) -> h.Node:
    """Return the server's launch command, keys redacted as they were on disk; nothing where it is not known."""
    fact = known.get("server_arguments")
    return None if fact is None else h.div[h.h2["Launch command"], command(str(fact.value))]


def identity_table(known: Mapping[str, Fact], missing: Sequence[str] = ()) -> h.Element:
    """Return every fact with its source, folded away, and the names of those that are missing."""
    rows: list[list[Cell | str]] = [
        [safe(name, 60), Cell(value_of(fact), fact.value), safe(fact.source, 300)]
        for name, fact in known.items()
    ]
    absent = [name for name in missing if name in PORTABLE]
    return h.details[
        h.summary[f"All {len(rows)} facts known of the server, with their sources"],
        table(
            (Column("fact", kind="text"), Column("value", kind="text"), Column("source", kind="text")),
            rows,
            "Facts known of the server",
        ),
        h.p(".soft")[f"Not known, so the number is not portable: {', '.join(absent)}."] if absent else None,
    ]


def evidence_card(
    directory: str,
    digest: str | None,
    again: Sequence[str],
    began: datetime | None,
    ended: datetime | None,
    simulated: bool,
    tool: str,
    more: Sequence[tuple[h.Node, h.Node]] = (),
) -> h.Element:
    """Return where the evidence is, how to recompute it, and how to repeat it."""
    when = ABSENT if began is None else f"{began:%Y-%m-%d %H:%M} UTC"
    if ended is not None and began is not None:
        when += f" to {ended:%H:%M}" if ended.date() == began.date() else f" to {ended:%Y-%m-%d %H:%M}"
    time = f"{when}, in simulated time: a model of a server, not a machine" if simulated else when
    return h.div(".card")[
        h.h2["Evidence"],
        facts(
            [
                ("When", time),
                ("Directory", h.code[safe(directory, 500)]),
                ("Digest", h.span(".digest")[digest] if digest else "not sealed"),
                ("Recompute", h.code[safe(f"nameplate verify {directory}", 600)]),
                ("Tool", safe(tool, 100)),
                *more,
            ]
        ),
        h.h3["Repeat"],
        command(repeating(again)) if again else ABSENT,
    ]


def sampling_words(sampling: Sampling) -> str:
    """Say how the model is asked to generate: only what is sent."""
    said = [
        f"{name.replace('_', '-')} {value:g}"
        for name in ("temperature", "top_p", "top_k")
        if (value := getattr(sampling, name)) is not None
    ]
    said += ["a seed a request"] if sampling.seed_per_request else []
    return ", ".join([*said, "ignore_eos" if sampling.ignore_eos else "answers stop by themselves"])


def contract_card(contract: Contract, entries: Sequence[tuple[h.Node, h.Node]]) -> h.Element:
    """Return what was fixed before the first request; `entries` are those of the study's kind."""
    return h.div(".card")[
        h.h2["Contract"],
        facts(
            [
                *entries,
                ("Model asked for", safe(contract.target.model, 200)),
                ("API", safe(contract.target.api, 40)),
                ("Cache", safe(contract.cache, 200)),
                ("Sampling", sampling_words(contract.sampling)),
                ("Seed", str(contract.seed)),
                ("Nonce", h.span(".digest")[safe(contract.nonce, 80)]),
            ]
        ),
    ]
