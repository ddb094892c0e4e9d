"""The plans that a study of a boundary asks for, by role: pure functions of the contract."""

from __future__ import annotations

from msgspec import Struct, structs

from nameplate.contract.contract import Contract
from nameplate.contract.levels import levels_of
from nameplate.contract.plan import Role, TrialPlan
from nameplate.contract.rate_plan import at_rate
from nameplate.contract.shape import Shape


class Planner(Struct, frozen=True):
    """Plan trials of one shape.

    `baseline_e2e_ns` is the baseline's median E2E latency, which spaces a staggered start, and `alone_ttft_ns` its
    lowest, median and highest TTFT: what a request takes that waits for none. `outputs_must_differ` is set where the
    baseline's outputs were unique, and `outputs_must_not_loop` where none of them looped. Names are usable as directory
    names and unique in a study.
    """

    contract: Contract
    shape: Shape
    baseline_e2e_ns: float | None = None
    alone_ttft_ns: tuple[float, float, float] | None = None
    outputs_must_differ: bool = False
    outputs_must_not_loop: bool = False

    def baseline(self) -> TrialPlan:
        """Plan the baseline at concurrency one; there is nothing to stagger or hand over."""
        rules = self.contract.rules
        return TrialPlan(
            name=f"{self._prefix}.baseline",
            role="baseline",
            shape=self.shape,
            concurrency=1,
            requests=rules.baseline_requests,
            warmup=rules.baseline_warmup,
        )

    def locator(self, level: int) -> TrialPlan:
        """Plan one locator probe: few warm-ups, the level's own N, free to stop once failure is certain."""
        name = f"{self._prefix}.locate.{levels_of(self.contract).slug(level)}"
        warmup = self.contract.rules.locator_warmup
        return self._loaded(name, "locator", level, warmup, 0.0, stop_when_failed=True)

    def confirmation(self, level: int, number: int) -> TrialPlan:
        """Plan the confirmation trial `number`, from 1, of a level."""
        name = f"{self._prefix}.confirm.{levels_of(self.contract).slug(level)}.t{number}"
        rules = self.contract.rules
        return self._loaded(name, "confirmation", level, rules.warmup, rules.quiet_s)

    @property
    def _prefix(self) -> str:
        return f"{self.shape.input_tokens}-{self.shape.output_tokens}"

    def _loaded(
        self,
        name: str,
        role: Role,
        level: int,
        warmup: int,
        quiet_s: float,
        stop_when_failed: bool = False,
    ) -> TrialPlan:
        rules = self.contract.rules
        plan = TrialPlan(
            name=name,
            role=role,
            shape=self.shape,
            concurrency=level,
            requests=0,
            warmup=warmup,
            stop_when_failed=stop_when_failed,
            quiet_s=quiet_s,
            outputs_must_differ=self.outputs_must_differ,
            outputs_must_not_loop=self.outputs_must_not_loop,
            alone_ttft_ns=self.alone_ttft_ns,
        )
        if self.contract.rate is not None:
            return at_rate(self.contract, plan, level, self.baseline_e2e_ns)
        stagger = 0
        if rules.start == "staggered" and self.baseline_e2e_ns is not None:
            stagger = round(self.baseline_e2e_ns / level)
        requests = rules.measured_requests(level, self.contract.slos)
        return structs.replace(plan, requests=requests, start=rules.start, stagger_ns=stagger)
