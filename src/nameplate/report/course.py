"""The course of a study as its views tell it: which trial of what, how long it took, how long it will."""

from __future__ import annotations

from collections import Counter

from rich.text import Text

from nameplate.contract.contract import Contract
from nameplate.contract.plan import TrialPlan
from nameplate.contract.shape import Shape
from nameplate.measure.result import TrialResult
from nameplate.report import numbers
from nameplate.report.boundary import judged
from nameplate.report.safe import safe
from nameplate.report.style import style_of

_ROLE = {"baseline": "baseline", "locator": "locate", "confirmation": "confirm", "single": "trial"}


class Course:
    """Count the trials of a study as they end.

    `expected` is a rough count of all trials; the estimate of the time left is that many times what the finished
    ones took on average, and says so by being rough.
    """

    def __init__(self, contract: Contract | None, expected: int | None) -> None:
        self._confirmations = contract.rules.confirmations if contract is not None else 0
        self._expected = expected
        self._valid: Counter[tuple[Shape, int]] = Counter()
        self._spent_s = 0.0
        self._timed = 0
        self.done = 0

    def title(self, plan: TrialPlan) -> str:
        """Say which trial of what this is."""
        said = f"{_ROLE[plan.role]} {plan.shape} at C={plan.concurrency}"
        if plan.role == "confirmation":
            number = self._valid[plan.shape, plan.concurrency] + 1
            said += f", trial {number}"
            if number <= self._confirmations:
                said += f" of {self._confirmations}"
        if plan.attempt:
            said += f", attempt {plan.attempt + 1}"
        return said

    def counter(self) -> str:
        """Say how far the study is, as a prefix; nothing where there is one trial only."""
        if self._expected == 1 and not self.done:
            return ""
        about = "" if self._expected is None else f" of about {max(self._expected, self.done + 1)}"
        return f"trial {self.done + 1}{about}: "

    def line(self, plan: TrialPlan, result: TrialResult, took_s: float, replayed: bool) -> Text:
        """Take a trial that ended and return the line that stays of it."""
        # What it came to stands last: it alone may be long, and be cut.
        took = "sealed" if replayed else numbers.rough(took_s)
        text = Text(f"{self.title(plan):<40} ")
        text.append(f"{result.verdict.status:<12}", style=style_of(result.verdict.status))
        text.append(f"{took:>8}", style="dim")
        text.append("  " + safe(self._told(result), 300))
        self.done += 1
        if result.verdict.status != "invalid" and plan.role == "confirmation":
            self._valid[plan.shape, plan.concurrency] += 1
        if not replayed and plan.role != "baseline":
            self._spent_s += took_s
            self._timed += 1
        return text

    def left_s(self, current_s: float) -> float | None:
        """Return roughly how long the study still takes; None where nothing was timed or expected."""
        if self._expected is None or not self._timed or self._expected <= self.done:
            return None
        whole = (self._expected - self.done) * self._spent_s / self._timed
        return max(0.0, whole - current_s)

    def _told(self, result: TrialResult) -> str:
        slos = result.verdict.slos
        if result.verdict.status == "invalid" or not slos:
            return result.verdict.reasons[0] if result.verdict.reasons else ""
        said = [f"{numbers.promise(one.slo).partition(' <')[0]} {judged(one, one.whole)}" for one in slos[:3]]
        if result.verdict.status == "fail" and all(one.status != "fail" for one in slos):
            return result.verdict.reasons[0] if result.verdict.reasons else ""
        return ", ".join(said)
