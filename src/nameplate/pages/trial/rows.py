"""A trial's rows, read when a page shows them: requests, output events, the server's samples, and what was damaged."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from msgspec import Struct

from nameplate.contract.errors import NameplateError
from nameplate.engines.state import ServerSample
from nameplate.evidence import layout
from nameplate.evidence.reader import TrialReader
from nameplate.evidence.rows import RequestRow
from nameplate.evidence.timeline import Timeline
from nameplate.pages.subject import TrialSubject

T = TypeVar("T")


class TrialRows(Struct, frozen=True, kw_only=True):
    """Hold what was read of a trial; rows by index, times on the trial's own clock.

    `timelines` is null where output events were not read, which costs time in proportion to them. `until_ns` is when
    an open request was last watched. `damage` are sentences about what could not be read.
    """

    rows: tuple[RequestRow, ...]
    timelines: dict[int, Timeline] | None
    samples: tuple[ServerSample, ...]
    until_ns: int
    damage: tuple[str, ...]

    @property
    def measured(self) -> list[RequestRow]:
        return [row for row in self.rows if row.measured]


def read_rows(trial: TrialSubject, *, events: bool) -> TrialRows:
    """Read a trial's rows, with their output events where asked; what is torn or damaged is left out, and said.

    A trial that was not sealed is read with its raw reads: a request that was sent and has no row is unfinished.
    """
    said: list[str] = []
    no_rows: list[RequestRow] = []
    no_samples: list[ServerSample] = []
    if trial.result is None:
        # What reads raw reads is not needed for trials that were sealed.
        from nameplate.measure.from_disk import load_evidence

        evidence = _tolerant(lambda: load_evidence(trial.directory), None, said)
        if evidence is not None:
            timelines = {timeline.index: timeline for timeline in evidence.timelines}
            return TrialRows(
                rows=tuple(evidence.rows),
                timelines=timelines,
                samples=tuple(evidence.samples),
                until_ns=_last(evidence.rows, evidence.ended_ns),
                damage=evidence.damage,
            )
    reader = TrialReader(trial.directory)
    rows = tuple(_tolerant(reader.rows, no_rows, said))
    held: dict[int, Timeline] = {}
    if events:
        _tolerant(lambda: held.update((one.index, one) for one in reader.timelines()), None, said)
    samples = tuple(_tolerant(lambda: reader.lines(layout.SERVER, ServerSample), no_samples, said))
    ended_ns = trial.header.started.monotonic_ns if trial.result is None else trial.result.ended_ns
    return TrialRows(
        rows=rows,
        timelines=held if events else None,
        samples=samples,
        until_ns=_last(rows, ended_ns),
        damage=tuple(dict.fromkeys((*said, *reader.torn))),
    )


def _tolerant(read: Callable[[], T], otherwise: T, said: list[str]) -> T:
    try:
        return read()
    except (NameplateError, OSError, ValueError, RecursionError) as error:
        said.append(error.what if isinstance(error, NameplateError) else str(error))
        return otherwise


def _last(rows: Sequence[RequestRow], ended_ns: int) -> int:
    """Return the last moment that anything is known of."""
    known = [row.end_ns or row.last_output_ns or row.sent_ns or row.scheduled_ns for row in rows]
    return max([ended_ns, *known])
