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
from nameplate.verdict.drift import Drift, SeriesDrift, of_client, of_server, worst_of

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
    """Say in a sentence without an end whether the server stayed what it was: its worst series, with size and date."""
    series = of_server(drift)
    found = worst_of(series)
    worst = [held for held in series if held.conclusion == found]
    if found == "steady":
        return "steady: no series of the server changed by as much as matters"
    if found == "undecided":
        named = _named(worst)
        return f"not decided whether it is steady{f' ({named})' if named else ''}"
    said = "; ".join(_said(held) for held in worst)
    open_ = [held for held in series if held.conclusion == "undecided"]
    return f"{said}; not decided: {_named(open_)}" if open_ else said


def client_words(drift: Drift) -> str:
    """Say what became of the client's own series, which tell nothing of the server; nothing where they are steady."""
    said = "; ".join(
        f"{_named([held])}: not decided" if held.conclusion == "undecided" else _said(held)
        for held in of_client(drift)
        if held.conclusion != "steady"
    )
    return f"{said[:1].upper()}{said[1:]}; this is the load process, not the server." if said else ""


def lost_words(result: SoakResult) -> str:
    """Say how often and for how long the server was lost; nothing where it never was."""
    outages = [outage for segment in result.segments for outage in segment.outages]
    if not outages:
        return ""
    times = "" if len(outages) == 1 else f" {len(outages):,} times"
    away = [outage.away_ns for outage in outages if outage.back_ns is not None]
    known_s = sum(away_ns or 0 for away_ns in away) / 1e9
    lasted = f" for {numbers.rough(known_s)}{' in all' if times else ''}" if known_s else ""
    back = "" if len(away) == len(outages) else " and had not come back when observation ended"
    return f"The server was lost{times}{lasted}{back}"


def failed_words(contract: Contract, result: SoakResult) -> str:
    """Say how many requests failed and by what that is allowed; nothing where none did."""
    held, terms = result.counts, contract.soak
    if not held.failed:
        return ""
    said = f"{held.failed:,} of {held.sent:,} requests failed"
    limit = None if terms is None else terms.max_error_rate
    if limit is None or held.failed > limit * held.sent:
        return said
    return f"{said}, which --max-error-rate {limit * 100:.6g}% allows"


def losses(contract: Contract, result: SoakResult) -> str:
    """Say losses of the server and failed requests in a sentence; nothing where there was neither."""
    said = ": ".join(words for words in (lost_words(result), failed_words(contract, result)) if words)
    return f"{said}." if said else ""


def limit_words(contract: Contract, result: SoakResult) -> str:
    """Say from which change on a series fails the soak, with the floors that are above the share asked for."""
    limit = None if contract.soak is None else contract.soak.max_drift
    if limit is None:
        return ""
    floors = [
        f"{SERIES.get(held.series, held.series)} {quantity(held.material, held.unit)}"
        for held in result.drift.series
        if held.counts and on_floor(held)
    ]
    said = f"--max-drift {limit * 100:.6g}% of a series' level"
    return f"{said}, or its floor where that is more ({', '.join(dict.fromkeys(floors))})" if floors else said


def on_floor(held: SeriesDrift) -> bool:
    """Tell whether what matters of a series is its floor and not a share of its level."""
    if held.material is None or held.level is None:
        return False
    return held.material > held.material_share * abs(held.level)


def material_words(held: SeriesDrift) -> str:
    """Say from which change on a series matters: a share of its level, or its floor where that is more."""
    said, share = quantity(held.material, held.unit), f"{held.material_share * 100:.6g}%"
    if held.material is None or held.level is None:
        return said
    return f"{said} (floor; {share} is less)" if on_floor(held) else f"{said} ({share})"


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
