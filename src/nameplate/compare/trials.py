"""Counted trials as members of cells: those of a study's confirmed levels, of a curve, or single ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from nameplate.compare.measures import KNOWN, MEASURES, Statistic
from nameplate.compare.side import Cell, Member, Observed
from nameplate.compare.terms import plan_terms, session_of
from nameplate.contract.contract import Contract
from nameplate.contract.plan import Role, TrialPlan
from nameplate.contract.slo import Slo
from nameplate.evidence.header import TrialHeader
from nameplate.evidence.rows import RequestRow
from nameplate.exchange.peers.own import run_of
from nameplate.measure.latency import Latencies
from nameplate.measure.rates import Rate
from nameplate.measure.result import TrialResult
from nameplate.measure.sustained import met_all
from nameplate.statistics.percentile import Distribution
from nameplate.verdict.trial import SloResult
from nameplate.wire.outcome import Outcome

# A locator only looks for the neighbourhood, and may end early; held streams are read off their matrix.
COUNTED: Mapping[Role, str] = {
    "confirmation": "trial",
    "single": "trial",
    "level": "trial",
    "baseline": "baseline",
}
_CUT = (Outcome.cancelled.value, Outcome.unfinished.value)
# In a closed loop a request is due when its slot is free: what counts from schedule differs by our lateness alone.
_OPEN_ONLY = ("ttft_from_schedule", "e2e_from_schedule")


def cells_of(trials: Iterable[tuple[TrialHeader, TrialResult, Sequence[RequestRow]]]) -> tuple[Cell, ...]:
    """Group trials of one result by what was asked of the server; invalid and interrupted ones are left out, and named.

    Trials of other roles are passed over. The rows are needed for goodput alone, and may be empty.
    """
    found: dict[tuple[str, str, str], tuple[TrialPlan, list[Member], list[str]]] = {}
    for header, result, rows in trials:
        plan = result.plan
        group = COUNTED.get(plan.role)
        if group is None:
            continue
        _, members, left_out = found.setdefault((group, str(plan.shape), load_of(plan)), (plan, [], []))
        why = _no_member(result)
        if why:
            left_out.append(f"{plan.key}: {why}")
        else:
            members.append(member_of(header, result, rows))
    return tuple(
        Cell(
            group=group,
            shape=shape,
            load=load,
            terms={"shape": shape, **plan_terms(plan)},
            members=tuple(members),
            left_out=tuple(left_out),
        )
        for (group, shape, load), (plan, members, left_out) in found.items()
    )


def member_of(header: TrialHeader, result: TrialResult, rows: Sequence[RequestRow]) -> Member:
    """Return a trial as a member: every number that a comparison may take from it."""
    observed = dict(_latencies(result))
    observed |= _rates(result, header.contract, rows)
    observed |= {Statistic("error_rate"): _errors(result)}
    return Member(
        key=result.plan.key,
        nonce=header.contract.nonce,
        observed=observed,
        session=session_of(result.identity_before),
        run=run_of(result, header),
    )


def load_of(plan: TrialPlan) -> str:
    """Write a plan's load: `C=8`, `2.5 requests/s, poisson arrivals`."""
    return f"C={plan.concurrency}" if plan.arrivals is None else str(plan.arrivals)


def promises_of(slos: Iterable[Slo], *, open_loop: bool = False) -> tuple[Statistic, ...]:
    """Return what a contract's SLOs judge; in an open loop they count from when a request was due."""
    found = []
    for slo in slos:
        due = f"{slo.metric}_from_schedule"
        name = due if open_loop and due in MEASURES else slo.metric
        found.append(Statistic(name, "" if slo.percentile is None else f"p{slo.percentile:g}"))
    return tuple(dict.fromkeys(found))


def distribution(held: Distribution, *, cut: bool = False) -> dict[str, Observed]:
    """Return a distribution's percentiles; one that is infinite is open where requests were `cut` by us."""
    if held.n == 0:
        return {}
    return {
        name: Observed(
            value=getattr(held, name),
            n=held.n,
            infinite=getattr(held, name) is None and not cut,
            open=getattr(held, name) is None and cut,
            unsupported=name in held.unsupported,
        )
        for name in KNOWN
    }


def _no_member(result: TrialResult) -> str:
    if result.verdict.status == "invalid":
        return "invalid: " + "; ".join(result.verdict.reasons[:2])
    if result.interrupted:
        return "interrupted"
    return "" if result.measurement.correctness.sent else "it sent nothing"


def _latencies(result: TrialResult) -> dict[Statistic, Observed]:
    correctness, whole = result.measurement.correctness, result.measurement.latencies.whole
    # What our own deadlines cut might have ended well, too: at least it waited so long.
    cut = any(word in _CUT or word.startswith("timed_out_") for word in correctness.outcomes)
    found = {
        Statistic(name, percentile): seen
        for name in _names(result, whole)
        for percentile, seen in distribution(getattr(whole, name), cut=cut).items()
    }
    for judged in result.verdict.slos:
        (statistic,) = promises_of([judged.slo], open_loop=result.plan.arrivals is not None)
        if statistic.percentile:
            found.setdefault(statistic, _judged(judged))
    return found


def _names(result: TrialResult, whole: Latencies) -> list[str]:
    names = [name for name, kind in MEASURES.items() if kind.percentiles]
    if result.plan.arrivals is None:
        names = [name for name in names if name not in _OPEN_ONLY]
    if whole.first_answer == whole.ttft:
        names.remove("first_answer")
    return [name for name in names if getattr(whole, name) is not None]


def _judged(judged: SloResult) -> Observed:
    """Return the value that an SLO was judged by."""
    sample = judged.whole
    known = sample.best == sample.worst and sample.best_infinite == sample.worst_infinite
    return Observed(
        value=sample.best if known else None,
        n=sample.n,
        infinite=known and sample.best_infinite,
        open=not known,
        unsupported=not sample.supported,
    )


def _rates(result: TrialResult, contract: Contract, rows: Sequence[RequestRow]) -> dict[Statistic, Observed]:
    held, alone = result.measurement.rates, result.measurement.single_user
    told = {
        "output_rate": _per_s(held.tokens_whole),
        "output_rate_steady": _per_s(held.tokens_steady),
        "request_rate": _per_s(held.requests_whole),
        "goodput": _goodput(result, contract, rows),
        "prefill_rate": None if alone is None else alone.prefill_counted.p50,
        "decode_rate": None if alone is None else alone.decode,
    }
    n = result.measurement.correctness.sent
    return {Statistic(name): Observed(value, n) for name, value in told.items() if value is not None}


def _goodput(result: TrialResult, contract: Contract, rows: Sequence[RequestRow]) -> float | None:
    """Return requests that met every SLO a second: of a closed loop over the whole run, as its other rates are."""
    if result.measurement.sustained is not None:
        return result.measurement.sustained.goodput
    window = result.measurement.rates.requests_whole
    measured = [row for row in rows if row.measured]
    if not contract.slos or window is None or len(measured) != result.measurement.correctness.sent:
        return None
    met = sum(met_all(row, contract.slos, result.ended_ns) for row in measured)
    return met * 1e9 / window.window.length_ns


def _errors(result: TrialResult) -> Observed:
    counted = result.measurement.correctness
    return Observed(counted.failed / counted.sent, counted.sent, count=counted.failed)


def _per_s(rate: Rate | None) -> float | None:
    return None if rate is None else rate.per_s
