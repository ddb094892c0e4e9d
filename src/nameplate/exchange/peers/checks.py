"""Does a run contradict itself? Its sums, rates, percentiles and counts against each other, and against its records."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise

from nameplate.exchange.peers.building import percent_of
from nameplate.exchange.peers.records import Read, by_its_own, inverse_cdf, linear
from nameplate.exchange.peers.run import Check, CheckStatus, Measure, Run
from nameplate.exchange.peers.sources import INVERSE_CDF, LEFT_OUT, LINEAR, REQUEST, USAGE, WINDOW

# Tools round, and take a run's begin and end at slightly different moments.
TOLERANCE = 0.01
# What is recomputed from the same values may differ by rounding alone: microseconds in files that round.
SAME, SAME_NS = 0.001, 2_000.0
_SHOWN = 3


def checks_of(read: Read) -> tuple[Check, ...]:
    """Return every check of a run whose numbers are there; what is absent is not checked."""
    run = read.run
    found = [*_order(run), *_rates(run), *_counts(run), *_concurrency(run), *_records(read)]
    return tuple(found)


def _order(run: Run) -> Iterator[Check]:
    if not run.measures:
        return
    wrong = [said for measure in run.measures for said in _disorder(measure)]
    ttft, e2e = run.measure("ttft"), run.measure("e2e")
    if ttft is not None and e2e is not None and ttft.mean and e2e.mean and ttft.mean > e2e.mean * (1 + SAME):
        wrong.append("the mean ttft is above the mean e2e")
    yield _check("order", wrong, "percentiles rise, and lie with the means within their extremes")


def _disorder(measure: Measure) -> Iterator[str]:
    values = [
        (key, measure.percentiles[key])
        for key in sorted(measure.percentiles, key=lambda k: percent_of(k) or 0)
    ]
    low = [("min", measure.min)] if measure.min is not None else []
    high = [("max", measure.max)] if measure.max is not None else []
    ladder = [*low, *values, *high]
    for (name, value), (above, next_value) in pairwise(ladder):
        if value > next_value + _slack(next_value):
            yield f"{measure.name}: {name} is above {above}"
    if measure.mean is not None:
        if measure.min is not None and measure.mean < measure.min - _slack(measure.min):
            yield f"{measure.name}: the mean is below min"
        if measure.max is not None and measure.mean > measure.max + _slack(measure.max):
            yield f"{measure.name}: the mean is above max"
    if any(value < 0 for _, value in ladder):
        yield f"{measure.name}: a value is below zero"


def _slack(value: float) -> float:
    return abs(value) * 1e-9


def _rates(run: Run) -> Iterator[Check]:
    window = run.window_s
    if not window:
        return
    tokens, tokens_in = _mean(run, "total_output_tokens"), _mean(run, "total_input_tokens")
    both = tokens + tokens_in if tokens is not None and tokens_in is not None else None
    completed = float(run.counts.completed) if run.counts.completed is not None else None
    for name, counted, noun in (
        ("output_rate", tokens, "output tokens"),
        ("input_rate", tokens_in, "input tokens"),
        ("total_rate", both, "tokens"),
        ("request_rate", completed, "completed requests"),
    ):
        told = _mean(run, name)
        if told is None or counted is None:
            continue
        would = counted / window
        said = f"{counted:,.0f} {noun} in {window:,.2f} s are {would:,.3f}/s; the file says {told:,.3f}/s"
        if abs(told - would) <= TOLERANCE * max(told, would):
            yield Check(name, "holds", said)
        elif _plainly_divided(run, name):
            yield Check(name, "contradicted", said)
        else:
            yield Check(name, "unverified", f"{said}, by its own definition, which is no count by a time")
    mean, peak = _mean(run, "output_rate"), _mean(run, "peak_output_rate")
    if mean is not None and peak:
        # Seconds are counted from the first start: the fullest of them holds at least an even share of all tokens.
        least = mean * window / (math.ceil(window) + 1)
        said = f"the fullest second holds {peak:,.1f}, the mean of all is {mean:,.1f}/s"
        low = peak < least * (1 - TOLERANCE)
        yield Check(
            "peak", "contradicted" if low else "holds", said + (": it is no count of tokens" if low else "")
        )


def _counts(run: Run) -> Iterator[Check]:
    counts = run.counts
    if counts.requests is None or counts.completed is None:
        return
    parts = (counts.completed, counts.failed, counts.cancelled, counts.unfinished)
    if counts.failed is None:
        yield Check(
            "counts",
            "unverified",
            f"{counts.completed:,} of {counts.requests:,} completed; the rest is not told",
        )
        return
    total = sum(part or 0 for part in parts)
    said = f"{counts.requests:,} requests, {counts.completed:,} completed, {counts.failed:,} failed"
    if counts.cancelled or counts.unfinished:
        said += f", {(counts.cancelled or 0) + (counts.unfinished or 0):,} cut"
    yield Check("counts", "holds" if total == counts.requests else "contradicted", said)
    for measure in run.measures:
        definition = run.definitions.get(measure.name)
        one_each = definition is not None and definition.of == REQUEST and definition.failures == LEFT_OUT
        if one_each and measure.n is not None and measure.n > counts.completed:
            yield Check(
                "counts",
                "contradicted",
                f"{measure.name} is of {measure.n:,} requests, {counts.completed:,} completed",
            )


def _concurrency(run: Run) -> Iterator[Check]:
    """Hold the requests in flight (rate x mean latency) against what was allowed."""
    limit, rate, latency = run.load.concurrency, _mean(run, "request_rate"), _mean(run, "e2e")
    if not limit or rate is None or latency is None or not _plainly_divided(run, "request_rate"):
        return
    flight = rate * latency / 1e9
    said = f"rate x mean latency is {flight:,.2f} requests in flight, {limit:,} were allowed"
    yield Check("concurrency", "contradicted" if flight > limit * (1 + TOLERANCE) else "holds", said)


def _records(read: Read) -> Iterator[Check]:
    """Compute the file's own statistics anew from its records, by its own definition."""
    run = read.run
    measured = read.measured
    if not measured or not run.measures:
        return
    ok = sum(row.outcome == "ok" for row in measured)
    if run.counts.completed is not None:
        status: CheckStatus = "holds" if ok == run.counts.completed else "contradicted"
        if ok < run.counts.completed and run.tool == "GuideLLM":
            # A report can be asked to list a sample of the requests alone.
            status = "unverified"
        yield Check(
            "records", status, f"{ok:,} records of completed requests, {run.counts.completed:,} completed"
        )
        if status != "holds":
            return
    tokens = [row.output_tokens for row in measured if row.outcome == "ok"]
    total = _mean(run, "total_output_tokens")
    if total is not None and all(count is not None for count in tokens):
        summed = sum(count or 0 for count in tokens)
        off = abs(summed - total) > 0.5
        said = f"the records hold {summed:,} output tokens, the total is {total:,.0f}"
        yield Check("output tokens", "contradicted" if off else "holds", said)
    wrong: list[str] = []
    right: list[str] = []
    for measure in run.measures:
        found = _recount(read, measure)
        if found is not None:
            (wrong if found else right).append(found or measure.name)
    if wrong or right:
        yield _check(
            "percentiles", wrong, f"recomputed from the records by its own rule: {', '.join(right)} agree"
        )


def _recount(read: Read, measure: Measure) -> str | None:
    """Say where a measure's percentiles are not those of the records; empty where they are, None where unknown."""
    definition = read.run.definitions.get(measure.name)
    if definition is None or not measure.percentiles:
        return None
    if definition.of != REQUEST and measure.name != "chunk_gaps":
        return None
    if measure.name in ("e2e", "itl", "tpot") and not read.exact_ends:
        return None
    if read.raw and definition.tokens not in (None, USAGE):
        # The tool counted tokens itself, the events hold the server's count: what divides by them differs.
        return None
    method = {LINEAR: linear, INVERSE_CDF: inverse_cdf}.get(definition.percentiles or "")
    values = by_its_own(read, measure.name)
    if method is None or not values or (measure.n is not None and measure.n != len(values)):
        return None
    for key, told in measure.percentiles.items():
        would = method(values, percent_of(key) or 0.0)
        if abs(would - told) > max(SAME * max(would, told), SAME_NS):
            return f"{measure.name} {key} is {told / 1e6:,.3f} ms, its records give {would / 1e6:,.3f} ms"
    return ""


def _plainly_divided(run: Run, name: str) -> bool:
    """Tell whether a rate is a count by the time in which all of it happened."""
    definition = run.definitions.get(name)
    return definition is None or definition.denominator != WINDOW


def _mean(run: Run, name: str) -> float | None:
    measure = run.measure(name)
    return measure.mean if measure is not None else None


def _check(name: str, wrong: list[str], good: str) -> Check:
    if not wrong:
        return Check(name, "holds", good)
    more = f", and {len(wrong) - _SHOWN} more" if len(wrong) > _SHOWN else ""
    return Check(name, "contradicted", "; ".join(wrong[:_SHOWN]) + more)
