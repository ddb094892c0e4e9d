"""One trial: the verdict first, then every measured number with what it was counted over."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Group, RenderableType
from rich.text import Text

from nameplate.measure.latency import PhaseLatencies
from nameplate.measure.rates import Rate
from nameplate.measure.result import TrialResult
from nameplate.report import numbers
from nameplate.report.boundary import judged
from nameplate.report.latencies import latency_cells, latency_notes
from nameplate.report.layout import Cell, Command, bulleted, facts, heading, indented, stacked
from nameplate.report.open_loop import breakdown, open_latencies
from nameplate.report.safe import safe, safe_text
from nameplate.report.style import status, style_of, warnings
from nameplate.report.table import Column, FittingTable
from nameplate.report.waits import waits_table
from nameplate.report.words import promise
from nameplate.report.work import load_of, start_of, work_lines
from nameplate.statistics.percentile import Distribution
from nameplate.verdict.gate import MEANING

_REASON_LIMIT = 1500

LATENCIES = (
    ("TTFT", "ttft"),
    ("first answer", "first_answer"),
    ("ITL", "itl"),
    ("TPOT", "tpot"),
    ("longest gap", "longest_gap"),
    ("E2E", "e2e"),
)


def trial_summary(result: TrialResult, directory: Path | str) -> RenderableType:
    """Return the whole measurement of one trial; `directory` is where its evidence is."""
    latencies = result.measurement.latencies
    return stacked(
        (
            _answer(result),
            _latencies(latencies) if result.plan.arrivals is None else open_latencies(latencies),
            breakdown(result.measurement.breakdown),
            waits_table(result.measurement.waits),
            _rates(result),
            Group(heading("What was done"), facts(work_lines(result))),
            _gates(result),
            warnings(result.warnings),
            _ending(directory),
        )
    )


def _answer(result: TrialResult) -> RenderableType:
    plan, verdict = result.plan, result.verdict
    first = Text(verdict.status, style=style_of(verdict.status))
    what = f"{plan.requests:,} requests {load_of(plan)}"
    if verdict.slos and verdict.status == "invalid":
        promised = promise([one.slo for one in verdict.slos])
        first.append(f": {what}; no verdict on {promised}", style="default bold")
    elif verdict.slos:
        said = ", ".join(
            f"{numbers.promise(one.slo)}: {judged(one, one.whole)} (n {one.whole.n:,})"
            for one in verdict.slos
        )
        first.append(f": {what}; {said}", style="default bold")
    else:
        first.append(f": {what}; no SLO was given, so the gates alone decide", style="default bold")
    lines: list[RenderableType] = [first]
    if result.interrupted:
        lines.append(
            Text("The trial was interrupted: not all of its load was carried.", style=style_of("interrupted"))
        )
    if verdict.status != "pass":
        # What an SLO came to stands in the first line.
        told = tuple(f"{one.slo}: " for one in verdict.slos)
        reasons = [reason for reason in verdict.reasons if not reason.startswith(told)]
        lines += [indented(bulleted("-", "", safe_text(reason, "", _REASON_LIMIT))) for reason in reasons]
    lines.append(
        Text(
            f"{safe(plan.key, 200)}: {numbers.count(plan.warmup, 'warm-up')} at concurrency one, "
            f"then {start_of(plan)}; {numbers.rough(result.elapsed_s)} in all.",
            style="dim",
        )
    )
    return Group(*lines)


def _latencies(latencies: PhaseLatencies) -> RenderableType:
    whole, opening, steady = latencies.whole, latencies.opening, latencies.steady
    columns = [
        Column("\nlatency", side="left"),
        Column("\nn"),
        Column("whole\np50"),
        Column("\np90", rank=3),
        Column("\np95"),
        Column("\np99"),
        Column("opening\np50", rank=4),
        Column("opening\np95", rank=1),
        Column("steady\np50", rank=4),
        Column("steady\np95", rank=1),
        Column("\nlargest", rank=5),
    ]
    rows: list[Sequence[Cell]] = []
    for label, name in LATENCIES:
        held: Distribution = getattr(whole, name)
        first: Distribution = getattr(opening, name)
        later: Distribution = getattr(steady, name)
        # A model that does not reason answers with its first token: the row would only repeat the TTFT.
        if name == "first_answer" and held == whole.ttft:
            continue
        *quantiles, largest = latency_cells(held)
        phases = [numbers.percentile(one, p) for one in (first, later) for p in ("p50", "p95")]
        rows.append((label, f"{held.n:,}", *quantiles, *phases, largest))
    note = (
        f"opening: the first request of each slot (n {opening.requests:,}); "
        f"steady: the rest (n {steady.requests:,})"
    )
    return Group(
        heading("Latency, by the phase in which requests were sent"),
        indented(FittingTable(columns, rows)),
        *latency_notes(rows, [note], whole),
    )


def _rates(result: TrialResult) -> RenderableType:
    rates, user = result.measurement.rates, result.measurement.latencies.whole.per_user
    rows = [
        _rate("output, whole run", rates.tokens_whole, "tok/s"),
        _rate("output, steady", rates.tokens_steady, "tok/s"),
    ]
    whole, completed = rates.tokens_whole, rates.tokens_completed
    if whole is not None and completed is not None and completed.counted != whole.counted:
        rows.append(_rate("output, completed only", completed, "tok/s"))
    rows += [
        _rate("requests, whole run", rates.requests_whole, "req/s"),
        _rate("requests, steady", rates.requests_steady, "req/s"),
        (
            "per user, p50",
            f"{numbers.percentile(user, 'p50')} tok/s",
            f"1 / ITL of each request, n {user.n:,}",
        ),
        ("per user, slowest", numbers.rate(user.min, "tok/s"), ""),
    ]
    alone = result.measurement.single_user
    if alone is not None:
        spread = alone.prefill_counted
        cached = "; no cached tokens assumed" if alone.cached_assumed else ""
        low, high = numbers.rate(spread.min, "tok/s"), numbers.rate(spread.max, "tok/s")
        over = f"(prompt - cached tokens) / TTFT, p50; {numbers.between(low, high)}{cached}"
        rows += [
            ("prefill, counted", numbers.rate(spread.p50, "tok/s"), over),
            ("prefill, nominal", numbers.rate(alone.prefill_nominal, "tok/s"), "asked length / median TTFT"),
            ("decode, one user", numbers.rate(alone.decode, "tok/s"), "1 / median ITL"),
        ]
    columns = [Column("rate", side="left"), Column("value"), Column("counted over", side="left")]
    return Group(heading("Rates"), indented(FittingTable(columns, rows, wraps=(2,))))


def _rate(name: str, rate: Rate | None, unit: str) -> tuple[str, str, str]:
    if rate is None:
        return name, numbers.ABSENT, "its window is empty"
    window = rate.window
    estimated = ", estimated" if rate.estimated else ""
    over = f"from {window.begins} to {window.ends}"
    said = f"{rate.of}{estimated}, {over} ({numbers.duration(window.length_ns)})"
    return name, numbers.rate(rate.per_s, unit), safe(said)


def _gates(result: TrialResult) -> RenderableType:
    bad = [gate for gate in result.gates if gate.status != "pass"]
    if not bad:
        return Text(f"All {len(result.gates)} gates pass.")
    passing = len(result.gates) - len(bad)
    rows = []
    for gate in bad:
        # What a gate means when it is broken would be untrue of one that could not be looked at.
        means = MEANING[gate.gate]
        means = "" if gate.status == "unverified" or means in gate.detail else f"{means}: "
        rows.append((safe(gate.gate), status(gate.status), safe(means + gate.detail, _REASON_LIMIT)))
    columns = [Column("gate", side="left"), Column("status", side="left"), Column("detail", side="left")]
    return Group(
        heading(f"Gates that do not pass ({passing} of {len(result.gates)} do)"),
        indented(FittingTable(columns, rows, wraps=(2,))),
    )


def _ending(directory: Path | str) -> RenderableType:
    where = str(directory)
    return facts(
        [
            ("Evidence", safe_text(where, "bold", 1000)),
            ("Recompute", Command(("nameplate", "verify", where))),
            ("One request", Command(("nameplate", "show", where, "0"))),
        ],
        indent=0,
    )
