"""Keeping a running soak's record current: after each window what is on disk is measured as far as it goes."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path

from nameplate.client.order import Progress
from nameplate.contract.errors import NameplateError
from nameplate.contract.plan import TrialPlan
from nameplate.measure.result import TrialResult
from nameplate.measure.soak.fold import SegmentFold
from nameplate.measure.soak_record import SoakRecord
from nameplate.studies.soak_book import SoakBook
from nameplate.trial.life import Watch

# What is new is read in small portions: the process that reads it also feeds the load, and has other things to do than
# to read five minutes at once.
ADVANCE_EVERY_NS = 2 * 10**9
# Simulated windows pass faster than anybody reads what they came to.
RENEW_EVERY_NS = 10**9 // 2


class KeepingWatch:
    """See a segment for a person's eyes, and renew the record when each of its windows is over."""

    def __init__(
        self, watch: Watch, book: SoakBook, directory: Path, on_window: Callable[[SoakRecord], None]
    ) -> None:
        self._watch, self._book, self._directory = watch, book, directory
        self._on_window = on_window
        self._fold: SegmentFold | None = None
        self._next_ns: int | None = None
        self._advanced_ns = self._renewed_ns = 0

    def progress(
        self, plan: TrialPlan, progress: Progress, ttfts_ns: Mapping[int, int], directory: Path
    ) -> None:
        """Pass a load's report on; each that ends a window renews the record."""
        self._watch.progress(plan, progress, ttfts_ns, directory)
        window_ns = plan.soak.window_ns if plan.soak is not None else 0
        now_ns = time.monotonic_ns()
        if self._next_ns is None:
            self._next_ns = progress.t_ns + window_ns
        due = progress.t_ns >= self._next_ns and now_ns - self._renewed_ns >= RENEW_EVERY_NS
        if not due and now_ns - self._advanced_ns < ADVANCE_EVERY_NS:
            return
        if due:
            self._next_ns = progress.t_ns + window_ns
        self._advanced_ns = now_ns
        try:
            if self._fold is None:
                self._fold = SegmentFold(self._directory)
            if due:
                self._renewed_ns = now_ns
                self._on_window(self._book.runs(self._fold.finish()))
            else:
                self._fold.advance()
        except NameplateError as error:
            # The load goes on: its evidence is what counts, and this is only a look at it.
            self._watch.tell(f"note: the record could not be renewed: {error}")

    def tell(self, text: str) -> None:
        self._watch.tell(text)

    def finished(self, plan: TrialPlan, result: TrialResult, replayed: bool = False) -> None:
        self._watch.finished(plan, result, replayed)

    def step(self, plan: TrialPlan, what: str) -> None:
        self._watch.step(plan, what)

    def estimate(self, left_s: float, done: int, of: int, note: str) -> None:
        self._watch.estimate(left_s, done, of, note)
