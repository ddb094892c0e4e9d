"""The course of a study as its views tell it: which trial of what, how long it took, how long it will."""

from __future__ import annotations

from collections import Counter

from msgspec import Struct
from rich.text import Text

from nameplate.contract.contract import Contract
from nameplate.contract.matrix import label
from nameplate.contract.plan import Role, TrialPlan
from nameplate.contract.shape import Shape
from nameplate.measure.result import TrialResult
from nameplate.measure.speed_trial import SpeedTrial
from nameplate.report import numbers
from nameplate.report.boundary import judged
from nameplate.report.safe import safe
from nameplate.report.style import style_of

_ROLE: dict[Role, str] = {
    "baseline": "baseline",
    "locator": "locate",
    "confirmation": "confirm",
    "single": "trial",
    "warmup": "warm-up",
    "prefill": "prefill",
    "decode": "decode",
    "burst": "burst",
    "mixed": "mixed prefill",
    "soak": "soak",
    "level": "level",
}


class Course:
    """Count the trials of a study as they end.

    `expected` is a rough count of all trials; the estimate of the time left is that many times what the finished
    ones took on average, and says so by being rough.
    """

    def __init__(self, contract: Contract | None, expected: int | None) -> None:
        # Under a confidence a level's trials depend on what they show: there is no number to count up to.
        fixed = contract is not None and contract.rules.confidence is None
        self._confirmations = contract.rules.confirmations if contract is not None and fixed else 0
        self._expected = expected
        self._valid: Counter[tuple[Shape, int]] = Counter()
        self._spent_s = 0.0
        self._timed = 0
        self._estimate: _Estimate | None = None
        self._notes: set[str] = set()
        self.done = 0

    @property
    def estimated(self) -> bool:
        """Say whether the study itself told how long it takes."""
        return self._estimate is not None

    def estimate(self, left_s: float, done: int, of: int, note: str, now_ns: int) -> list[Text]:
        """Take the study's own estimate; return the lines that are worth saying: a note when it is new."""
        self._estimate = _Estimate(left_s, done, of, now_ns)
        if not note or note in self._notes:
            return []
        self._notes.add(note)
        return [Text(safe(note, 1000))]

    def title(self, plan: TrialPlan) -> str:
        """Say which trial of what this is."""
        said = _cell(plan) or f"{_ROLE[plan.role]} {plan.shape} {_load(plan)}"
        if plan.role == "confirmation":
            number = self._valid[plan.shape, plan.level] + 1
            said += f", trial {number}"
            if number <= self._confirmations:
                said += f" of {self._confirmations}"
        if plan.attempt:
            said += f", attempt {plan.attempt + 1}"
        return said

    def announced(self, plan: TrialPlan) -> str:
        """Say which trial begins, and how long its requests take to arrive where that is known."""
        arrivals = plan.arrivals
        if arrivals is None or plan.rate_level is None:
            return self.title(plan)
        lasts = numbers.rough(plan.requests / arrivals.rate)
        return f"{self.title(plan)}: {plan.requests:,} requests in {lasts}"

    def counter(self, plan: TrialPlan) -> str:
        """Say how far the study is, as a prefix; nothing where there is one trial only."""
        told = self._estimate
        if plan.role == "warmup":
            return ""
        if told is not None:
            return f"{min(told.done + 1, told.of)} of {told.of}: "
        if self._expected == 1 and not self.done:
            return ""
        about = "" if self._expected is None else f" of about {max(self._expected, self.done + 1)}"
        return f"trial {self.done + 1}{about}: "

    def line(self, plan: TrialPlan, result: TrialResult, took_s: float, replayed: bool) -> Text:
        """Take a trial that ended and return the line that stays of it."""
        status = result.verdict.status if result.speed is None else result.speed.verdict.status.value
        # What it came to stands last: it alone may be long, and be cut.
        took = "sealed" if replayed else numbers.rough(took_s)
        text = Text(f"{self.title(plan):<40} ")
        text.append(f"{status.replace('_', ' '):<{14 if result.speed else 12}}", style=style_of(status))
        text.append(f"{took:>8}", style="dim")
        text.append("  " + safe(self._told(result), 300))
        self.done += 1
        if result.verdict.status != "invalid" and plan.role == "confirmation":
            self._valid[plan.shape, plan.level] += 1
        if not replayed and plan.role != "baseline":
            self._spent_s += took_s
            self._timed += 1
        return text

    def left_s(self, current_s: float, now_ns: int) -> float | None:
        """Return roughly how long the study still takes; None where nothing was told, timed or expected."""
        told = self._estimate
        if told is not None:
            return max(0.0, told.left_s - (now_ns - told.at_ns) / 1e9)
        if self._expected is None or not self._timed or self._expected <= self.done:
            return None
        whole = (self._expected - self.done) * self._spent_s / self._timed
        return max(0.0, whole - current_s)

    def _told(self, result: TrialResult) -> str:
        if result.speed is not None:
            return _rate_of(result, result.speed)
        slos = result.verdict.slos
        if result.plan.role == "level" and result.verdict.status == "pass":
            return _level(result)
        if result.verdict.status == "invalid" or not slos:
            return result.verdict.reasons[0] if result.verdict.reasons else ""
        said = [f"{numbers.promise(one.slo).partition(' <')[0]} {judged(one, one.whole)}" for one in slos[:3]]
        if result.verdict.status == "fail" and all(one.status != "fail" for one in slos):
            return result.verdict.reasons[0] if result.verdict.reasons else ""
        return ", ".join(said)


class _Estimate(Struct, frozen=True):
    """Hold what a study told of its time left, and when."""

    left_s: float
    done: int
    of: int
    at_ns: int


def _cell(plan: TrialPlan) -> str:
    """Name a trial of the speed matrix as its table does; empty for one of another kind."""
    context = label(plan.shape.input_tokens)
    match plan.role:
        case "warmup":
            return f"warm-up at {context}, discarded"
        case "prefill":
            return f"prefill {context}"
        case "decode":
            return f"decode {context} x {plan.concurrency}"
        case "burst":
            return f"burst {context} x {plan.concurrency}, {plan.requests:,} requests"
        case "mixed":
            arrival = plan.hold.arrival if plan.hold is not None else None
            long = context if arrival is None else label(arrival.shape.input_tokens)
            return f"mixed prefill {long} among {plan.concurrency} streams"
    return ""


def _rate_of(result: TrialResult, speed: SpeedTrial) -> str:
    """Say the rate of a cell that is valid, of any other why it is not."""
    if not speed.verdict.valid:
        return speed.verdict.reason
    if speed.mixed is not None:
        before, during = speed.mixed.before, speed.mixed.during
        said = [
            f"{numbers.rate(part.rate, 'tok/s')} {words}"
            for part, words in ((before, "before"), (during, "during"))
            if part is not None
        ]
        return (
            f"TTFT {numbers.duration(speed.mixed.ttft_ns)}, the streams {', '.join(said) or numbers.ABSENT}"
        )
    if speed.prefill is not None:
        ttft = numbers.duration(speed.prefill.ttft_median_ns)
        return f"{numbers.rate(speed.prefill.median, 'tok/s')}, TTFT {ttft}, n {speed.prefill.n:,}"
    if speed.cell is not None:
        cell = speed.cell
        about = "about " if cell.tokens is not None and cell.tokens.estimated else ""
        each = f", {numbers.rate(cell.per_user.p50)} each" if cell.per_user.n and cell.streams > 1 else ""
        return f"{about}{numbers.rate(cell.rate, 'tok/s')}{each}"
    rates = result.measurement.rates.tokens_whole
    return numbers.rate(None if rates is None else rates.per_s, "tok/s")


def _level(result: TrialResult) -> str:
    """Say what a level gave and how long its first token took."""
    held = result.measurement
    rate = held.rates.tokens_steady or held.rates.tokens_whole
    said = numbers.rate(None if rate is None else rate.per_s, "tok/s")
    return f"{said}, TTFT p50 {numbers.percentile(held.latencies.whole.ttft_from_schedule, 'p50')}"


def _load(plan: TrialPlan) -> str:
    return f"at C={plan.concurrency}" if plan.arrivals is None else safe(plan.arrivals.speed, 80)
