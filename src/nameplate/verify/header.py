"""Whether a header can be one: values that no trial has would only waste time and memory."""

from __future__ import annotations

from nameplate.contract.contract import Contract
from nameplate.contract.errors import NameplateError
from nameplate.contract.plan import TrialPlan
from nameplate.contract.slo import Slo
from nameplate.contract.soak import SOAK_REQUESTS
from nameplate.evidence.header import TrialHeader
from nameplate.schedule.stage import process_of
from nameplate.verdict.certainty import LEAST_CONFIDENCE, MOST_CONFIDENCE

# Far above any trial: a week at a thousand requests a second.
MOST_REQUESTS = 600_000_000
# A soak that lasts a year is not one that anybody waits for.
LONGEST_NS = 366 * 86_400 * 10**9
# All of one machine's ports to one server.
MOST_CONCURRENT = 65_536


def implausible(header: TrialHeader) -> str | None:
    """Say what no header of a trial says, or None."""
    return _plan(header.plan) or contract_implausible(header.contract) or _rest(header)


def contract_implausible(contract: Contract) -> str | None:
    """Say what no contract says, or None."""
    confidence = contract.rules.confidence
    if confidence is not None and not LEAST_CONFIDENCE <= confidence <= MOST_CONFIDENCE:
        return f"a confidence of {confidence:g} cannot be asked for"
    return next((said for slo in contract.slos if (said := _slo(slo)) is not None), None)


def _plan(plan: TrialPlan) -> str | None:
    if not 1 <= plan.concurrency <= MOST_CONCURRENT:
        return f"the plan's concurrency is {_short(plan.concurrency)}"
    # A soak's number of requests is a cap: time ends it.
    most = MOST_REQUESTS if plan.soak is None else SOAK_REQUESTS
    for name, count in (("requests", plan.requests), ("warmup", plan.warmup)):
        if not 0 <= count <= most:
            return f"the plan's {name} are {_short(count)}"
    if not 0 <= plan.stagger_ns < 1 << 63 or not 0 <= plan.attempt < 1 << 31:
        return "the plan's attempt or stagger is out of range"
    if not all(0 < tokens < 1 << 40 for tokens in (plan.shape.input_tokens, plan.shape.output_tokens)):
        return "the plan's shape is out of range"
    try:
        if plan.arrivals is not None:
            process_of(plan.arrivals)
    except NameplateError as error:
        return f"the plan's arrivals cannot be: {error.what}"
    soak = plan.soak
    if soak is not None:
        times = (soak.duration_ns, soak.window_ns, soak.drain_ns, soak.scrape_ns, soak.client_sample_ns)
        if soak.window_ns < 1 or not all(0 <= time_ns <= LONGEST_NS for time_ns in times):
            return "the soak's times are out of range"
    return None


def _slo(slo: Slo) -> str | None:
    if slo.metric == "error_rate":
        sound = slo.percentile is None and slo.limit_ratio is not None and 0 <= slo.limit_ratio <= 1
    else:
        sound = slo.percentile is not None and 0 < slo.percentile < 100
        sound = sound and slo.limit_ns is not None and 0 < slo.limit_ns < 1 << 63 and slo.limit_ratio is None
    return None if sound else f"an SLO of {slo.metric} has no sound percentile or limit"


def _rest(header: TrialHeader) -> str | None:
    if header.keeping.sample_every < 1:
        return f"one raw read in {_short(header.keeping.sample_every)} cannot be kept"
    if not all(0 <= t < 1 << 63 for t in (header.started.monotonic_ns, header.started.wall_ns)):
        return "the clocks' times are out of range"
    return None


def _short(value: int) -> str:
    return str(value) if abs(value) < 1 << 64 else "beyond 64 bits"
