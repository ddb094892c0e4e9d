"""What a held load has shown so far: its ramp until the streams are ready, then its window."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec
from msgspec import Struct

from nameplate.client.order import Progress
from nameplate.contract.plan import TrialPlan
from nameplate.engines.state import ServerSample
from nameplate.evidence import layout
from nameplate.evidence.journal import JournalEntry
from nameplate.measure.held import Held, held_of
from nameplate.report import numbers

# A journal until its load ends is a few dozen lines.
_JOURNAL_BYTES = 256 * 1024


class HeldShot(Struct, frozen=True, kw_only=True):
    """Hold a held load as of its last report, in the trial's own time.

    `since_ns` is since the streams began, and since the window began once `held` has one. `per_s` is output tokens a
    second by the server's counter over what was seen of the window. `arrival_sent_ns` and `arrival_ttft_ns` are of the
    request that comes beside the streams, the first since its send.
    """

    streams: int
    produced: int
    since_ns: int
    left_ns: int | None
    held: Held | None = None
    per_s: float | None = None
    before_ns: int | None = None
    arrival_sent_ns: int | None = None
    arrival_ttft_ns: int | None = None

    @property
    def in_window(self) -> bool:
        return self.held is not None and self.held.begin_ns is not None

    @property
    def share(self) -> float | None:
        """Return how much of the window is over; of the ramp, which share of the streams has produced."""
        if not self.in_window:
            return self.produced / self.streams if self.streams else None
        whole = self.since_ns + (self.left_ns or 0)
        return self.since_ns / whole if self.left_ns is not None and whole else None


class HeldCourse:
    """Follow one held load from report to report; a trial of another key begins anew."""

    def __init__(self) -> None:
        self._key = ""
        self._forget()

    def _forget(self) -> None:
        self._began_ns: int | None = None
        self._produced: set[int] = set()
        self._held: Held | None = None
        self._first: ServerSample | None = None
        self._arrival_ttft_ns: int | None = None

    def shot(
        self,
        plan: TrialPlan,
        progress: Progress,
        ttfts_ns: Mapping[int, int],
        directory: Path,
        server: ServerSample | None,
    ) -> HeldShot | None:
        """Take a report; None for a load that is not held, and before its streams start."""
        if plan.key != self._key:
            self._key = plan.key
            self._forget()
        hold, slots = plan.hold, plan.concurrency
        if hold is None or progress.stage != "measured":
            return None
        now_ns = progress.t_ns
        self._began_ns = now_ns if self._began_ns is None else self._began_ns
        # A stream that has started again has produced, whether its first output was seen or not.
        prompts = slots + (hold.arrival is not None)
        offsets = [index - plan.warmup for index in ttfts_ns]
        offsets += [i - plan.warmup for i, _ in progress.waiting_since if i - plan.warmup >= prompts]
        self._produced |= {offset % prompts for offset in offsets if offset >= 0 and offset % prompts < slots}
        if hold.arrival is not None and self._arrival_ttft_ns is None:
            self._arrival_ttft_ns = ttfts_ns.get(plan.warmup + slots)
        self._held = self._held or read_held(directory)
        held = self._held
        if held is None or held.begin_ns is None:
            began_ns = self._began_ns if held is None else held.streams_began_ns
            left_ns = began_ns + hold.ready_ns - now_ns if held is None else None
            return HeldShot(
                streams=slots,
                produced=len(self._produced),
                since_ns=now_ns - began_ns,
                left_ns=left_ns if left_ns is None else max(0, left_ns),
                held=held,
            )
        waiting = dict(progress.waiting_since)
        sent = waiting.get(plan.warmup + slots) if hold.arrival is not None else None
        return HeldShot(
            streams=slots,
            produced=len(self._produced),
            since_ns=now_ns - held.begin_ns,
            left_ns=None if held.end_ns is None else max(0, held.end_ns - now_ns),
            held=held,
            per_s=self._rate(held.begin_ns, server),
            before_ns=hold.arrival.before_ns if hold.arrival is not None else None,
            arrival_sent_ns=None if sent is None else now_ns - sent,
            arrival_ttft_ns=self._arrival_ttft_ns,
        )

    def _rate(self, begin_ns: int, server: ServerSample | None) -> float | None:
        """Return the server's output rate since the first sample of the window that the view saw."""
        if server is None or server.output_tokens_total is None or server.t_ns < begin_ns:
            return None
        first = self._first
        if first is None or first.output_tokens_total is None:
            self._first = server
            return None
        passed_ns, grown = server.t_ns - first.t_ns, server.output_tokens_total - first.output_tokens_total
        return grown * 1e9 / passed_ns if passed_ns > 0 and grown >= 0 else None


def read_held(directory: Path) -> Held | None:
    """Return what the trial's journal says of its hold; None where it says nothing yet, or cannot be read."""
    try:
        with (directory / layout.JOURNAL).open("rb") as file:
            data = file.read(_JOURNAL_BYTES)
    except OSError:
        return None
    for line in data[: data.rfind(b"\n") + 1].splitlines():
        if b'"held"' not in line:
            continue
        try:
            held = held_of([msgspec.json.decode(line, type=JournalEntry)])
        except (msgspec.MsgspecError, UnicodeDecodeError):
            continue
        if held is not None:
            return held
    return None


def say_held(shot: HeldShot) -> str:
    """Say where a held load is: the ramp with its deadline, or the window with its rate so far."""
    held = shot.held
    if held is None:
        left = "" if shot.left_ns is None else f", {_rough(shot.left_ns)} to the ready deadline"
        if shot.produced >= shot.streams:
            return f"ramp: all {numbers.count(shot.streams, 'stream')} have produced output, not stable yet{left}"
        return (
            f"ramp: {shot.produced:,} of {numbers.count(shot.streams, 'stream')} have produced output{left}"
        )
    if held.begin_ns is None:
        return f"never ready, {held.gave_up or 'no window'}: {held.saw}"
    if shot.before_ns is not None:
        return f"window: {_arrival(shot)}; {_rate(shot)}"
    whole = shot.since_ns + (shot.left_ns or 0)
    return f"window: {_rough(shot.since_ns)} of {_rough(whole)} over; {_rate(shot)}"


def _arrival(shot: HeldShot) -> str:
    assert shot.before_ns is not None
    if shot.arrival_ttft_ns is not None:
        left = "" if shot.left_ns is None else f", {_rough(shot.left_ns)} left"
        return f"the long prompt had its first output after {numbers.brief(shot.arrival_ttft_ns)}{left}"
    if shot.arrival_sent_ns is not None:
        return f"the long prompt has waited {_rough(shot.arrival_sent_ns)} for its first output"
    return f"the long prompt comes in {_rough(max(0, shot.before_ns - shot.since_ns))}"


def _rate(shot: HeldShot) -> str:
    if shot.per_s is None:
        return "no rate yet"
    return f"{numbers.brief_rate(shot.per_s)} tok/s so far by the server's counter"


def _rough(ns: float) -> str:
    return numbers.rough(ns / 1e9)
