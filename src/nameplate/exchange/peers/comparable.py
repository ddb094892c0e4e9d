"""May two runs be compared, and which of their measures? Only what has the same definition, and what is known."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from nameplate.exchange.peers.run import Definition, Load, Run

# Loads that are nominally alike may differ by so much: lengths are drawn, counted by another tokenizer, or templated.
LENGTH_TOLERANCE = 0.02

_SAID = {
    "begins": "it begins at",
    "ends": "it ends at",
    "of": "one value is of a",
    "tokens": "tokens are counted by",
    "failures": "failed requests",
    "percentiles": "percentiles are",
    "denominator": "it is divided by",
}


class Reasons(Struct, frozen=True):
    """Hold why two runs are not comparable as wholes, and why each measure of both is not; empty is comparable."""

    whole: tuple[str, ...]
    measures: Mapping[str, tuple[str, ...]]

    @property
    def comparable(self) -> tuple[str, ...]:
        """Name the measures that may be compared; none where the runs differ as wholes."""
        return () if self.whole else tuple(name for name, said in self.measures.items() if not said)


def comparable(a: Run, b: Run) -> Reasons:
    """Return why two runs, and their measures, must not be compared; symmetric but for the order of words."""
    both = [measure.name for measure in a.measures if b.measure(measure.name) is not None]
    failed = bool(_lost(a) or _lost(b))
    measures = {name: _measure(a.definitions.get(name), b.definitions.get(name), failed) for name in both}
    return Reasons(_whole(a, b), measures)


def _whole(a: Run, b: Run) -> tuple[str, ...]:
    reasons = []
    if a.model and b.model and a.model != b.model:
        reasons.append(f"the models differ: {a.model} and {b.model}")
    reasons += _loads(a.load, b.load)
    for run in (a, b):
        if run.contradictions:
            reasons.append(f"the numbers of {run.tool} contradict each other: {run.contradictions[0].detail}")
    return tuple(reasons)


def _loads(a: Load, b: Load) -> list[str]:
    reasons = []
    shapes = _shape(a), _shape(b)
    if None in shapes:
        reasons.append("the load of one of them is not known")
    elif shapes[0] != shapes[1]:
        reasons.append(f"the loads differ: {shapes[0]} and {shapes[1]}")
    for noun, one, other in (
        ("input", a.input_tokens, b.input_tokens),
        ("output", a.output_tokens, b.output_tokens),
    ):
        if one is None or other is None:
            reasons.append(f"the {noun} length of one of them is not known")
        elif abs(one - other) > LENGTH_TOLERANCE * max(one, other):
            reasons.append(f"the {noun} lengths differ: {one:,.0f} and {other:,.0f} tokens")
    return reasons


def _shape(load: Load) -> str | None:
    """Name the load in one line; None where it is not known."""
    if load.rate_per_s is not None:
        bound = f", at most {load.concurrency} at once" if load.concurrency else ""
        return f"{load.rate_per_s:g} requests/s, {load.arrivals or 'arrivals not known'}{bound}"
    if load.concurrency is not None:
        return f"{load.concurrency} at once"
    return "all at once" if load.rate_unbounded else None


def _measure(a: Definition | None, b: Definition | None, failed: bool) -> tuple[str, ...]:
    if a is None or b is None:
        return ("its definition is not known in one of them",)
    reasons = []
    for name in sorted({*a.properties, *b.properties}):
        if name == "failures" and not failed:
            continue
        one, other = getattr(a, name), getattr(b, name)
        if one is None or other is None:
            reasons.append(f"{_SAID[name]} what is not known in one of them")
        elif one != other:
            reasons.append(f"{_SAID[name]} {one} in one, {other} in the other")
        elif name == "failures" and one == "left out":
            reasons.append("requests failed, and are left out of it")
    return tuple(reasons)


def _lost(run: Run) -> int:
    counts = run.counts
    return (counts.failed or 0) + (counts.cancelled or 0) + (counts.unfinished or 0)
