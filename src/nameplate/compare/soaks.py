"""A soak as one member: hours of one load are one trial, for its windows depend on each other."""

from __future__ import annotations

from collections.abc import Iterator

from nameplate.compare.measures import MEASURES, Statistic
from nameplate.compare.side import Cell, Member, Observed
from nameplate.compare.terms import plan_terms, session_of
from nameplate.compare.trials import load_of
from nameplate.measure.soak.result import SoakResult
from nameplate.measure.soak_record import SoakRecord
from nameplate.statistics.censoring import CensoredPercentile

_RATES = {"output tokens that arrived": "output_rate", "ok requests that ended": "request_rate"}


def cells_of_soak(record: SoakRecord) -> tuple[Cell, ...]:
    """Return the soak's one cell; none where nothing was measured."""
    result = record.result
    if result is None or not result.segments:
        return ()
    first = result.segments[0]
    identities = [part.identity for part in result.parts]
    member = Member(
        key=first.segment,
        nonce=record.contract.nonce,
        observed=dict(_observed(result)),
        session=session_of(identities[0]) if identities else None,
    )
    return (
        Cell(
            group="soak",
            shape=str(first.plan.shape),
            load=load_of(first.plan),
            terms={"shape": str(first.plan.shape), **plan_terms(first.plan)},
            members=(member,),
            note="its windows depend on each other: a soak is one trial, however long it is",
        ),
    )


def _observed(result: SoakResult) -> Iterator[tuple[Statistic, Observed]]:
    for latency in result.latencies:
        if latency.metric in MEASURES:
            for held in latency.percentiles:
                yield Statistic(latency.metric, f"p{held.percent:g}"), _percentile(held)
    taken: set[str] = set()
    for rate in result.rates:
        name = _RATES.get(rate.of)
        # The first is over the submission; the drain's tail is no part of the load.
        if name is not None and name not in taken:
            taken.add(name)
            yield Statistic(name), Observed(rate.per_s, result.counts.ok)
    counts = result.counts
    if counts.sent:
        yield Statistic("error_rate"), Observed(counts.failed / counts.sent, counts.sent, count=counts.failed)


def _percentile(held: CensoredPercentile) -> Observed:
    return Observed(
        value=None if held.uncertain else held.best,
        n=held.n,
        infinite=held.best is None and held.n > 0,
        open=held.uncertain and held.best is not None,
        unsupported=not held.supported,
    )
