"""The words of a contract: what a number was promised under, and everything else that was fixed for it."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from nameplate.contract.contract import Contract
from nameplate.contract.matrix import Matrix, exact_label
from nameplate.contract.quantity import format_limit
from nameplate.contract.rules import Rules
from nameplate.contract.sampling import Sampling
from nameplate.report import numbers
from nameplate.report.safe import safe
from nameplate.report.soak_words import load_of
from nameplate.report.words import promise

# Of the rules these decide what a confirmed number is, or what a trial measures; the rest is how it is searched for.
_RULING = (
    "confirmations",
    "extra_confirmations",
    "tolerance",
    "requests",
    "start",
    "confidence",
    "loop_limit",
)
_OF_MATRIX = ("requests", "unique_percent", "warm_streams", "output_tokens", "loop_limit")
_LIMIT = 200


def conditions(contract: Contract, *, alone: bool = False) -> str:
    """Say everything but shape and promise that a number of this contract belongs to: defaults are left unsaid.

    What one request `alone` does depends on no load and on no rule about levels.
    """
    said = [str(contract.cache), contract.target.api]
    said += _changed(contract.sampling, Sampling())
    if not alone:
        said += _changed(contract.rules, Rules(), _RULING)
    if contract.rate is not None and not alone:
        said.append(f"{contract.rate.spread} arrivals within {contract.rate.resolution:.3g}")
    if contract.soak is not None:
        said.append(f"for {format_limit(contract.soak.soak.duration_ns)}")
    if contract.dataset is not None:
        said.append(f"data set {contract.dataset}")
    if contract.target.extra_body:
        said.append(f"body {_plain(contract.target.extra_body)}")
    return safe(", ".join(said), _LIMIT)


def matrix_conditions(matrix: Matrix) -> list[str]:
    """Say how the cells of a matrix were measured, where it is not the default way."""
    window = f"{matrix.window_ns / 1e9:g} s windows" if matrix.requests is None else "counted requests"
    return [window, *_changed(matrix, Matrix(), _OF_MATRIX)]


def extent(contexts: tuple[int, ...], concurrencies: tuple[int, ...]) -> str:
    """Say which cells a best one was chosen from."""
    return f"of {'/'.join(map(exact_label, contexts))} by {'/'.join(map(str, concurrencies))}"


def terms(contract: Contract) -> tuple[tuple[str, str], ...]:
    """Return a contract's terms as named words, in the order in which people ask for them."""
    sampling = msgspec.to_builtins(contract.sampling)
    found: list[tuple[str, str]] = []
    if contract.slos:
        found.append(("promise", promise(contract.slos)))
    if contract.shapes:
        found.append(("shapes", ", ".join(map(str, contract.shapes))))
    if contract.soak is not None:
        found.append(("load", f"{load_of(contract)} for {format_limit(contract.soak.soak.duration_ns)}"))
    elif contract.rate is not None:
        found.append(("load", f"open loop, {contract.rate.spread} arrivals"))
    elif contract.curve is not None:
        found.append(("load", f"curve by {contract.curve.kind}"))
    elif contract.speed is not None:
        found.append(
            ("load", extent(contract.speed.decode_contexts, contract.speed.concurrencies).removeprefix("of "))
        )
        found.append(("window", ", ".join(matrix_conditions(contract.speed))))
    else:
        found.append(("load", f"closed loop, {contract.rules.start}"))
    if contract.slos and contract.soak is None:
        found.append(("rule", _rule(contract)))
    found += [
        ("cache", f"{contract.cache}, flush {contract.cache.flush}"),
        ("api", contract.target.api),
        (
            "sampling",
            ", ".join(
                f"{name.replace('_', ' ')} {_plain(value)}"
                for name, value in sampling.items()
                if value is not None
            ),
        ),
    ]
    if contract.dataset is not None:
        found.append(("data set", contract.dataset))
    if contract.target.extra_body:
        found.append(("body", _plain(contract.target.extra_body)))
    return tuple((name, safe(words, _LIMIT)) for name, words in found)


def _rule(contract: Contract) -> str:
    rules = contract.rules
    said = numbers.count(rules.confirmations, "confirmation")
    return said if rules.confidence is None else f"{said}, certified with {rules.confidence:.6g}"


def _changed(held: Struct, default: Struct, names: tuple[str, ...] | None = None) -> list[str]:
    """Say the fields that are not as they are by default."""
    values, usual = msgspec.to_builtins(held), msgspec.to_builtins(default)
    return [
        f"{name.replace('_', ' ')} {_plain(values[name])}"
        for name in (names or tuple(values))
        if values[name] != usual[name]
    ]


def _plain(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return {None: "not sent", True: "on", False: "off"}[value]
    if isinstance(value, float):
        return f"{value:.6g}"
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
