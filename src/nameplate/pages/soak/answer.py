"""The answer of a soak: whether what was promised was kept, for how long, and whether the server stayed what it was."""

from __future__ import annotations

from datetime import UTC, datetime

import htpy as h

from nameplate.contract.contract import Contract
from nameplate.measure.soak.result import Latency, SoakResult
from nameplate.measure.soak_record import SoakRecord
from nameplate.pages.subject import SoakSubject
from nameplate.pages.terms import term
from nameplate.pages.values import ABSENT, document, value
from nameplate.pages.words import badge, tone
from nameplate.report import numbers
from nameplate.report.safe import safe
from nameplate.report.soak import cut_words, misleading_words
from nameplate.report.soak_words import (
    client_words,
    conclusion,
    limit_words,
    load_of,
    losses,
    sooner,
    sums,
)
from nameplate.report.words import promise
from nameplate.statistics.censoring import CensoredPercentile
from nameplate.verdict.drift import of_server, worst_of
from nameplate.verdict.max_drift import judge_worse

RECORD = "soak.json"
_GATES = {
    "max_drift": "the server drifted beyond its limit",
    "collapse": "output collapsed",
    "outstanding": "too many requests were unanswered",
}


def answer_block(subject: SoakSubject) -> h.Element:
    """Return the answer of a soak, of one that runs or never began as well."""
    record, result = subject.record, subject.record.result
    if result is None:
        return h.section(class_="answer tone-none")[
            h.h1[f"Nothing was measured yet of {safe(load_of(record.contract), 300)}"],
            h.p[badge("running" if record.exit_code is None else "interrupted"), " ", _simulated(subject)],
        ]
    verdict = result.verdict
    status = "running" if record.exit_code is None else verdict.status
    said, lost = sentence(record, result), losses(record.contract, result)
    drift = worst_of(of_server(result.drift))
    misleads = misleading_words(result, open_loop=is_open(record.contract))
    told = {slo.detail for slo in verdict.slos}
    return h.section(document(RECORD, subject.name), class_=f"answer tone-{tone(status)}")[
        h.h1[safe(said, 600)],
        h.p(".lead")[safe(lost, 600)] if lost[1:].rstrip(".") not in said else None,
        h.p(".lead")[h.strong[safe(_drift_sentence(result), 900)]],
        h.p[
            badge(status),
            " ",
            badge(f"drift: {drift}", "none" if lost and drift == "steady" else drift_tone(drift)),
            " ",
            _simulated(subject),
            h.span(".soft")[
                f"{sums(result)} · {datetime.fromtimestamp(result.began_wall_ns / 1e9, UTC):%Y-%m-%d}"
            ],
        ],
        h.ul[[h.li[safe(slo.detail, 400)] for slo in verdict.slos]] if verdict.slos else None,
        h.ul(".plain")[
            [
                h.li[safe(said, 1000)]
                for said in (
                    *(
                        said
                        for said in (misleads, client_words(result.drift), _limit(record, result))
                        if said
                    ),
                    *cut_words(record),
                    *(
                        reason
                        for reason in (verdict.reasons if verdict.status != "pass" else ())
                        if reason not in told
                    ),
                )
            ]
        ],
        _numbers(record.contract, result),
    ]


def sentence(record: SoakRecord, result: SoakResult) -> str:
    """Say in a sentence what was promised, for how long it was kept, and under which load."""
    contract, lasted = record.contract, sooner(result)
    load, promised = load_of(contract), promise(contract.slos) if contract.slos else ""
    if record.exit_code is None:
        return f"Not ended: {load}, so far submitted for {lasted}"
    match result.verdict.status:
        case "pass" if promised:
            return f"Kept for {lasted}: {promised}, with {load}"
        case "pass":
            return f"{_passing(contract, result)} in {lasted} of {load}; no latency was promised"
        case "fail":
            return _failing(contract, result, promised, f"{load} for {lasted}")
        case "inconclusive" if result.counts.sent and result.counts.open == result.counts.sent:
            return (
                f"Nothing was shown: not one of {result.counts.sent:,} requests ended, in {lasted} of {load}"
            )
        case "inconclusive":
            return f"Not decided: {promised or 'the gates'}, after {lasted} of {load}"
    return f"Invalid: {lasted} of {load} say nothing of the server"


def _passing(contract: Contract, result: SoakResult) -> str:
    """Say of a soak without a promise what failed all the same, and how many requests were left."""
    held = result.counts
    said = losses(contract, result).rstrip(".") or "No request failed"
    said += "," if held.failed and not held.open else ""
    return f"{said}, {held.open:,} of {held.sent:,} were left without an end," if held.open else said


def _limit(record: SoakRecord, result: SoakResult) -> str:
    limit = limit_words(record.contract, result)
    return f"Drift fails from {limit} on." if limit else ""


def _failing(contract: Contract, result: SoakResult, promised: str, load: str) -> str:
    """Say what did not hold: a promise first, then what stands before all of them, and under which load."""
    broken = [numbers.promise(slo.slo) for slo in result.verdict.slos if slo.status == "fail"]
    failing = {gate.gate for gate in result.verdict.gates if gate.status == "fail"}
    beside = []
    if result.counts.failed and failing & {"max_error_rate", *result.counts.failed_by}:
        lost = losses(contract, result).rstrip(".")
        beside.append(lost[:1].lower() + lost[1:])
        failing -= {"max_error_rate", *result.counts.failed_by}
    if "max_drift" in failing and _only_client(result):
        beside.append("the load process, not the server, drifted beyond the limit")
        failing -= {"max_drift"}
    beside += [_GATES.get(name, f"{name.replace('_', ' ')} does not hold") for name in sorted(failing)]
    if broken:
        said = "; ".join((f"Not kept: {', '.join(broken)}", *beside))
        return f"{said} ({load})"
    kept = f"; {promised} itself was kept" if promised else ""
    said = " and ".join(beside)
    return f"{said[:1].upper()}{said[1:]}{kept} ({load})"


def _only_client(result: SoakResult) -> bool:
    """Tell whether no series of the server is beyond the limit on drift."""
    return not any(judge_worse(held).status == "fail" for held in of_server(result.drift))


def _drift_sentence(result: SoakResult) -> str:
    said = conclusion(result.drift)
    if any(segment.outages for segment in result.segments):
        said = f"while it answered: {said}"
    return f"{said[:1].upper()}{said[1:]}."


def drift_tone(conclusion: str) -> str:
    """Return a status whose tone fits a conclusion on drift."""
    return {"steady": "steady", "collapsed": "collapsed", "undecided": "none"}.get(conclusion, "drifting")


def _simulated(subject: SoakSubject) -> h.Node:
    return (badge("simulated time", "none"), " ") if subject.simulated else None


def is_open(contract: Contract) -> bool:
    """Tell whether a soak's load is an open loop, whose TTFT counts from the schedule."""
    return contract.soak is not None and contract.soak.arrivals is not None


def ttft_of(contract: Contract) -> str:
    """Return the metric that TTFT is judged by."""
    return "ttft_from_schedule" if is_open(contract) else "ttft"


def _numbers(contract: Contract, result: SoakResult) -> h.Element:
    """Return throughput and wait together, as four numbers."""
    found = [
        (at, held) for at, held in enumerate(result.latencies) if held.metric == ttft_of(contract) and held.n
    ]
    output = next((at for at, rate in enumerate(result.rates) if "token" in rate.of), None)
    cards: list[h.Element] = []
    if output is not None:
        rate = result.rates[output]
        cards.append(
            _card(
                "Output, tok/s",
                value(numbers.rate(rate.per_s), rate.per_s, f"result.rates.{output}.per_s"),
                f"{'estimated, ' if rate.estimated else ''}over {rate.seconds:,.0f} s: all of the server, "
                "not of one user",
            )
        )
    for at, held in found:
        cards += [_percentile_card(held, at, percent) for percent in (50.0, 95.0)]
    completed = result.counts.ok
    cards.append(
        _card(
            "Requests that ended well",
            value(f"{completed:,}", completed, "result.counts.ok"),
            f"of {result.counts.sent:,} sent",
        )
    )
    return h.div(".cards.four")[cards]


def _percentile_card(held: Latency, at: int, percent: float) -> h.Element:
    name = "TTFT from schedule" if held.metric == "ttft_from_schedule" else "TTFT"
    found = next((n for n, one in enumerate(held.percentiles) if one.percent == percent), None)
    if found is None:
        return _card(term(name, f"{name} p{percent:g}"), ABSENT, "")
    one = held.percentiles[found]
    said = numbers.duration(one.completed_only)
    path = f"result.latencies.{at}.percentiles.{found}.completed_only"
    return _card(
        term(name, f"{name} p{percent:g}"),
        value(said if one.supported else f"{said}{numbers.UNSUPPORTED}", one.completed_only, path),
        bounds_words(one),
    )


def bounds_words(one: CensoredPercentile) -> str:
    """Say what a percentile is of, and between what it lies with those that have no end."""
    if one.n == one.completed:
        return f"all {one.n:,} requests"
    best, worst = (
        numbers.NEVER if bound is None else numbers.duration(bound) for bound in (one.best, one.worst)
    )
    return (
        f"of {one.completed:,} completed alone; with the other {one.n - one.completed:,}: "
        f"{numbers.between(best, worst)}"
    )


def _card(name: h.Node, said: h.Node, under: str) -> h.Element:
    return h.div(".card")[h.div[name], h.div(".big")[said], h.div(".soft")[safe(under, 300)]]
