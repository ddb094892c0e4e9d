"""Watching a soak from its own terminal: a few lines redrawn, or one line now and then where nobody looks."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from nameplate.client.order import Progress
from nameplate.contract.contract import Contract
from nameplate.contract.plan import TrialPlan
from nameplate.contract.quantity import format_bytes
from nameplate.engines.state import ServerSample
from nameplate.measure.result import TrialResult
from nameplate.measure.soak_record import SoakRecord
from nameplate.report import numbers
from nameplate.report.console import animated, people
from nameplate.report.harmless import Harmless
from nameplate.report.live import QuietView
from nameplate.report.progress import last_sample
from nameplate.report.safe import safe
from nameplate.report.soak_words import load_of, moment

REDRAWS_PER_S = 2
_SECOND_NS = 10**9
# A log holds at most so many lines of progress, whatever the duration; and never more than one each ten seconds.
MOST_LINES = 240
LEAST_BETWEEN_NS = 10 * _SECOND_NS


class QuietSoak(QuietView):
    """Show nothing."""

    def window(self, record: SoakRecord) -> None:
        pass


class SoakView:
    """Show a soak on a console, stderr by default; nothing that goes wrong here ends it."""

    def __init__(
        self,
        contract: Contract,
        console: Console | None = None,
        *,
        now_ns: Callable[[], int] = time.monotonic_ns,
        wall_s: Callable[[], float] = time.time,
    ) -> None:
        self._console = people() if console is None else console
        self._scene = Scene(contract, wall_s)
        self._now_ns = now_ns
        self._spoke_ns = self._looked_ns = now_ns()
        duration_ns = contract.soak.soak.duration_ns if contract.soak is not None else 0
        self._between_ns = max(LEAST_BETWEEN_NS, duration_ns // MOST_LINES)
        self._live: Live | None = None
        if animated(self._console):
            self._live = Live(
                console=self._console,
                get_renderable=self.block,
                refresh_per_second=REDRAWS_PER_S,
                transient=True,
                redirect_stdout=False,
                redirect_stderr=False,
            )

    def __enter__(self) -> Self:
        with Harmless():
            if self._live is not None:
                self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with Harmless():
            if self._live is not None:
                self._scene.what = ""
                self._live.stop()

    def tell(self, text: str) -> None:
        with Harmless():
            self._print(safe(text, 1000))

    def step(self, plan: TrialPlan, what: str) -> None:
        with Harmless():
            self._scene.step(plan, what)
            if self._live is None:
                self._print(f"{plan.key}: {safe(what, 200)}")

    def progress(
        self, plan: TrialPlan, progress: Progress, ttfts_ns: Mapping[int, int], directory: Path
    ) -> None:
        del ttfts_ns
        with Harmless():
            now = self._now_ns()
            sample = None
            if now - self._looked_ns >= _SECOND_NS:
                self._looked_ns, sample = now, last_sample(directory)
            self._scene.progress(plan, progress, sample, directory)
            if self._live is None and now - self._spoke_ns >= self._between_ns:
                self._print("; ".join(self._scene.lines()))

    def window(self, record: SoakRecord) -> None:
        with Harmless():
            self._scene.window(record)

    def finished(self, plan: TrialPlan, result: TrialResult, replayed: bool = False) -> None:
        pass

    def estimate(self, left_s: float, done: int, of: int, note: str) -> None:
        pass

    def block(self) -> RenderableType:
        """Return the lines as they are now; a fault in them shows as no lines."""
        with Harmless():
            lines = [Text(line, no_wrap=True, overflow="ellipsis") for line in self._scene.lines()]
            if lines:
                lines[0].stylize("bold")
            return Group(*lines)
        return Text("")

    def _print(self, line: str) -> None:
        self._spoke_ns = self._now_ns()
        self._console.print(Text(line), soft_wrap=True)


class Scene:
    """Hold what is known of a running soak, and say it in a few lines."""

    def __init__(self, contract: Contract, wall_s: Callable[[], float]) -> None:
        self._contract = contract
        self._wall_s = wall_s
        # Simulated hours pass in seconds: their end has no time of day.
        self._virtual = contract.target.host == "sim"
        self.what = ""
        self._plan: TrialPlan | None = None
        self._progress: Progress | None = None
        self._began_ns: int | None = None
        self._sample: ServerSample | None = None
        self._record: SoakRecord | None = None
        self._directory: Path | None = None
        self._disk_said = ""

    def step(self, plan: TrialPlan, what: str) -> None:
        if self._plan is None or self._plan.key != plan.key:
            self._began_ns = None
        self._plan, self.what = plan, what
        self._progress = None

    def progress(
        self, plan: TrialPlan, progress: Progress, sample: ServerSample | None, directory: Path
    ) -> None:
        self._directory = directory
        if progress.stage == "measured" and self._began_ns is None:
            self._began_ns = progress.t_ns
        self._plan, self._progress = plan, progress
        self._sample = sample or self._sample

    def window(self, record: SoakRecord) -> None:
        self._record = record
        self._disk_said = self._disk()

    def lines(self) -> list[str]:
        """Return the lines; none before anything is known."""
        if self._plan is None:
            return []
        if self._progress is None:
            return [f"soak {load_of(self._contract)}", f"  {safe(self.what, 200)}"] if self.what else []
        said = [self._time(), self._numbers(), self._requests()]
        return [line for line in (*said, self._window()) if line]

    def _time(self) -> str:
        assert self._progress is not None and self._plan is not None
        soak = self._plan.soak
        if soak is None or self._began_ns is None:
            return f"soak {load_of(self._contract)}"
        passed_ns = self._progress.t_ns - self._began_ns
        left_ns = soak.duration_ns - passed_ns
        if self._progress.submitted_ns is not None:
            # It may be over before its time.
            left_ns = min(0, self._progress.submitted_ns - self._progress.t_ns)
        head = f"soak {load_of(self._contract)}: "
        if left_ns <= 0:
            most = numbers.rough(max(0, left_ns + soak.drain_ns) / 1e9)
            why = " at its limit of unanswered requests" if self._progress.overrun else ""
            return f"{head}submission is over{why}, draining for {most} at most"
        done = self._before_ns() + passed_ns
        whole = numbers.rough((self._before_ns() + soak.duration_ns) / 1e9)
        said = f"{head}{numbers.rough(done / 1e9)} of {whole}, {numbers.rough(left_ns / 1e9)} left"
        if not self._virtual:
            said += f", until {time.strftime('%H:%M', time.localtime(self._wall_s() + left_ns / 1e9))} and a drain"
        return said

    def _before_ns(self) -> int:
        """Return for how long the segments before this one submitted."""
        terms = self._contract.soak
        assert self._plan is not None and self._plan.soak is not None
        return terms.soak.duration_ns - self._plan.soak.duration_ns if terms is not None else 0

    def _numbers(self) -> str:
        assert self._progress is not None
        sample = self._sample
        said = f"  outstanding {self._progress.in_flight:,}, "
        if sample is None:
            return said + "the server tells nothing"
        if sample.error is not None:
            return said + "the server's metrics cannot be read"
        usage = numbers.share(sample.kv_usage_mean)
        return f"{said}running {numbers.count(sample.running)}, waiting {numbers.count(sample.waiting)}, KV {usage}"

    def _requests(self) -> str:
        assert self._progress is not None
        said = f"  requests: {self._progress.started:,} sent, {self._progress.ended:,} ended"
        result = self._record.result if self._record is not None else None
        return said if result is None else f"{said}, {result.counts.failed:,} failed"

    def _window(self) -> str:
        result = self._record.result if self._record is not None else None
        windows = [window for window in result.segments[-1].windows if not window.partial] if result else []
        if result is None or not windows:
            return ""
        last = windows[-1]
        end = moment((last.begin_wall_ns - result.began_wall_ns + last.end_ns - last.begin_ns) / 1e9)
        said = (
            f"  window to {end}: {numbers.rate(last.output_tokens_per_s, 'tok/s')}, TTFT p50 "
            f"{numbers.duration(last.ttft.p50)}, p95 {numbers.duration(last.ttft.p95)} (n {last.ttft.n:,}); "
            f"drift so far: {result.drift.conclusion}"
        )
        return "; ".join(part for part in (said, self._disk_said) if part)

    def _disk(self) -> str:
        """Say how large the running segment is, and by how much it grows an hour."""
        assert self._progress is not None
        passed_ns = self._progress.t_ns - (self._began_ns or self._progress.t_ns)
        if self._directory is None or not passed_ns:
            return ""
        size = sum(path.stat().st_size for path in self._directory.iterdir())
        return f"{format_bytes(size)} on disk, {format_bytes(size * 3600e9 / passed_ns)} an hour"
