"""What a soak came to, in words: shared by its summary, its live view and whoever watches it."""

from __future__ import annotations

from collections.abc import Iterable

from nameplate.contract.contract import Contract
from nameplate.contract.identity import Identity
from nameplate.contract.quantity import format_bytes
from nameplate.engines.identify import limit_warning
from nameplate.measure.soak.result import SoakResult
from nameplate.measure.soak.window import Spread
from nameplate.report import numbers
from nameplate.verdict.collapse import Collapse
from nameplate.verdict.drift import Drift, SeriesDrift

SERIES = {
    "ttft_p50": "TTFT p50",
    "ttft_p95": "TTFT p95",
    "itl_p50": "ITL p50",
    "output_tokens_per_s": "output",
    "outstanding": "outstanding",
    "waiting": "waiting",
    "kv_floor": "KV floor",
    "client_memory": "client memory",
}


def moment(seconds: float | None) -> str:
    """Write a moment of the soak as h:mm:ss since its first request."""
    if seconds is None:
        return numbers.ABSENT
    sign, whole = ("-" if seconds < -0.5 else ""), round(abs(seconds))
    return f"{sign}{whole // 3600}:{whole // 60 % 60:02d}:{whole % 60:02d}"


def load_of(contract: Contract) -> str:
    """Say a soak's load: `62 outstanding requests of 131072/16384`."""
    terms, shape = contract.soak, contract.shapes[0]
    if terms is None:
        return str(shape)
    if terms.arrivals is not None:
        return f"{shape} as {terms.arrivals}"
    return f"{shape} at concurrency {terms.concurrency:,}"


def quantity(value: float | None, unit: str) -> str:
    """Write a value of a series in its unit."""
    if value is None:
        return numbers.ABSENT
    if unit == "ns":
        return numbers.duration(value) if value >= 0 else f"-{numbers.duration(-value)}"
    if unit == "bytes":
        return format_bytes(value)
    if unit == "1" or unit.startswith("share"):
        return numbers.share(value)
    return numbers.rate(value, unit) if "/" in unit else numbers.count(round(value, 1))


def spread(held: Spread | None) -> str:
    """Write a gauge: its mean, and its largest value where that is another."""
    if held is None:
        return numbers.ABSENT
    mean, most = numbers.count(round(held.mean, 1)), numbers.count(held.max)
    return mean if mean == most else f"{mean} ({most} at most)"


def conclusion(drift: Drift) -> str:
    """Say the drift verdict in a sentence without an end: the worst series first, each with its size and date."""
    worst = [held for held in drift.series if held.conclusion == drift.conclusion]
    if drift.conclusion == "steady":
        return "steady: no series changed by as much as matters"
    if drift.conclusion == "undecided":
        named = _named(worst)
        return f"not decided whether it is steady{f' ({named})' if named else ''}"
    return "; ".join(_said(held) for held in worst)


def _said(held: SeriesDrift) -> str:
    name = SERIES.get(held.series, held.series)
    if held.conclusion == "collapsed" and held.collapse is not None:
        return _collapsed(name, held.collapse, held.unit)
    if held.conclusion == "stepped" and held.shifts:
        steps = ", ".join(
            f"at {moment(shift.at_s)} from {quantity(shift.before, held.unit)} to {quantity(shift.after, held.unit)}"
            for shift in held.shifts
        )
        return f"{name} stepped {steps}"
    share = "" if held.change_share is None else f" by {held.change_share:+.1%}"
    return f"{name} {held.conclusion}{share} ({change(held)})"


def change(held: SeriesDrift) -> str:
    """Say how much a series changed over the span that was judged."""
    if held.change is None:
        return "no trend was estimated"
    sign = "+" if held.change >= 0 else ""
    return f"{sign}{quantity(held.change, held.unit)} over {numbers.rough(held.span_s)}"


def _collapsed(name: str, fell: Collapse, unit: str) -> str:
    until = "to the end" if fell.until_s is None else f"until {moment(fell.until_s)}"
    return (
        f"{name} collapsed at {moment(fell.from_s)}, {until}: {quantity(fell.during, unit)} after "
        f"{quantity(fell.before, unit)}"
    )


def _named(series: Iterable[SeriesDrift]) -> str:
    return ", ".join(dict.fromkeys(SERIES.get(held.series, held.series) for held in series))


def sums(result: SoakResult) -> str:
    """Say the sum of all requests."""
    held = result.counts
    return (
        f"{held.sent:,} sent = {held.ok:,} ok + {held.failed:,} failed + {held.cancelled:,} cancelled + "
        f"{held.unfinished:,} unfinished"
    )


def sooner(result: SoakResult) -> str:
    """Say for how long load was submitted, of how long it was to be."""
    done, planned = numbers.rough(result.submitted_s), numbers.rough(result.planned_s)
    return done if done == planned else f"{done} of {planned}"


# Compressed, as measured: what an output token leaves in raw reads and event times, what a prompt token leaves in its
# kept body, and what a request's row takes.
RAW_TOKEN_BYTES, PROMPT_TOKEN_BYTES, ROW_BYTES = 30.0, 2.5, 1000.0


def foretold(
    contract: Contract, identity: Identity, free_bytes: int, left_ns: int | None, reads_bytes: int = 0
) -> Iterable[str]:
    """Say beforehand how the load fits the server's pool, what an hour takes on disk, and when it will end.

    Of a soak that goes on, `left_ns` are left, and `reads_bytes` of its raw budget are spent.
    """
    terms, shape = contract.soak, contract.shapes[0]
    if terms is None:
        return
    budget, pool = shape.input_tokens + shape.output_tokens, identity.integer("kv_tokens")
    load = f"concurrency {terms.concurrency:,}" if terms.arrivals is None else str(terms.arrivals)
    if pool is None:
        yield f"note: the server does not tell its KV pool, so nobody knows how many requests of {shape} fit ({load})"
    else:
        fit = pool / budget
        yield f"{pool:,} KV tokens hold {fit:.1f} requests of {shape} at their full {budget:,} tokens; {load}"
    limit = limit_warning(identity, terms.concurrency) if terms.arrivals is None else None
    if limit is not None:
        yield f"note: {limit}"
    size = ROW_BYTES + shape.input_tokens * PROMPT_TOKEN_BYTES + shape.output_tokens * RAW_TOKEN_BYTES
    kept = f"about {format_bytes(1000 * size)} on disk for 1,000 requests with everything kept"
    if terms.arrivals is not None:
        kept += f", {format_bytes(3600 * terms.arrivals.rate * size)} an hour"
    budget_bytes = terms.soak.raw_budget_bytes
    if budget_bytes is not None:
        kept += f"; raw reads up to {format_bytes(max(0, budget_bytes - reads_bytes))}"
        kept += f" more of {format_bytes(budget_bytes)}" if reads_bytes else ""
    yield f"{kept}; {format_bytes(free_bytes)} are free"
    soak_ns = terms.soak.duration_ns if left_ns is None else left_ns
    more = "" if left_ns is None else " more"
    yield (
        f"submitting for {numbers.rough(soak_ns / 1e9)}{more}, then waiting at most "
        f"{numbers.rough(terms.soak.drain_ns / 1e9)} for what is out"
    )
