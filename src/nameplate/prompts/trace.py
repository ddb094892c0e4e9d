"""Recorded traffic: when requests came, how long they were, and which prefixes they shared."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from nameplate.contract.errors import CallerError
from nameplate.contract.trace import TraceRow, TraceRows
from nameplate.prompts.trace_lines import RawRequest, TraceLines
from nameplate.prompts.trace_options import TraceCounts, TraceError, TraceOptions

MAXIMUM_REQUESTS: Final = 20_000_000
"""Twice what all BurstGPT files hold; 26 bytes each are 520 MB."""

MAXIMUM_BLOCKS: Final = 1 << 23
"""Twenty times what the published Mooncake traces hold: 64 MiB, and at most ten times that while shares are counted."""

MAXIMUM_CLASSES: Final = 1000


class RecordedTrace:
    """Hold the kept requests of a trace in the order in which they are due: 26 bytes a request and 8 a block.

    `counts` tells what was left out. `block_tokens` is the size of a block; None where the trace names none.
    """

    def __init__(self, requests: Iterable[RawRequest], options: TraceOptions, path: Path) -> None:
        self._times = array("q")
        self._inputs = array("I")
        self._outputs = array("I")
        self._classes = array("H")
        self._blocks = array("Q")
        # Where the blocks of each request begin in that array, and where the last ones end.
        self._begins = array("Q", [0])
        self._names: list[str] = []
        # Where each request of the order in which they are due stands in the arrays; None while that is the same.
        self._order: array[int] | None = None
        self.block_tokens: int | None = None
        self.counts = self._take(requests, options, path)
        self._sort()
        self._retime(options)

    @classmethod
    def open(cls, path: Path, options: TraceOptions) -> RecordedTrace:
        """Read a file. Raises `CallerError` naming the file, line and field where one is wrong, or if nothing is left.

        The file is read once, line by line; what stays in memory is what is kept.
        """
        try:
            with path.open("rb") as file:
                lines = TraceLines(file, path, options)
                trace = cls(lines, options, path)
                trace.block_tokens = lines.block_tokens if trace._blocks else None
        except OSError as error:
            raise CallerError(f"The trace {path} cannot be read: {error.strerror}.") from None
        if not len(trace):
            raise _empty(path, trace.counts)
        return trace

    def _take(self, requests: Iterable[RawRequest], options: TraceOptions, path: Path) -> TraceCounts:
        """Fill the arrays, and count what is left out."""
        numbers: dict[str, int] = {}
        begin = -(1 << 63) if options.from_ns is None else options.from_ns
        end = 1 << 63 if options.to_ns is None else options.to_ns
        first: int | None = None
        last: int | None = None
        latest = begin
        read = early = late = no_input = no_output = other = long = reordered = odd = 0
        for request in requests:
            time_ns = request.time_ns
            read += 1
            odd += request.odd
            first = time_ns if first is None else min(first, time_ns)
            last = time_ns if last is None else max(last, time_ns)
            if time_ns < begin:
                early += 1
            elif time_ns >= end:
                late += 1
            elif not request.input_tokens:
                no_input += 1
            elif not request.output_tokens:
                no_output += 1
            elif options.classes and request.class_name not in options.classes:
                other += 1
            elif (
                options.longest_tokens is not None
                and request.input_tokens + request.output_tokens > options.longest_tokens
            ):
                long += 1
            else:
                reordered += time_ns < latest
                latest = max(latest, time_ns)
                number = numbers.setdefault(request.class_name, len(numbers))
                self._keep(request, number, path)
        self._names = list(numbers)
        return TraceCounts(
            read=read,
            kept=len(self._times),
            before_window=early,
            after_window=late,
            no_input=no_input,
            no_output=no_output,
            other_class=other,
            too_long=long,
            reordered=reordered,
            odd_totals=odd,
            first_ns=first,
            last_ns=last,
        )

    def _keep(self, request: RawRequest, class_number: int, path: Path) -> None:
        self._times.append(request.time_ns)
        self._inputs.append(request.input_tokens)
        self._outputs.append(request.output_tokens)
        self._classes.append(class_number)
        self._blocks.extend(request.blocks)
        self._begins.append(len(self._blocks))
        if len(self._times) > MAXIMUM_REQUESTS:
            what = f"{MAXIMUM_REQUESTS} requests"
        elif len(self._blocks) > MAXIMUM_BLOCKS:
            what = f"{MAXIMUM_BLOCKS} blocks of prompts"
        elif class_number >= MAXIMUM_CLASSES:
            what = f"{MAXIMUM_CLASSES} classes"
        else:
            return
        raise TraceError(
            path, request.line, "", f"more than {what} are kept", hint="Ask for a smaller window."
        )

    def _sort(self) -> None:
        """Order requests by time; those of the same time stay in the order of the file."""
        if self.counts.reordered:
            times = self._times
            self._order = array("I", sorted(range(len(times)), key=times.__getitem__))

    def _retime(self, options: TraceOptions) -> None:
        """Count times from the start of the window, or from the first request, and divide them by the speed."""
        if not self._times:
            return
        zero = min(self._times) if options.from_ns is None else options.from_ns
        speed = options.speed
        for number, time_ns in enumerate(self._times):
            due_ns = (time_ns - zero) * speed.denominator // speed.numerator
            if due_ns >= 1 << 63:
                raise CallerError("Slowed down so far, the trace lasts longer than 292 years.")
            self._times[number] = due_ns

    def __len__(self) -> int:
        return len(self._times)

    def row(self, number: int) -> TraceRow:
        """Return a request by its number from 0, in the order in which they are due; IndexError past the end."""
        if not 0 <= number < len(self._times):
            raise IndexError(number)
        place = number if self._order is None else self._order[number]
        return TraceRow(
            self._times[place],
            self._inputs[place],
            self._outputs[place],
            self._names[self._classes[place]],
            tuple(self._blocks[self._begins[place] : self._begins[place + 1]]),
        )

    def __iter__(self) -> Iterator[TraceRow]:
        return (self.row(number) for number in range(len(self)))

    @property
    def class_names(self) -> tuple[str, ...]:
        """Return the names of all classes that were kept, in the order in which they first came."""
        return tuple(self._names)

    @property
    def duration_ns(self) -> int:
        """Return when the last request is due."""
        return max(self._times, default=0)

    def rows(self, limit: int | None = None) -> TraceRows:
        """Return the requests packed, as a plan holds them; the first `limit` of them."""
        count = len(self) if limit is None else min(limit, len(self))
        return TraceRows.of((self.row(number) for number in range(count)), self.block_tokens)


def _empty(path: Path, counts: TraceCounts) -> CallerError:
    if counts.first_ns is None or counts.last_ns is None:
        return CallerError(f"The trace {path} holds no request.")
    return CallerError(
        f"Nothing is left of the trace {path}: {counts.said()}",
        hint=f"Its times go from {counts.first_ns / 1e9:.3f} s to {counts.last_ns / 1e9:.3f} s.",
    )
