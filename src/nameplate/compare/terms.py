"""The terms of a comparison: every fact of contract, load and identity by a dotted name, and how two sets differ.

A difference is one of

`refused`   it may be the cause of any difference in the numbers, and nobody said that it is the point
`allowed`   the same, named by `--vary`
`harmless`  it is shown, and changes no number by itself (HARMLESS)
`unknown`   one side does not know it: nothing is refused for that, and it is said
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, Literal

import msgspec
from msgspec import Struct

from nameplate.compare.side import Terms
from nameplate.contract.contract import Contract
from nameplate.contract.identity import Identity, Value
from nameplate.contract.plan import TrialPlan

DifferenceKind = Literal["refused", "allowed", "harmless", "unknown"]

# Terms that are shown where they differ, and refuse nothing.
HARMLESS = (
    # Where it answers and how it is spoken to; what it is stands in its identity.
    "address",
    "dialect.*",
    "header_names",
    "client.*",
    # Prompts, lengths and arrivals are drawn anew in every study; of one seed they are merely the same.
    "seed",
    "soak.arrivals.seed",
    # Far above any latency that is kept.
    "deadlines.*",
    # Where a boundary is searched for and how long: where it is not found the status says so.
    "rules.min_concurrency",
    "rules.max_concurrency",
    "rules.first_guess",
    "rules.locator_warmup",
    "rules.max_trials",
    "rules.max_s",
    "rate.min_per_s",
    "rate.max_per_s",
    "rate.guess_per_s",
    # Each trial begins at a server that is idle, however long ago; one that is replaced does not count.
    "rules.quiet_s",
    "rules.replacements",
    # What is said below the rated number, and of the shape of a curve.
    "rules.operate_below",
    "curve.hardly",
    # Which cells there are, and how many trials each has: cells are matched one by one, and trials are counted.
    "curve.to_limit",
    "curve.repeat",
    "speed.profile",
    "speed.burst",
    "speed.time_budget_s",
    # A cell that is not ready in time has a status and no number.
    "speed.ready_timeout_ns",
    # These follow from how fast the server was.
    "load.stagger_ns",
    "load.hold.ready_ns",
    "load.until.budget_ns",
    # How much is kept of it and how often others are asked; what a short drain cuts is open, and no number.
    "soak.soak.drain_ns",
    "soak.soak.raw_budget_bytes",
    "soak.soak.scrape_ns",
    "soak.soak.client_sample_ns",
)
# These decide what a rated number is. Where nothing is rated each load says them itself, and repetitions are counted.
OF_RATED = (
    "rules.confirmations",
    "rules.extra_confirmations",
    "rules.requests",
    "rules.warmup",
    "rules.start",
    "rules.baseline_warmup",
    "rules.baseline_requests",
)

# Facts that are part of no family of their own belong to the engine.
_FAMILY = {
    "engine": "engine.name",
    "model": "model.id",
    "model_root": "model.root",
    "model_snapshot": "model.snapshot",
    "quantisation": "model.quantisation",
    "hardware": "hardware.name",
    "driver": "hardware.driver",
}
# A restart alone changes no configuration; it is told apart in words.
_SESSION = "process_start_time_s"

# Of these only what both sides have can differ: a load of another kind is a cell of its own.
_OPTIONAL = ("rules", "rate", "curve", "speed", "soak", "load")

# What says nothing of one trial: what its prompts are made of, what it is called, and what is compared cell by cell.
_OF_CONTRACT = ("target", "shapes", "slos", "nonce", "cache", "sampling")
_OF_PLAN = (
    "name", "role", "attempt", "shape", "concurrency", "stop_when_failed", "quiet_s", "outputs_must_differ",
    "outputs_must_not_loop", "rate_level", "alone_ttft_ns", "arrivals.seed", "arrivals.trace.rows", "soak",
)  # fmt: skip
_BY_CELL = (
    "speed.prefill_contexts", "speed.decode_contexts", "speed.concurrencies", "curve.concurrencies", "curve.rates",
    "curve.inputs", "curve.output_tokens", "curve.arrivals",
)  # fmt: skip


class Difference(Struct, frozen=True, kw_only=True):
    """Hold one term that differs: what each side has (several where its own results differ), and what that means.

    `where` names the cell whose load it is of; empty for a term of the whole.
    """

    name: str
    kind: DifferenceKind
    a: tuple[str, ...]
    b: tuple[str, ...]
    where: str = ""

    @property
    def vary(self) -> str:
        """Return the option that allows it."""
        return f"--vary {self.name}"


def contract_terms(contract: Contract, *, rated: bool = True) -> dict[str, Value | None]:
    """Return a contract's terms; it holds no secrets. `rated`: levels are its result."""
    target, cache = contract.target, contract.cache
    found: dict[str, Value | None] = {
        "address": target.url,
        "api": target.api,
        "model.asked": target.model,
        "dialect.stream_usage": target.stream_usage,
        "dialect.continuous_usage": target.continuous_usage,
        "dialect.limit_field": target.limit_field,
        "slo": ", ".join(sorted(map(str, contract.slos))) or "none",
        "cache": str(cache),
        "cache.flush": cache.flush,
    }
    found |= flat(target.extra_body, "body")
    found |= flat(contract.sampling, "sampling")
    rest = {
        name: value
        for name, value in _plain(contract).items()
        if name not in _OF_CONTRACT and not (value is None and name in _OPTIONAL)
    }
    return found | without(flat(rest), _BY_CELL if rated else (*_BY_CELL, *OF_RATED))


def plan_terms(plan: TrialPlan) -> dict[str, Value | None]:
    """Return the terms of a trial's load; how many requests an open loop sends follows from how long it must last."""
    asked = without(flat(plan.as_written), _OF_PLAN)
    found: dict[str, Value | None] = {
        f"load.{name}": value for name, value in asked.items() if value != "none"
    }
    found["load.kind"] = kind_of_load(is_open=plan.arrivals is not None)
    if plan.arrivals is None:
        found["load.concurrency"] = plan.concurrency
    elif plan.rate_level is not None:
        found.pop("load.requests", None)
    return found


def kind_of_load(*, is_open: bool) -> str:
    """Name whether requests wait for those before them, or arrive whatever became of these."""
    return "open loop" if is_open else "closed loop"


def identity_terms(identity: Identity) -> dict[str, Value | None]:
    """Return a server's facts as terms: `engine.version`, `model.id`, `hardware.driver`."""
    return {
        _FAMILY.get(name, f"engine.{name}"): fact.value
        for name, fact in identity.facts.items()
        if name != _SESSION
    }


def session_of(identity: Identity) -> str | None:
    """Return when the server's process began, as it tells it."""
    return identity.text(_SESSION)


def differences(
    a: Sequence[Terms], b: Sequence[Terms], vary: Iterable[str] = (), where: str = ""
) -> tuple[Difference, ...]:
    """List the terms in which any two results differ, those of one side included; `vary` are patterns of names."""
    patterns = tuple(vary)
    names = sorted({name for terms in (*a, *b) for name in terms})
    found = []
    for name in names:
        told_a, told_b = _values(a, name), _values(b, name)
        if len({*told_a, *told_b}) < 2:
            continue
        known = {value for value in (*told_a, *told_b) if value is not None}
        if len(known) < 2 and name.partition(".")[0] in _OPTIONAL:
            continue
        kind: DifferenceKind
        if is_harmless(name):
            kind = "harmless"
        elif len(known) < 2:
            kind = "unknown"
        else:
            kind = "allowed" if any(named(name, pattern) for pattern in patterns) else "refused"
        found.append(
            Difference(
                name=name,
                kind=kind,
                a=tuple(map(said, told_a)),
                b=tuple(map(said, told_b)),
                where=where,
            )
        )
    return tuple(found)


def is_harmless(name: str) -> bool:
    """Tell whether a term may differ without a word."""
    return any(fnmatchcase(name, pattern) for pattern in HARMLESS)


def named(name: str, pattern: str) -> bool:
    """Tell whether `--vary PATTERN` names a term: by its name, a wildcard, its family, or its last word."""
    wanted = pattern.strip().lower()
    return (
        fnmatchcase(name.lower(), wanted)
        or name.lower().startswith(f"{wanted}.")
        or name.lower().rpartition(".")[2] == wanted
    )


def said(value: Value | None) -> str:
    """Write a term's value."""
    if value is None:
        return "not known"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) and math.isfinite(value) else str(value)


def flat(value: Any, name: str = "") -> dict[str, Value | None]:
    """Return a value's leaves by dotted names; a list of leaves is one text, and nothing is left out for being null."""
    plain = _plain(value)
    if isinstance(plain, Mapping):
        found: dict[str, Value | None] = {}
        for key, inner in plain.items():
            found |= flat(inner, f"{name}.{key}" if name else str(key))
        return found
    if isinstance(plain, list | tuple):
        return {name: msgspec.json.encode(plain).decode() if plain else "none"}
    return {name: plain if plain is not None else "none"}


def without(terms: Terms, patterns: Sequence[str]) -> dict[str, Value | None]:
    """Return terms but those that a pattern names, and what lies below them."""
    return {
        name: value
        for name, value in terms.items()
        if not any(fnmatchcase(name, one) or name.startswith(f"{one}.") for one in patterns)
    }


def _values(side: Sequence[Terms], name: str) -> tuple[Value | None, ...]:
    return tuple(dict.fromkeys(terms.get(name) for terms in side))


def _plain(value: Any) -> Any:
    return msgspec.to_builtins(value) if isinstance(value, Struct) else value
