"""The view for logs and pipes: lines that stay, few of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path

from rich.console import Console
from rich.text import Text

from nameplate.client.order import Progress
from nameplate.contract.contract import Contract
from nameplate.contract.plan import TrialPlan
from nameplate.measure.result import TrialResult
from nameplate.report import numbers
from nameplate.report.course import Course
from nameplate.report.harmless import Harmless
from nameplate.report.held import HeldCourse
from nameplate.report.progress import last_sample, say_requests, say_server, say_ttft, snapshot, ttft_slo
from nameplate.report.safe import safe

# A log is read later: one line this often shows that the trial lives.
_EVERY_NS = 10 * 10**9
_STEP_AFTER_NS = 2 * 10**9


class PlainView:
    """Write a line when a trial begins and ends, one for a step after a wait, and progress at most each ten seconds."""

    def __init__(
        self,
        console: Console,
        contract: Contract | None,
        *,
        expected_trials: int | None = None,
        now_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._console = console
        self._course = Course(contract, expected_trials)
        self._held = HeldCourse()
        self._slo = ttft_slo(contract)
        self._now_ns = now_ns
        self._began_ns = self._spoke_ns = now_ns()
        self._stage_began_ns = self._began_ns
        self._stage = ""
        self._plan: str | None = None

    def start(self) -> None:
        pass

    def stop(self) -> None:
        pass

    def tell(self, text: str) -> None:
        with Harmless():
            self._print(Text(safe(text, 1000)))

    def step(self, plan: TrialPlan, what: str) -> None:
        with Harmless():
            now = self._now_ns()
            if plan.key != self._plan:
                self._plan, self._began_ns = plan.key, now
                left_s = self._course.left_s(0.0, now) if self._course.estimated else None
                left = "" if left_s is None else f" (study about {numbers.rough(left_s)} more)"
                self._print(Text(self._course.counter(plan) + self._course.announced(plan) + left))
            self._stage, self._stage_began_ns = "", now
            # Of steps that follow at once only the first line says anything; a slow one is named.
            if now - self._spoke_ns >= _STEP_AFTER_NS:
                self._print(Text(f"  {safe(what, 200)}"))

    def progress(
        self, plan: TrialPlan, progress: Progress, ttfts_ns: Mapping[int, int], directory: Path
    ) -> None:
        with Harmless():
            now = self._now_ns()
            if progress.stage != self._stage:
                self._stage, self._stage_began_ns = progress.stage, now
            if now - self._spoke_ns < _EVERY_NS:
                return
            server = last_sample(directory)
            held = self._held.shot(plan, progress, ttfts_ns, directory, server)
            shot = snapshot(plan, progress, ttfts_ns, self._slo, self._stage_began_ns, now, server, held)
            left = f", {numbers.rough(shot.left_s)} left" if shot.left_s is not None and held is None else ""
            said = [say_requests(shot) + left, say_ttft(shot, self._slo), say_server(server)]
            self._print(Text("  " + "; ".join(said)))

    def finished(self, plan: TrialPlan, result: TrialResult, replayed: bool = False) -> None:
        with Harmless():
            took_s = (self._now_ns() - self._began_ns) / 1e9
            self._print(self._course.line(plan, result, took_s, replayed))
            self._plan = None

    def estimate(self, left_s: float, done: int, of: int, note: str) -> None:
        with Harmless():
            for line in self._course.estimate(left_s, done, of, note, self._now_ns()):
                self._print(line)

    def _print(self, text: Text) -> None:
        self._spoke_ns = self._now_ns()
        self._console.print(text, soft_wrap=True)
