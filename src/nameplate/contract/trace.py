"""A recorded trace as part of a plan: what was read from which file, and the requests that are repeated."""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import takewhile
from sys import byteorder
from typing import Final, Self

import msgspec
from msgspec import Struct

TRACE_VERSION: Final = 1


class TraceRow(Struct, frozen=True):
    """Hold one request: due after the start, in ns, with its lengths, class, and the ids of its first blocks."""

    due_ns: int
    input_tokens: int
    output_tokens: int
    class_name: str = ""
    blocks: tuple[int, ...] = ()


class TraceRows(Struct, frozen=True, kw_only=True, dict=True):
    """Hold the requests of a trace in the order in which they are due, packed: 26 bytes a request, 8 a block.

    `block_tokens` is how many tokens one id of a block stands for; null where no request names any.
    """

    times: bytes
    inputs: bytes
    outputs: bytes
    classes: bytes
    blocks: bytes
    begins: bytes
    names: tuple[str, ...]
    block_tokens: int | None = None

    @classmethod
    def of(cls, rows: Iterable[TraceRow], block_tokens: int | None) -> Self:
        """Pack rows, which stand in the order in which they are due."""
        times, inputs, outputs = array("q"), array("I"), array("I")
        classes, blocks, begins = array("H"), array("Q"), array("Q", [0])
        numbers: dict[str, int] = {}
        for row in rows:
            times.append(row.due_ns)
            inputs.append(row.input_tokens)
            outputs.append(row.output_tokens)
            classes.append(numbers.setdefault(row.class_name, len(numbers)))
            blocks.extend(row.blocks)
            begins.append(len(blocks))
        return cls(
            times=_packed(times),
            inputs=_packed(inputs),
            outputs=_packed(outputs),
            classes=_packed(classes),
            blocks=_packed(blocks),
            begins=_packed(begins),
            names=tuple(numbers),
            block_tokens=block_tokens if blocks else None,
        )

    @cached_property
    def _columns(self) -> tuple[array[int], array[int], array[int], array[int], array[int], array[int]]:
        return (
            _unpacked("q", self.times),
            _unpacked("I", self.inputs),
            _unpacked("I", self.outputs),
            _unpacked("H", self.classes),
            _unpacked("Q", self.blocks),
            _unpacked("Q", self.begins),
        )

    def __len__(self) -> int:
        return len(self.times) // 8

    def row(self, number: int) -> TraceRow:
        """Return a request by its number from 0; IndexError past the end."""
        if not 0 <= number < len(self):
            raise IndexError(number)
        times, inputs, outputs, classes, blocks, begins = self._columns
        return TraceRow(
            times[number],
            inputs[number],
            outputs[number],
            self.names[classes[number]],
            tuple(blocks[begins[number] : begins[number + 1]]),
        )

    def __iter__(self) -> Iterator[TraceRow]:
        return (self.row(number) for number in range(len(self)))

    @property
    def duration_ns(self) -> int:
        """Return when the last request is due."""
        return self._columns[0][-1] if len(self) else 0

    @cached_property
    def shareable_tokens(self) -> array[int]:
        """Count, for every request, its first tokens that any other one has, earlier or later.

        A server may serve what waits in another order than it came.
        """
        _, inputs, _, _, blocks, begins = self._columns
        times_seen: dict[int, int] = {}
        for number in range(len(self)):
            for prefix in _prefixes(blocks, begins[number], begins[number + 1]):
                times_seen[prefix] = times_seen.get(prefix, 0) + 1
        shared = array("I")
        for number in range(len(self)):
            prefixes = _prefixes(blocks, begins[number], begins[number + 1])
            # Behind a prefix that is one request's own none can be another's.
            hits = sum(1 for _ in takewhile(lambda prefix: times_seen[prefix] > 1, prefixes))
            shared.append(min(hits * (self.block_tokens or 0), inputs[number]))
        return shared

    @cached_property
    def shared_tokens(self) -> array[int]:
        """Count, for every request, its first tokens that an earlier one had.

        That is what a prefix cache that never forgets could have: whole blocks, the same from the first on. A last
        block that is not full counts as far as the request itself goes.
        """
        seen: set[int] = set()
        shared = array("I")
        _, inputs, _, _, blocks, begins = self._columns
        for number in range(len(self)):
            hits = 0
            for prefix in _prefixes(blocks, begins[number], begins[number + 1]):
                # Behind a prefix that is new no longer one can be known.
                if prefix in seen:
                    hits += 1
                else:
                    seen.add(prefix)
            shared.append(min(hits * (self.block_tokens or 0), inputs[number]))
        return shared

    @cached_property
    def repeated(self) -> frozenset[int]:
        """Return the requests whose blocks are all those of an earlier one, so that little or nothing is their own.

        Below `LEAST_OWN_TOKENS` of its own, which the chat template takes its part of, a prompt may be the same.
        """
        size = self.block_tokens or 0
        seen: set[tuple[int, ...]] = set()
        found = []
        for number, row in enumerate(self):
            own = row.input_tokens - size * len(row.blocks)
            if row.blocks in seen and own < LEAST_OWN_TOKENS:
                found.append(number)
            if row.blocks:
                seen.add(row.blocks)
        return frozenset(found)

    def lines(self) -> Iterator[bytes]:
        """Yield the file `trace.jsonl`: the form `jsonl` of recorded traces, times in ns from the start."""
        header: dict[str, object] = {"nameplate_trace": TRACE_VERSION, "time_unit": "ns"}
        if self.block_tokens is not None:
            header["block_tokens"] = self.block_tokens
        encode = msgspec.json.Encoder().encode
        yield encode(header) + b"\n"
        for row in self:
            fields: dict[str, object] = {
                "time": row.due_ns,
                "input_tokens": row.input_tokens,
                "output_tokens": row.output_tokens,
            }
            if row.class_name:
                fields["class"] = row.class_name
            if row.blocks:
                fields["prefix"] = row.blocks
            yield encode(fields) + b"\n"

    @cached_property
    def sha256(self) -> str:
        """Return the digest of that file."""
        digest = hashlib.sha256()
        for line in self.lines():
            digest.update(line)
        return digest.hexdigest()


LEAST_OWN_TOKENS: Final = 256
"""Chat templates take up to some two hundred tokens of a prompt's length."""


class TracePlan(Struct, frozen=True, kw_only=True):
    """Name a recorded trace and say how it was read: all that makes its requests from its file.

    `name` is the file's without its directory and `sha256` the digest of its content; `format`, `time_unit`,
    `block_tokens`, `speed_up`, `from_ns`, `to_ns` and `classes` are how it was read, `limit` how many requests are
    repeated at most. `left_out` counts the file's requests that are not repeated, by reason, and `raised` those that
    are sent longer than recorded since no prompt is so short. `rows_sha256` is the digest of the trial's
    `trace.jsonl`, which holds the `requests` as they are repeated. `rows` are those, where the plan is used; they are
    not written with it.
    """

    name: str
    sha256: str
    format: str
    time_unit: str | None = None
    block_tokens: int | None = None
    speed_up: float = 1.0
    from_ns: int | None = None
    to_ns: int | None = None
    classes: tuple[str, ...] = ()
    limit: int
    read: int
    left_out: dict[str, int] = {}
    raised: int = 0
    requests: int
    duration_ns: int
    rows_sha256: str
    rows: TraceRows | None = None


def _prefixes(blocks: array[int], begin: int, end: int) -> Iterator[int]:
    """Yield a digest of each beginning of a row of blocks; of 8 million, two agree by chance with 1 in 500,000."""
    prefix = 0
    for position in range(begin, end):
        prefix = _chained(prefix, blocks[position])
        yield prefix


def _chained(prefix: int, block: int) -> int:
    """Return the digest of a prefix that is one block longer, by the mixing function of SplitMix64."""
    z = (prefix * 0x9E3779B97F4A7C15 + block + 1) & 0xFFFFFFFFFFFFFFFF
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & 0xFFFFFFFFFFFFFFFF
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & 0xFFFFFFFFFFFFFFFF
    return z ^ (z >> 31)


def _packed(column: array[int]) -> bytes:
    """Pack a column little-endian."""
    if byteorder == "big":
        column = column[:]
        column.byteswap()
    return column.tobytes()


def _unpacked(kind: str, packed: bytes) -> array[int]:
    column: array[int] = array(kind)
    column.frombytes(packed)
    if byteorder == "big":
        column.byteswap()
    return column
