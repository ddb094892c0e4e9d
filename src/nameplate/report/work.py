"""What one trial did, line by line: its load, requests, answers, what was in flight, how late the client was."""

from __future__ import annotations

from nameplate.contract.plan import TrialPlan
from nameplate.measure.concurrency import Concurrency
from nameplate.measure.lateness import Lag
from nameplate.measure.result import TrialResult
from nameplate.measure.server_side import Gauge
from nameplate.report import numbers
from nameplate.report.open_loop import open_lines
from nameplate.report.safe import safe
from nameplate.verdict.facts import LoopCount, PromptRange


def load_of(plan: TrialPlan) -> str:
    """Say what load a plan is: of which shape, and how concurrent or how fast."""
    if plan.arrivals is None:
        return f"of {plan.shape} at concurrency {plan.concurrency:,}"
    # A trace has a file's name, and lengths of its own.
    load = safe(str(plan.arrivals), 200)
    return f"as {load}" if plan.arrivals.trace is not None else f"of {plan.shape} as {load}"


def start_of(plan: TrialPlan) -> str:
    """Say how the load of a plan starts."""
    if plan.arrivals is None:
        return f"start policy {plan.start}"
    return f"an open loop, seed {plan.arrivals.seed}: latencies are judged from schedule"


def work_lines(result: TrialResult) -> list[tuple[str, str]]:
    """Return what was asked and what came of it as named lines; one without a name continues that before it."""
    measured, found = result.measurement, result.measurement.correctness
    ours, server, late = measured.concurrency, measured.server, measured.lateness
    shared = result.facts.template_floor_tokens
    floor = "" if shared is None else f" (the chat template's share is {shared:,})"
    sums = (
        f"{found.sent:,} sent = {found.ok:,} ok + {found.failed:,} failed + {found.cancelled:,} cancelled + "
        f"{found.unfinished:,} unfinished"
    )
    lines: list[tuple[str, str]] = [
        ("Requests", sums),
        ("Answers", _answers(result)),
        (
            "Tokens",
            f"prompt {_range(found.prompt_tokens)} of {_asked(result)} asked, cached "
            f"{_range(found.cached_tokens)}{floor}; output {found.output_tokens:,}"
            + (" (estimated)" if found.tokens_estimated else "")
            + (f", and {found.partial_tokens:,} of requests that failed" if found.partial_tokens else ""),
        ),
        ("In flight, ours", _in_flight(result.plan, ours, result.facts.workers)),
        ("In the server", _server(result)),
        ("Client lateness", _lateness(result)),
    ]
    if server.queue_mean_s is not None and measured.waits is None:
        times = (
            ("queue", server.queue_mean_s),
            ("prefill", server.prefill_mean_s),
            ("decode", server.decode_mean_s),
        )
        said = ", ".join(
            f"{name} {numbers.duration(None if mean is None else mean * 1e9)}" for name, mean in times
        )
        lines.insert(5, ("By its own clock", f"{said} on average a request, warm-up included"))
    if late.user_stamped_share:
        lines.append(
            ("", f"{numbers.share(late.user_stamped_share)} of {late.reads:,} reads have no kernel stamp")
        )
    lines[1:1] = open_lines(result.plan, measured)
    return lines


def _asked(result: TrialResult) -> str:
    asked = result.facts.prompt_asked_range
    return f"{result.plan.shape.input_tokens:,}" if asked is None else _range(asked)


def _in_flight(plan: TrialPlan, ours: Concurrency, workers: int) -> str:
    mean, most = numbers.count(ours.mean), numbers.count(ours.max)
    if plan.arrivals is not None:
        share = f", or {max(1, ours.planned // workers):,} of one worker" if workers > 1 else ""
        return f"{mean} on average, {most} at most; {ours.planned:,} outstanding end the load{share}"
    return (
        f"{mean} on average of {ours.planned:,} planned, {most} at most; below the plan "
        f"{numbers.share(ours.below_share)} of the time"
    )


def _answers(result: TrialResult) -> str:
    found = result.measurement.correctness
    parts = [
        _counted("HTTP", found.http_statuses),
        _counted("finish", found.finish_reasons),
        f"{found.unique_outputs:,} different answers",
        *_looped(found.loops),
        f"{numbers.count(found.output_events, 'event')}, {numbers.count(found.output_bytes, 'byte')} of text",
    ]
    bad = {name: n for name, n in found.outcomes.items() if name != "ok"}
    if bad:
        parts.insert(0, _counted("outcomes", bad))
    return "; ".join(part for part in parts if part)


def _looped(loops: LoopCount | None) -> list[str]:
    if loops is None or not loops.looped:
        return []
    return [f"{loops.looped:,} of {loops.judged:,} long enough to judge end in a loop"]


def _counted(label: str, tally: dict[str, int]) -> str:
    # A hostile server can give every answer a finish reason of its own.
    shown = sorted(tally.items(), key=lambda pair: (-pair[1], pair[0]))
    said = ", ".join(f"{safe(name, 60)} {count:,}" for name, count in shown[:6])
    more = f" and {len(shown) - 6:,} more kinds" if len(shown) > 6 else ""
    return f"{label} {said}{more}" if said else ""


def _range(held: PromptRange | None) -> str:
    return "not told" if held is None else numbers.between(f"{held.low:,}", f"{held.high:,}")


def _server(result: TrialResult) -> str:
    server = result.measurement.server
    if not server.scrapes:
        return "not told: there is no metrics page"
    usage = server.kv_usage
    kv = (
        "-"
        if usage is None
        else f"{numbers.share(usage.mean)} on average, {numbers.share(usage.max)} at most"
    )
    return (
        f"running {_gauge(server.running)}; waiting {_gauge(server.waiting)}; KV {kv}; "
        f"preemptions {numbers.count(server.preemptions)} ({numbers.count(server.scrapes, 'scrape')}, "
        f"{server.scrape_failures:,} failed)"
    )


def _gauge(gauge: Gauge | None) -> str:
    if gauge is None:
        return numbers.ABSENT
    return f"{numbers.count(gauge.mean)} on average, {numbers.count(gauge.max)} at most"


def _lateness(result: TrialResult) -> str:
    late = result.measurement.lateness
    budget = numbers.duration(result.facts.lateness_budget_ns)
    return f"p99 {_lag(late.arrival_doubt)} for arrivals, {_lag(late.send_lag)} for sends (budget {budget})"


def _lag(lag: Lag | None) -> str:
    return numbers.ABSENT if lag is None else numbers.duration(lag.p99_ns)
