"""Runs of other tools as members: their numbers with their definitions, which decide what may be compared."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import structs

from nameplate.compare.document import NotCompared
from nameplate.compare.measures import MEASURES, Statistic
from nameplate.compare.side import Cell, Member, Observed
from nameplate.compare.terms import Difference, named
from nameplate.exchange.peers.comparable import comparable
from nameplate.exchange.peers.run import Load, Run

# What comparable calls them, and how a term is named.
_NAMES = {"model": "model.name"}


def cells_of_runs(runs: Sequence[Run]) -> tuple[Cell, ...]:
    """Return a cell a run; those of the same load are brought together with others later."""
    return tuple(
        Cell(
            group="trial",
            shape=_shape(run.load),
            load=load_of_run(run.load),
            terms={},
            members=(member_of_run(run, run.label or f"run {at + 1}"),),
        )
        for at, run in enumerate(runs)
    )


def member_of_run(run: Run, key: str) -> Member:
    """Return a run as a member, its numbers as its tool wrote them."""
    return Member(key=key, nonce="", observed=dict(_observed(run)), run=run)


def by_its_run(member: Member) -> Member:
    """Return a trial of ours as a run of any tool, so that definitions stand beside its numbers."""
    return member if member.run is None else structs.replace(member, observed=dict(_observed(member.run)))


def load_of_run(load: Load) -> str:
    """Write a run's load as that of a trial."""
    if load.rate_per_s is not None:
        return f"{load.arrivals or 'open loop'} at {load.rate_per_s:g} requests/s"
    if load.concurrency is not None:
        return f"C={load.concurrency}"
    return "all at once" if load.rate_unbounded else "load not told"


def run_differences(
    a: Iterable[Run], b: Iterable[Run], vary: Sequence[str], where: str
) -> tuple[Difference, ...]:
    """Return what makes runs no fair pair as wholes: model, load, lengths, numbers that contradict each other."""
    held_a, held_b = tuple(a), tuple(b)
    found: dict[str, Difference] = {}
    for one, other in _pairs(held_a, held_b):
        for reason in comparable(one, other).differing:
            name = _NAMES.get(reason.of, reason.of)
            allowed = name != "contradiction" and any(named(name, pattern) for pattern in vary)
            found.setdefault(
                name,
                Difference(
                    name=name,
                    kind="allowed" if allowed else "refused",
                    a=(reason.says if name == "contradiction" else reason.a or "not known",),
                    b=("" if name == "contradiction" else reason.b or "not known",),
                    where=where,
                ),
            )
    return tuple(found.values())


def measures_apart(a: Iterable[Run], b: Iterable[Run]) -> Mapping[str, NotCompared]:
    """Return the measures whose definitions do not let them be compared, with every reason."""
    found: dict[str, NotCompared] = {}
    for one, other in _pairs(tuple(a), tuple(b)):
        for name, reasons in comparable(one, other).measures.items():
            if reasons:
                found.setdefault(name, NotCompared(name, reasons))
        if one.tool != other.tool:
            found.setdefault(
                "error_rate",
                NotCompared("error_rate", (f"{one.tool} and {other.tool} may count other things as failed",)),
            )
    return found


def _pairs(a: Sequence[Run], b: Sequence[Run]) -> Iterator[tuple[Run, Run]]:
    """Yield the first of A with each of B, and with each other of A."""
    for other in (*b, *a[1:]):
        yield a[0], other


def _shape(load: Load) -> str:
    if load.input_tokens is None or load.output_tokens is None:
        return ""
    return f"{load.input_tokens:.0f}/{load.output_tokens:.0f}"


def _observed(run: Run) -> Iterator[tuple[Statistic, Observed]]:
    for measure in run.measures:
        kind = MEASURES.get(measure.name)
        if kind is None or kind.unit != measure.unit:
            continue
        if not kind.percentiles:
            if measure.mean is not None:
                yield Statistic(measure.name), Observed(measure.mean, run.counts.requests)
            continue
        for name in (*measure.percentiles, *measure.infinite):
            yield (
                Statistic(measure.name, name),
                Observed(
                    measure.percentiles.get(name),
                    measure.n,
                    infinite=name in measure.infinite,
                    unsupported=name in measure.unsupported,
                ),
            )
    failed, sent = run.counts.failed, run.counts.requests
    if failed is not None and sent:
        yield Statistic("error_rate"), Observed(failed / sent, sent, count=failed)
