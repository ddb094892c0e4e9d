"""Metric families as OpenMetrics text: a line a sample, nothing for what is absent."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Literal

from msgspec import Struct

from nameplate.exchange.loose import plain


class Sample(Struct, frozen=True):
    """Hold one sample; `at_ns` is its wall time, None where it has none."""

    labels: Mapping[str, str]
    value: float
    at_ns: int | None = None


class Family(Struct, frozen=True):
    """Hold a family; `name` ends in `unit` where it has one, without the suffix that its type adds."""

    name: str
    type: Literal["gauge", "counter", "info"]
    unit: str
    help: str
    samples: tuple[Sample, ...]


_SUFFIX = {"gauge": "", "counter": "_total", "info": "_info"}


def text_of(families: Iterable[Family]) -> Iterator[bytes]:
    """Yield the text of all families that have a sample, with the end marker."""
    for family in families:
        if family.samples:
            yield "".join(f"{line}\n" for line in _lines(family)).encode()
    yield b"# EOF\n"


def _lines(family: Family) -> Iterator[str]:
    yield f"# TYPE {family.name} {family.type}"
    if family.unit:
        yield f"# UNIT {family.name} {family.unit}"
    yield f"# HELP {family.name} {_escaped(plain(family.help))}"
    name = family.name + _SUFFIX[family.type]
    for sample in family.samples:
        labels = ",".join(f'{key}="{_escaped(plain(value))}"' for key, value in sample.labels.items())
        # Seconds with three decimals: a double does not hold nanoseconds since 1970.
        at = "" if sample.at_ns is None else f" {sample.at_ns / 1e9:.3f}"
        yield f"{name}{{{labels}}} {_number(sample.value)}{at}"


def _number(value: float) -> str:
    return "+Inf" if math.isinf(value) else repr(value)


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
