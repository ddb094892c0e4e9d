"""The plans of a curve's trials, and how long they should take: pure functions of the contract and what was seen."""

from __future__ import annotations

import math
from collections.abc import Callable

from msgspec import Struct, structs

from nameplate.contract.contract import Contract
from nameplate.contract.curve import CurvePlan
from nameplate.contract.matrix import exact_label
from nameplate.contract.plan import Role, TrialPlan
from nameplate.measure.result import TrialResult

# Twice the protocol's count: what the window's edges cut off of the waves of a closed loop is half as much then.
PER_CLIENT = 8
# Long enough to see a queue grow, and to average over some answers; in seconds of arrivals.
RATE_S = 60
# Cold prompts of one step of a climb: a median and a spread, at lengths where each may take minutes.
CLIMB_REQUESTS = 3
# What a trial costs beside its load: starting the load process, idle and identity before and after, sealing.
OVERHEAD_S = 3.0


class CurvePlanner(Struct, frozen=True):
    """Plan the trials of a curve's levels.

    `alone_ttft_ns` is the lowest, median and highest TTFT of one client alone, by which the levels of more estimate
    what waits; only a curve over clients that begins with one has it.
    """

    contract: Contract
    plan: CurvePlan
    alone_ttft_ns: tuple[float, float, float] | None = None

    def trial(self, load: float, number: int, first: bool) -> TrialPlan:
        """Plan trial `number`, from 1, of a level; of a climb only the `first` step of all is warmed up."""
        if self.plan.kind == "input":
            return self._alone(load, "level", f"t{number}", CLIMB_REQUESTS, first)
        rules, shape = self.contract.rules, self.contract.shapes[0]
        prefix = f"{shape.input_tokens}-{shape.output_tokens}"
        arrivals = self.plan.arrivals
        if self.plan.kind == "concurrency":
            name, concurrency = f"{prefix}.c{load:.0f}.t{number}", int(load)
            requests = max(
                rules.measured_requests(concurrency, ()), 0 if rules.requests else PER_CLIENT * concurrency
            )
        else:
            assert arrivals is not None
            # Independent arrivals for each trial of a level, and the same ones whenever the study is run again.
            arrivals = structs.replace(arrivals, rate=load, seed=self.contract.seed + number - 1)
            name, concurrency = f"{prefix}.r{load!r}.t{number}", arrivals.outstanding_limit
            requests = rules.requests or max(rules.measured_requests(1, ()), math.ceil(RATE_S * load))
        return TrialPlan(
            name=name,
            role="level",
            shape=shape,
            concurrency=concurrency,
            requests=requests,
            warmup=rules.warmup,
            quiet_s=0.0 if first else rules.quiet_s,
            arrivals=arrivals,
            alone_ttft_ns=None if alone(self.plan, load) else self.alone_ttft_ns,
        )

    def probe(self, tokens: int) -> TrialPlan:
        """Plan one request that only asks whether a prompt of this length is taken."""
        return self._alone(float(tokens), "locator", "probe", 1, False)

    def _alone(self, load: float, role: Role, suffix: str, requests: int, first: bool) -> TrialPlan:
        rules, shape = self.contract.rules, self.plan.shape_at(load)
        return TrialPlan(
            name=f"in{exact_label(shape.input_tokens)}.out{shape.output_tokens}.{suffix}",
            role=role,
            shape=shape,
            concurrency=1,
            requests=requests if role == "locator" else rules.requests or requests,
            warmup=rules.warmup if first else 0,
            quiet_s=0.0 if first else rules.quiet_s,
        )


def alone(plan: CurvePlan, load: float) -> bool:
    """Tell whether a level is one client alone: its requests wait for none, and later levels are held against them."""
    return plan.kind == "concurrency" and load == 1


class CurveForecast:
    """Estimate how long levels take, from those that were measured; the latest word counts."""

    def __init__(self, planner: CurvePlanner) -> None:
        self._planner = planner
        self._request_s: Callable[[float], float] | None = None

    @property
    def knows(self) -> bool:
        """Say whether anything was measured yet, or the plan itself tells."""
        return self._request_s is not None or self._planner.plan.kind == "rate"

    def learn(self, load: float, result: TrialResult) -> None:
        """Take a measured level."""
        window = result.measurement.whole_run
        if window is None or not result.plan.requests:
            return
        each_s = window.length_ns / 1e9 / result.plan.requests
        if self._planner.plan.kind == "input":
            # Attention makes long prompts dearer a token: the square of the ratio bounds it from above.
            self._request_s = lambda wanted: each_s * max(1.0, (wanted / load) ** 2)
        else:
            # More clients give no fewer requests a second, unless the server breaks down.
            self._request_s = lambda _wanted: each_s

    def level_s(self, load: float) -> float:
        """Return how long one level should take with all of its trials; what is not known counts as nothing."""
        plan = self._planner.trial(load, 1, first=False)
        each_s = 0.0
        if plan.arrivals is not None:
            each_s = 1 / plan.arrivals.rate
        elif self._request_s is not None:
            each_s = self._request_s(load)
        return self._planner.plan.repeat * (OVERHEAD_S + plan.quiet_s + plan.requests * each_s)
