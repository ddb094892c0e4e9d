"""The measurement of one segment as a stream: each byte of its files is read once, and what was read is forgotten.

A fold can stop and take up again while the files grow; folding in pieces gives what folding at once gives. Its memory
is sketches, a few numbers for each step and window of time, 150 bytes a server sample, and a bit or two a request that
was seen.
"""

from __future__ import annotations

import copy
from array import array
from collections.abc import Iterator
from pathlib import Path

import msgspec

from nameplate.contract.errors import EvidenceError
from nameplate.contract.soak import SECOND_NS, Soak
from nameplate.engines.state import ServerSample
from nameplate.evidence import layout, soak_events, timeline
from nameplate.evidence.client_sample import ClientSample
from nameplate.evidence.journal import JournalEntry
from nameplate.evidence.reader import TrialReader
from nameplate.evidence.rows import RequestRow
from nameplate.evidence.timeline import Timeline
from nameplate.measure.soak.assemble import Folded, assemble
from nameplate.measure.soak.client import Client
from nameplate.measure.soak.fates import left_behind, unfinished_of
from nameplate.measure.soak.segment import SegmentResult, Unfinished
from nameplate.measure.soak.server import Server
from nameplate.measure.soak.steps import Steps
from nameplate.measure.soak.tail import Frames, Lines, Replaced
from nameplate.measure.soak.tally import Indices, Tally
from nameplate.schedule.stage import Requests
from nameplate.wire.outcome import Outcome

# A window of five minutes has steps of a second, as long as the distance of two scrapes.
STEPS_A_WINDOW = 300
# What a segment may last beyond its plan before a time in it is called impossible: a drain that hangs, a machine
# asleep.
BEYOND_NS = 2 * 3600 * SECOND_NS
BEYOND_WINDOWS = 10_000

# A year of five-minute windows; and as many steps as 160 MB hold, which a plan with shorter windows must do with.
MOST_WINDOWS = 105_120
MOST_STEPS = 1 << 21

_CUT = (Outcome.cancelled.value, Outcome.unfinished.value)


def measure_segment(directory: Path) -> SegmentResult:
    """Measure one segment from its directory, whole or torn; EvidenceError where it is none."""
    return SegmentFold(directory).finish()


class SegmentFold:
    """Fold a segment's files into its result; `advance` takes in what was added to them, `finish` tells what is known.

    `finish` may be asked at any time and changes nothing. EvidenceError where the directory is no trial, or
    holds what nobody could have recorded.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._header = TrialReader(directory).header()
        self._requests = Requests(self._header.plan)
        soak = self._header.plan.soak or Soak(duration_ns=0)
        length_ns = soak.duration_ns + soak.drain_ns + min(BEYOND_NS, BEYOND_WINDOWS * soak.window_ns)
        if soak.window_ns < STEPS_A_WINDOW or not 0 < length_ns < MOST_WINDOWS * soak.window_ns:
            raise EvidenceError(f"{directory} plans more windows than anybody can look at: {soak}.")
        # Windows that are short for their soak have longer steps: so many of them at most.
        self._steps_a_window = max(1, min(STEPS_A_WINDOW, MOST_STEPS * soak.window_ns // length_ns))
        self._step_ns = soak.window_ns // self._steps_a_window
        self._most_steps = length_ns // self._step_ns + 1
        self._begin_anew()

    def _begin_anew(self) -> None:
        directory = self._directory
        self._journal: list[JournalEntry] = []
        self._journal_lines = Lines(directory, layout.JOURNAL, JournalEntry)
        self._row_lines = Lines(directory, layout.REQUESTS, RequestRow)
        self._server_lines = Lines(directory, layout.SERVER, ServerSample)
        self._client_lines = Lines(directory, layout.CLIENT, ClientSample)
        self._event_frames = Frames(directory, layout.EVENTS)
        self._server = Server()
        self._client = Client()
        self._seen = Indices()
        self._duplicates = 0
        self._unfinished: list[tuple[RequestRow, Unfinished]] = []
        # Rows and timelines of a request are written to two files at once; one may be read a little before the other.
        self._await_timeline: dict[int, RequestRow] = {}
        self._await_row: dict[int, Timeline] = {}
        self._tally: Tally | None = None
        self._guessed = False

    def advance(self) -> None:
        """Take in everything that was added to the files since the last time."""
        try:
            self._advance()
        except Replaced:
            # The segment ended meanwhile and its workers' files became one.
            self._begin_anew()
            self._advance()
        except OverflowError as error:
            raise EvidenceError(f"{self._directory} holds a time that no clock shows: {error}.") from error

    def finish(self) -> SegmentResult:
        """Return the segment's result as its files stand; what has no row is read off the wire's history."""
        self.advance()
        if self._tally is None:
            # Its process was killed before it wrote when submission began.
            self._guessed = True
            self._tally = self._new_tally(self._header.started.monotonic_ns)
            self.advance()
        assert self._tally is not None
        sealed = (self._directory / layout.MANIFEST).exists()
        first = self._header.plan.warmup
        since_ns = self._seen.missing_since_ns(first)
        behind = left_behind(self._directory, self._header, self._seen.__contains__, since_ns)
        tally = self._tally
        torn = [line for lines in self._tails() for line in lines.torn()] + list(behind.torn)
        told = [self._client.last_ns, behind.last_ns, *self._server.t_ns[-1:]]
        told += [entry.t_ns for entry in self._journal]
        horizon_ns = tally.steps.horizon_ns
        last_ns = max([tally.last_ns] + [t_ns for t_ns in told if t_ns is not None and t_ns < horizon_ns])
        offset_ns = self._header.started.wall_ns - self._header.started.monotonic_ns
        unfinished = [held for _, held in self._unfinished]
        if behind.left or self._await_timeline:
            tally = copy.deepcopy(tally)
        for row in self._await_timeline.values():
            # When its tokens came was lost with the process; how many they are and between which moments was not.
            self._timeline(tally, _even(row), row)
        highest = self._seen.highest
        for left in behind.left:
            highest = max(highest, left.row.index)
            self._timeline(tally, left.timeline, left.row)
            tally.take(left.row, last_ns)
            if left.row.outcome in _CUT:
                unfinished.append(unfinished_of(self._directory.name, left.row, last_ns, offset_ns, left))
            else:
                tally.recovered += 1
        given = max(0, highest + 1 - first)
        return self._assembled(
            Folded(
                segment=self._directory.name,
                header=self._header,
                journal=self._journal,
                tally=tally,
                server=self._server,
                client=self._client,
                unfinished=sorted(unfinished, key=lambda held: held.index),
                never_sent=behind.never_sent,
                duplicates=self._duplicates,
                untraced=max(0, given - self._seen.count - len(behind.left) - behind.never_sent),
                sealed=sealed,
                last_ns=last_ns,
                torn=tuple(torn),
            )
        )

    def _assembled(self, held: Folded) -> SegmentResult:
        try:
            return assemble(held)
        except (msgspec.MsgspecError, OverflowError) as error:
            raise EvidenceError(f"{self._directory} holds what no client recorded: {error}.") from error

    def _tails(self) -> Iterator[Lines[JournalEntry] | Lines[RequestRow] | Lines[ServerSample] | Frames]:
        yield from (self._journal_lines, self._row_lines, self._server_lines, self._event_frames)

    def _advance(self) -> None:
        self._journal.extend(self._journal_lines.new())
        began = next((e.t_ns for e in self._journal if e.what == soak_events.SUBMIT_BEGAN), None)
        if began is not None and self._guessed:
            self._guessed = False
            self._begin_anew()
            self._journal.extend(self._journal_lines.new())
        if self._tally is None:
            if began is None:
                return
            self._tally = self._new_tally(began)
        for sample in self._server_lines.new():
            self._server.take(sample)
        for line in self._client_lines.new():
            self._client.take(line)
        self._requests_and_events(self._tally)

    def _new_tally(self, began_ns: int) -> Tally:
        steps = Steps(began_ns, self._step_ns, self._most_steps)
        return Tally(self._header, steps, self._steps_a_window)

    def _requests_and_events(self, tally: Tally) -> None:
        """Take rows and timelines in step with each other, so that few wait for their counterpart."""
        rows = self._row_lines.new()
        for frame in self._event_frames.new():
            try:
                entries = list(timeline.unpack(frame))
            except ValueError as error:
                raise EvidenceError(
                    f"{self._directory / layout.EVENTS} holds what is no evidence: {error}."
                ) from error
            for entry in entries:
                if not self._requests.measured(entry.index):
                    continue
                while entry.index not in self._await_timeline:
                    row = next(rows, None)
                    if row is None:
                        break
                    self._row(tally, row)
                held = self._await_timeline.pop(entry.index, None)
                if held is None:
                    self._await_row[entry.index] = entry
                else:
                    self._timeline(tally, entry, held)
        for row in rows:
            self._row(tally, row)

    def _row(self, tally: Tally, row: RequestRow) -> None:
        if not row.measured or not self._requests.measured(row.index):
            return
        if not self._seen.add(row.index, row.sent_ns if row.sent_ns is not None else row.scheduled_ns):
            self._duplicates += 1
            return
        try:
            tally.take(row)
        except (OverflowError, ValueError) as error:
            raise EvidenceError(f"{self._directory}: request {row.index} cannot be: {error}.") from error
        if row.outcome in _CUT:
            started = self._header.started
            offset_ns = started.wall_ns - started.monotonic_ns
            until_ns = row.end_ns if row.end_ns is not None else tally.last_ns
            self._unfinished.append((row, unfinished_of(self._directory.name, row, until_ns, offset_ns)))
        early = self._await_row.pop(row.index, None)
        if early is not None:
            self._timeline(tally, early, row)
        elif row.output_events:
            self._await_timeline[row.index] = row

    def _timeline(self, tally: Tally, entry: Timeline, row: RequestRow) -> None:
        steps = tally.steps
        spans = steps.events_of(entry)
        if entry.tokens is not None:
            steps.count_tokens(spans, entry.tokens)
        else:
            steps.spread_tokens(spans, row.output_tokens)


def _even(row: RequestRow) -> Timeline:
    """Return a timeline whose events stand evenly between a row's first and last output."""
    begin = row.first_output_ns if row.first_output_ns is not None else row.scheduled_ns
    length = max(0, (row.last_output_ns if row.last_output_ns is not None else begin) - begin)
    # A hundred thousand points draw any line; a forged count must cost nothing.
    events = min(row.output_events, 100_000)
    gaps = max(1, events - 1)
    times = array("q", (begin + length * at // gaps for at in range(events)))
    return Timeline(row.index, times)
