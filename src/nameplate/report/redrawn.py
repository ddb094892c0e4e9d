"""The view for a person at a terminal: a block of lines that is redrawn, and one line for each trial that ended."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from nameplate.client.order import Progress
from nameplate.contract.contract import Contract
from nameplate.contract.plan import TrialPlan
from nameplate.measure.result import TrialResult
from nameplate.report import numbers
from nameplate.report.course import Course
from nameplate.report.harmless import Harmless
from nameplate.report.held import HeldCourse
from nameplate.report.progress import (
    Snapshot,
    last_sample,
    say_requests,
    say_server,
    say_ttft,
    snapshot,
    ttft_slo,
)
from nameplate.report.safe import safe

REDRAWS_PER_S = 4
# Reports of a load come far more often than an eye follows.
_TAKE_EVERY_NS = 10**9 // REDRAWS_PER_S
# The server is scraped once a second.
_SERVER_EVERY_NS = 10**9


class RedrawnView:
    """Redraw what the running trial does at most five times a second; nothing that goes wrong here ends a trial."""

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
        self._live = Live(
            console=console,
            get_renderable=self.block,
            refresh_per_second=REDRAWS_PER_S,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._plan: TrialPlan | None = None
        self._what = ""
        self._shot: Snapshot | None = None
        self._began_ns = self._stage_began_ns = self._taken_ns = self._server_ns = now_ns()

    def start(self) -> None:
        with Harmless():
            self._live.start()

    def stop(self) -> None:
        self._plan = None
        with Harmless():
            self._live.stop()

    def tell(self, text: str) -> None:
        with Harmless():
            self._console.print(Text(safe(text, 1000)))

    def step(self, plan: TrialPlan, what: str) -> None:
        with Harmless():
            now = self._now_ns()
            if self._plan is None or self._plan.key != plan.key:
                self._began_ns = now
            self._plan, self._what, self._shot = plan, what, None
            self._stage_began_ns = now

    def progress(
        self, plan: TrialPlan, progress: Progress, ttfts_ns: Mapping[int, int], directory: Path
    ) -> None:
        with Harmless():
            now, last = self._now_ns(), self._shot
            if last is not None and last.stage == progress.stage and now - self._taken_ns < _TAKE_EVERY_NS:
                return
            if last is None or last.stage != progress.stage:
                self._stage_began_ns = now
            server = last.server if last is not None else None
            if last is None or now - self._server_ns >= _SERVER_EVERY_NS:
                server, self._server_ns = last_sample(directory) or server, now
            self._taken_ns, self._plan = now, plan
            held = self._held.shot(plan, progress, ttfts_ns, directory, server)
            self._shot = snapshot(
                plan, progress, ttfts_ns, self._slo, self._stage_began_ns, now, server, held
            )

    def finished(self, plan: TrialPlan, result: TrialResult, replayed: bool = False) -> None:
        with Harmless():
            took_s = (self._now_ns() - self._began_ns) / 1e9
            line = self._course.line(plan, result, took_s, replayed)
            self._plan = self._shot = None
            self._console.print(line, no_wrap=True, overflow="ellipsis")

    def estimate(self, left_s: float, done: int, of: int, note: str) -> None:
        with Harmless():
            for line in self._course.estimate(left_s, done, of, note, self._now_ns()):
                self._console.print(line)

    def block(self) -> RenderableType:
        """Return the lines as they are now; a fault in them shows as no lines."""
        with Harmless():
            return self._block()
        return Text("")

    def _block(self) -> RenderableType:
        plan, shot = self._plan, self._shot
        if plan is None:
            return Text("")
        elapsed_s = (self._now_ns() - self._began_ns) / 1e9
        head = Text(self._course.counter(plan), style="dim")
        head.append(self._course.announced(plan), style="bold default not dim")
        lines: list[RenderableType] = [head]
        times = [f"{numbers.rough(elapsed_s)} in this trial"]
        if shot is None:
            lines.append(Text(f"  {safe(self._what, 200)}"))
        else:
            lines += [
                self._bar(shot),
                Text(f"  {say_ttft(shot, self._slo)}"),
                Text(f"  {say_server(shot.server)}"),
            ]
            if shot.left_s is not None and shot.stage != "ramp" and shot.held is None:
                times.append(f"about {numbers.rough(shot.left_s)} left of its {_stage(shot.stage)}")
        left_s = self._course.left_s(elapsed_s, self._now_ns())
        if left_s is not None:
            times.append(f"study about {numbers.rough(left_s)} more")
        lines.append(Text("  " + ", ".join(times), style="dim"))
        for line in lines:
            if isinstance(line, Text):
                line.no_wrap, line.overflow = True, "ellipsis"
        return Group(*lines)

    def _bar(self, shot: Snapshot) -> RenderableType:
        said = Text(say_requests(shot), no_wrap=True, overflow="ellipsis")
        grid = Table.grid(padding=(0, 1, 0, 0), pad_edge=False)
        total, completed = float(max(1, shot.total)), float(shot.ended)
        if shot.held is not None:
            total, completed = 1.0, shot.held.share or 0.0
        grid.add_row(Text(" "), ProgressBar(total=total, completed=completed, width=24), said)
        return grid


def _stage(name: str) -> str:
    return {"warmup": "warm-up", "measured": "requests"}.get(name, safe(name, 40))
