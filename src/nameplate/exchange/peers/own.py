"""A trial of ours as a run, beside those of other tools: what an export writes and a comparison takes."""

from __future__ import annotations

from nameplate import __version__
from nameplate.contract.plan import TrialPlan
from nameplate.evidence.header import TrialHeader
from nameplate.exchange.peers.run import Counts, Judged, Load, Measure, Run, Unit
from nameplate.exchange.peers.sources import OURS, definitions_of
from nameplate.measure.correctness import Correctness
from nameplate.measure.rates import Rate
from nameplate.measure.result import TrialResult
from nameplate.statistics.percentile import SHOWN, Distribution

_LATENCIES = (
    "ttft",
    "ttft_from_schedule",
    "first_answer",
    "itl",
    "tpot",
    "chunk_gaps",
    "longest_gap",
    "e2e",
    "per_user",
)


def run_of(result: TrialResult, header: TrialHeader, label: str = "") -> Run:
    """Return a trial's run; its label is the plan's name unless one is given."""
    measurement = result.measurement
    whole, rates = measurement.latencies.whole, measurement.rates
    # In a closed loop a request is due when its slot is free: the two differ by our own lateness alone.
    names = [name for name in _LATENCIES if name != "ttft_from_schedule" or header.plan.arrivals is not None]
    measures = [measure for name in names if (measure := _measure(name, getattr(whole, name))) is not None]
    measures += [
        Measure(name=name, field=field, unit="1/s", mean=rate.per_s)
        for name, field, rate in (
            ("output_rate", "tokens_whole", rates.tokens_whole),
            ("request_rate", "requests_whole", rates.requests_whole),
        )
        if rate is not None
    ]
    window = rates.requests_whole or rates.tokens_whole
    return Run(
        tool=OURS,
        version=__version__,
        label=label or header.plan.name,
        model=header.contract.target.model,
        endpoint=header.contract.target.url,
        engine=result.identity_before.text("engine"),
        window_s=_seconds(window),
        load=_load(header.plan),
        counts=_counts(measurement.correctness),
        measures=tuple(measures),
        definitions=definitions_of(OURS, {measure.name for measure in measures}),
        judged=Judged(
            result.verdict,
            result.gates,
            tuple(f"{gate.gate}: {gate.detail}" for gate in result.gates if gate.status == "unverified"),
        ),
    )


def _measure(name: str, told: Distribution) -> Measure | None:
    if told.n <= told.censored:
        return None
    values = {f"p{percent:g}": getattr(told, f"p{percent:g}") for percent in SHOWN}
    unit: Unit = "1/s" if told.unit == "1/s" else "ns"
    return Measure(
        name=name,
        field=name,
        unit=unit,
        n=told.n,
        mean=told.mean,
        min=told.min,
        max=told.max,
        percentiles={key: value for key, value in values.items() if value is not None},
        infinite=tuple(key for key, value in values.items() if value is None),
        unsupported=told.unsupported,
    )


def _load(plan: TrialPlan) -> Load:
    arrivals = plan.arrivals
    return Load(
        concurrency=plan.concurrency if arrivals is None else None,
        rate_per_s=None if arrivals is None else arrivals.rate,
        arrivals=None if arrivals is None else arrivals.kind,
        requests=plan.requests,
        warmup_requests=plan.warmup,
        input_tokens=plan.shape.input_tokens,
        output_tokens=plan.shape.output_tokens,
    )


def _counts(told: Correctness) -> Counts:
    return Counts(
        requests=told.sent,
        completed=told.ok,
        failed=told.failed,
        cancelled=told.cancelled,
        unfinished=told.unfinished,
    )


def _seconds(rate: Rate | None) -> float | None:
    return None if rate is None else (rate.window.end_ns - rate.window.begin_ns) / 1e9
