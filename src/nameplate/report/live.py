"""Watching a study: redrawn lines on a terminal, plain lines anywhere else, nothing where nobody looks."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from rich.console import Console

from nameplate.client.order import Progress
from nameplate.contract.contract import Contract
from nameplate.contract.plan import TrialPlan
from nameplate.measure.result import TrialResult
from nameplate.report.console import animated, people
from nameplate.report.plain import PlainView
from nameplate.report.redrawn import RedrawnView


class View(Protocol):
    """See trials begin, run and end. None of the calls raises; `step` and `progress` are those of a trial's watch."""

    def start(self) -> None: ...

    def stop(self) -> None:
        """Leave the terminal as it was found."""
        ...

    def tell(self, text: str) -> None:
        """Take one line that stays, such as what the survey does."""
        ...

    def step(self, plan: TrialPlan, what: str) -> None: ...

    def progress(
        self, plan: TrialPlan, progress: Progress, ttfts_ns: Mapping[int, int], directory: Path
    ) -> None: ...

    def finished(self, plan: TrialPlan, result: TrialResult, replayed: bool = False) -> None:
        """Take a trial that ended with its verdict; `replayed` ones were sealed by an earlier run."""
        ...

    def estimate(self, left_s: float, done: int, of: int, note: str) -> None:
        """Take a study's own estimate of the time left, in place of the rough one; `note` is said once."""
        ...


class LiveView:
    """Show a study on a console, stderr by default, in the way that fits it; a context manager.

    `contract` gives the limits that values are shown against. `expected_trials` is a rough count of all the study's
    trials, for the time left.
    """

    def __init__(
        self,
        console: Console | None = None,
        contract: Contract | None = None,
        *,
        expected_trials: int | None = None,
    ) -> None:
        console = people() if console is None else console
        view = RedrawnView if animated(console) else PlainView
        self._view: View = view(console, contract, expected_trials=expected_trials)

    def __enter__(self) -> Self:
        self._view.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._view.stop()

    def tell(self, text: str) -> None:
        self._view.tell(text)

    def step(self, plan: TrialPlan, what: str) -> None:
        self._view.step(plan, what)

    def progress(
        self, plan: TrialPlan, progress: Progress, ttfts_ns: Mapping[int, int], directory: Path
    ) -> None:
        self._view.progress(plan, progress, ttfts_ns, directory)

    def finished(self, plan: TrialPlan, result: TrialResult, replayed: bool = False) -> None:
        self._view.finished(plan, result, replayed)

    def estimate(self, left_s: float, done: int, of: int, note: str) -> None:
        self._view.estimate(left_s, done, of, note)


class QuietView:
    """Show nothing, for `--quiet` and `--json`."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def tell(self, text: str) -> None:
        pass

    def step(self, plan: TrialPlan, what: str) -> None:
        pass

    def progress(
        self, plan: TrialPlan, progress: Progress, ttfts_ns: Mapping[int, int], directory: Path
    ) -> None:
        pass

    def finished(self, plan: TrialPlan, result: TrialResult, replayed: bool = False) -> None:
        pass

    def estimate(self, left_s: float, done: int, of: int, note: str) -> None:
        pass
