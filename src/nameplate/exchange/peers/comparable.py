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


class Reason(Struct, frozen=True):
    """Say in words why two runs are not comparable; `of` names what it is about, with the value of each."""

    of: str
    says: str
    a: str | None = None
    b: str | None = None


class Reasons(Struct, frozen=True):
    """Hold why two runs are not comparable as wholes, and why each measure of both is not; empty is comparable."""

    differing: tuple[Reason, ...]
    measures: Mapping[str, tuple[str, ...]]

    @property
    def whole(self) -> tuple[str, ...]:
        """Return in words why they are not comparable as wholes."""
        return tuple(reason.says for reason in self.differing)

    @property
    def comparable(self) -> tuple[str, ...]:
        """Name the measures that may be compared; none where the runs differ as wholes."""
        return () if self.differing else tuple(name for name, said in self.measures.items() if not said)


def comparable(a: Run, b: Run) -> Reasons:
    """Return why two runs, and their measures, must not be compared; symmetric but for the order of words."""
    both = [measure.name for measure in a.measures if b.measure(measure.name) is not None]
    failed = bool(_lost(a) or _lost(b))
    measures = {name: _measure(a.definitions.get(name), b.definitions.get(name), failed) for name in both}
    return Reasons(_whole(a, b), measures)


def _whole(a: Run, b: Run) -> tuple[Reason, ...]:
    reasons = []
    if a.model and b.model and a.model != b.model:
        reasons.append(Reason("model", f"the models differ: {a.model} and {b.model}", a.model, b.model))
    reasons += _loads(a.load, b.load)
    for run in (a, b):
        if run.contradictions:
            said = f"the numbers of {run.tool} contradict each other: {run.contradictions[0].detail}"
            reasons.append(Reason("contradiction", said))
    return tuple(reasons)


def _loads(a: Load, b: Load) -> list[Reason]:
    reasons = []
    one, other = _shape(a), _shape(b)
    if one is None or other is None:
        reasons.append(Reason("load", "the load of one of them is not known", one, other))
    elif one != other:
        reasons.append(Reason("load", f"the loads differ: {one} and {other}", one, other))
    for noun, first, second in (
        ("input", a.input_tokens, b.input_tokens),
        ("output", a.output_tokens, b.output_tokens),
    ):
        said = None
        if first is None or second is None:
            said = f"the {noun} length of one of them is not known"
        elif abs(first - second) > LENGTH_TOLERANCE * max(first, second):
            said = f"the {noun} lengths differ: {first:,.0f} and {second:,.0f} tokens"
        if said is not None:
            reasons.append(Reason(f"shape.{noun}_tokens", said, _tokens(first), _tokens(second)))
    return reasons


def _tokens(length: float | None) -> str | None:
    return None if length is None else f"{length:,.0f}"


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
