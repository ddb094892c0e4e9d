"""Watching a server through hours: when it went away, when it was back, and whether it is still the same process."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec

from nameplate.contract.identity import Identity
from nameplate.engines.state import ServerSample
from nameplate.evidence.rows import RequestRow
from nameplate.evidence.soak_events import SERVER_BACK, SERVER_LOST, ServerBack, ServerLost
from nameplate.wire.outcome import Outcome

SECOND_NS = 10**9
ASK_EVERY_NS = SECOND_NS
# A stream may be reset by itself; the identity is read again because of that no more often than this.
REREAD_EVERY_NS = 30 * SECOND_NS
# Two readings of one process's start agree to within this: some engines round it.
START_TOLERANCE_S = 1.0

_BROKEN = (Outcome.connect_failed, Outcome.timed_out_connect, Outcome.reset, Outcome.truncated)
_COUNTERS = ("prompt_tokens_total", "output_tokens_total", "preemptions_total")

Note = Callable[[int, str, dict[str, Any]], None]


class ServerWatch:
    """Notice that a server was lost or restarted, and write down when it was back and what it said of itself.

    Signs are requests that could not connect or were cut, answers of status 5xx, and scrapes that fail; after one, its
    health is asked for, once a second at the most. A request that could not connect is proof by itself. A sample
    of the metrics page with another process start, or with counters that fell, shows a restart in which nothing
    failed. An engine without that page is known by failures and health alone.
    """

    def __init__(
        self,
        healthy: Callable[[], bool],
        identify: Callable[[], Identity],
        note: Note,
        identity: Identity,
    ) -> None:
        self._healthy = healthy
        self._identify = identify
        self._note = note
        self._start_s = _start_of(identity)
        self._sample: ServerSample | None = None
        self._asked_ns = self._reread_ns = self._back_ns = 0
        self._sign: tuple[int, ServerLost] | None = None
        self._proven = False
        self._lost_ns: int | None = None
        self._restarted: bool | None = None

    @property
    def lost(self) -> bool:
        """Say whether the server is away, as far as is known."""
        return self._lost_ns is not None

    def look(self, now_ns: int, rows: Iterable[RequestRow], samples: Sequence[ServerSample]) -> None:
        """Take what a report brought: requests that ended, and new samples of the server."""
        self._take_rows(rows)
        self._take_samples(samples)
        if self._proven and self._lost_ns is None:
            self._lose()
        if (self._sign is None and self._lost_ns is None) or now_ns - self._asked_ns < ASK_EVERY_NS:
            return
        self._asked_ns = now_ns
        if self._healthy():
            self._well(now_ns)
        elif self._lost_ns is None:
            self._lose()

    def _take_rows(self, rows: Iterable[RequestRow]) -> None:
        for row in rows:
            status = row.http_status or 0
            at_ns = row.end_ns or row.scheduled_ns
            if (row.outcome not in _BROKEN and status < 500) or at_ns <= self._back_ns:
                continue
            what = f"request {row.index}: {row.outcome}" + (f", HTTP {status}" if status else "")
            self._suspect(at_ns, ServerLost("failures", what))
            self._proven = self._proven or row.outcome == Outcome.connect_failed

    def _take_samples(self, samples: Sequence[ServerSample]) -> None:
        for sample in samples:
            if sample.error is not None:
                self._suspect(sample.t_ns, ServerLost("scrapes", sample.error))
                continue
            before, self._sample = self._sample, sample
            why = self._other_process(before, sample)
            if why:
                self._restarted = self._proven = True
                self._suspect(sample.t_ns if before is None else before.t_ns, ServerLost("restart", why))
            elif self._lost_ns is not None and sample.process_start_time_s is not None:
                self._restarted = bool(self._restarted)

    def _other_process(self, before: ServerSample | None, sample: ServerSample) -> str:
        start_s = sample.process_start_time_s
        if start_s is not None:
            known_s, self._start_s = self._start_s, start_s
            if known_s is not None:
                moved = abs(start_s - known_s) > START_TOLERANCE_S
                return f"the process start time went from {known_s:.3f} to {start_s:.3f}" if moved else ""
        for name in _COUNTERS if before is not None else ():
            earlier, now = getattr(before, name), getattr(sample, name)
            if earlier is not None and now is not None and now < earlier:
                return f"{name} fell from {earlier:g} to {now:g}"
        return ""

    def _suspect(self, at_ns: int, sign: ServerLost) -> None:
        if self._sign is None or at_ns < self._sign[0]:
            self._sign = (at_ns, sign)

    def _lose(self) -> None:
        assert self._sign is not None
        self._lost_ns, sign = self._sign
        self._note(self._lost_ns, SERVER_LOST, msgspec.to_builtins(sign))

    def _well(self, now_ns: int) -> None:
        """Take a server that answers: it is back, or what failed was no loss."""
        if self._lost_ns is None and now_ns - self._reread_ns < REREAD_EVERY_NS:
            self._sign = None
            return
        self._reread_ns = now_ns
        identity = self._identify()
        start_s, known_s = _start_of(identity), self._start_s
        if start_s is not None and known_s is not None:
            other = abs(start_s - known_s) > START_TOLERANCE_S
            self._restarted = other or bool(self._restarted)
            if other and self._lost_ns is None:
                self._lose()
        self._start_s = start_s if start_s is not None else known_s
        if self._lost_ns is not None:
            back = ServerBack(lost_ns=self._lost_ns, identity=identity, restarted=self._restarted)
            self._note(now_ns, SERVER_BACK, msgspec.to_builtins(back))
            self._back_ns = now_ns
            # The counters of another process begin anew; that was said.
            self._sample = None
        self._lost_ns = self._sign = self._restarted = None
        self._proven = False


def _start_of(identity: Identity) -> float | None:
    value = identity.value("process_start_time_s")
    return float(value) if isinstance(value, int | float) else None
