"""The lines of recorded traces, in the three forms that are read.

**jsonl**, our own: one object a line, other fields ignored,

    {"nameplate_trace": 1, "time_unit": "ms", "block_tokens": 16}                    a header; may be left out
    {"time": 1250.5, "input_tokens": 812, "output_tokens": 128, "class": "chat", "prefix": ["system", 17]}

`prefix` names the blocks that the prompt begins with, in order; an id stands for one text of `block_tokens` tokens,
and what lies behind the last named block is the request's own. Ids are whole numbers below 2**64, or strings.
`class` and `prefix` may be left out.

**mooncake**: the traces of R. Qin et al., "Mooncake" (FAST 2025; repository kvcache-ai/Mooncake, FAST25-release),

    {"timestamp": 27482, "input_length": 6955, "output_length": 52, "hash_ids": [46, 47, ..., 2354]}

where the ids cover the whole input, the last block of it being as long as is left: 6955 tokens are 14 ids of 512.

**burstgpt**: the CSV files of Y. Wang et al., "BurstGPT" (arXiv 2401.17644; repository HPMLL/BurstGPT), with or
without the two columns of its second release (`Session ID`, `Elapsed time`); columns are found by their names,

    Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type
    5,ChatGPT,472,18,490,Conversation log

and a class is the model and the kind of log, "ChatGPT, Conversation log". It tells nothing of prefixes.
"""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple

import msgspec

from nameplate.contract.errors import CallerError
from nameplate.prompts.trace_options import (
    MAXIMUM_BLOCK_TOKENS,
    PUBLISHED_BLOCK_TOKENS,
    PUBLISHED_UNIT,
    UNIT_NS,
    TraceError,
    TraceOptions,
)

MAXIMUM_LINE_BYTES: Final = 1 << 20
"""A prompt of 10 million tokens has 20,000 block ids, 200 KB; a longer line is hardly a request."""

MAXIMUM_TOKENS: Final = (1 << 31) - 1
MAXIMUM_TIME_NS: Final = 1 << 62
MAXIMUM_NAME: Final = 200

_NEEDED: Final = ("Timestamp", "Request tokens", "Response tokens")

_UNIT_HINT: Final = "Say what the file's times are in, --trace-time-unit s, ms, us or ns: it is not guessed."


class RawRequest(NamedTuple):
    """Hold one line as the file states it; `blocks` are 64-bit ids. `odd` says that its total is not its sum."""

    line: int
    time_ns: int
    input_tokens: int
    output_tokens: int
    class_name: str
    blocks: tuple[int, ...]
    odd: bool = False


class TraceLines:
    """Yield a file's requests, one line in memory at a time; know the block size once the first was yielded."""

    def __init__(self, file: BinaryIO, path: Path, options: TraceOptions) -> None:
        self._file = file
        self._path = path
        self._options = options
        self._unit_ns = None if options.time_unit is None else UNIT_NS[options.time_unit]
        self.block_tokens = options.block_tokens or PUBLISHED_BLOCK_TOKENS.get(options.format)

    def __iter__(self) -> Iterator[RawRequest]:
        if self._options.format == "burstgpt":
            return self._burstgpt()
        return self._objects()

    def _wrong(self, line: int, field: str, what: str, hint: str = "") -> TraceError:
        return TraceError(self._path, line, field, what, hint=hint)

    def _lines(self) -> Iterator[tuple[int, bytes]]:
        """Yield (line number, bytes) of every line that is not blank."""
        line = 0
        while data := self._file.readline(MAXIMUM_LINE_BYTES + 1):
            line += 1
            if len(data) > MAXIMUM_LINE_BYTES:
                raise self._wrong(line, "", f"longer than {MAXIMUM_LINE_BYTES >> 20} MiB")
            if line == 1:
                data = data.removeprefix(b"\xef\xbb\xbf")
            if data := data.strip():
                yield line, data

    # -- JSON ------------------------------------------------------------------------------------------------------

    def _objects(self) -> Iterator[RawRequest]:
        decode = msgspec.json.Decoder().decode
        read = self._mooncake if self._options.format == "mooncake" else self._own
        first = self._options.format == "jsonl"
        for line, data in self._lines():
            try:
                fields = decode(data)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                raise self._wrong(line, "", f"not JSON ({error})") from None
            if not isinstance(fields, dict):
                raise self._wrong(line, "", "not a JSON object")
            if first and "nameplate_trace" in fields:
                self._header(line, fields)
            else:
                yield read(line, fields)
            first = False

    def _header(self, line: int, fields: dict[str, Any]) -> None:
        if fields["nameplate_trace"] != 1:
            raise self._wrong(line, "nameplate_trace", "a version that is not known; it is 1")
        unit = fields.get("time_unit")
        if unit is not None:
            if not isinstance(unit, str) or unit not in UNIT_NS:
                raise self._wrong(line, "time_unit", "not a unit of time", _UNIT_HINT)
            if self._options.time_unit not in (None, unit):
                raise self._wrong(
                    line, "time_unit", f"the file says {unit}, and {self._options.time_unit} was asked for"
                )
            self._unit_ns = UNIT_NS[unit]
        size = fields.get("block_tokens")
        if size is not None:
            if isinstance(size, bool) or not isinstance(size, int) or not 1 <= size <= MAXIMUM_BLOCK_TOKENS:
                raise self._wrong(line, "block_tokens", "not the size of a block")
            if self._options.block_tokens not in (None, size):
                raise self._wrong(
                    line,
                    "block_tokens",
                    f"the file says {size}, and {self._options.block_tokens} was asked for",
                )
            self.block_tokens = size

    def _own(self, line: int, fields: dict[str, Any]) -> RawRequest:
        name = fields.get("class")
        name = "" if name is None else name
        if not isinstance(name, str) or len(name) > MAXIMUM_NAME:
            raise self._wrong(line, "class", f"not a text of at most {MAXIMUM_NAME} characters")
        input_tokens = self._tokens(line, fields, "input_tokens")
        blocks = self._blocks(line, fields, "prefix", input_tokens, strings=True)
        return RawRequest(
            line,
            self._time(line, fields, "time"),
            input_tokens,
            self._tokens(line, fields, "output_tokens"),
            name,
            blocks,
        )

    def _mooncake(self, line: int, fields: dict[str, Any]) -> RawRequest:
        input_tokens = self._tokens(line, fields, "input_length")
        blocks = self._blocks(line, fields, "hash_ids", input_tokens, strings=False)
        if blocks and self.block_tokens and len(blocks) < input_tokens // self.block_tokens:
            raise self._wrong(
                line,
                "hash_ids",
                f"{len(blocks)} blocks of {self.block_tokens} tokens do not cover an input of {input_tokens}",
                "If the file's blocks have another size, state it.",
            )
        return RawRequest(
            line,
            self._time(line, fields, "timestamp"),
            input_tokens,
            self._tokens(line, fields, "output_length"),
            "",
            blocks,
        )

    def _time(self, line: int, fields: dict[str, Any], field: str) -> int:
        value = fields.get(field)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self._wrong(line, field, "missing" if value is None else "not a number")
        return self._nanoseconds(line, field, value)

    def _nanoseconds(self, line: int, field: str, value: float) -> int:
        unit_ns = self._unit_ns
        if unit_ns is None:
            raise CallerError(
                f"The trace {self._path} does not say what its times are in.",
                hint=f"{_UNIT_HINT}{PUBLISHED_UNIT.get(self._options.format, '')}",
            )
        # Compared, not asked for: a whole number may be larger than any double, and NaN compares with nothing.
        if not -MAXIMUM_TIME_NS <= value <= MAXIMUM_TIME_NS:
            raise self._wrong(line, field, "not a time within 146 years")
        # Whole numbers stay exact; a double holds seconds to the nanosecond for 97 days.
        whole = int(value)
        time_ns = whole * unit_ns + round((value - whole) * unit_ns)
        if not -MAXIMUM_TIME_NS <= time_ns <= MAXIMUM_TIME_NS:
            raise self._wrong(line, field, "not a time within 146 years", "Is the unit of time right?")
        return time_ns

    def _tokens(self, line: int, fields: dict[str, Any], field: str) -> int:
        value = fields.get(field)
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MAXIMUM_TOKENS:
            raise self._wrong(line, field, "missing" if value is None else "not a number of tokens")
        return value

    def _blocks(
        self, line: int, fields: dict[str, Any], field: str, tokens: int, *, strings: bool
    ) -> tuple[int, ...]:
        ids = fields.get(field)
        if ids is None or ids == []:
            return ()
        if not isinstance(ids, list):
            raise self._wrong(line, field, "not a list of block ids")
        if self.block_tokens is None:
            raise CallerError(
                f"The trace {self._path} names blocks of its prompts, and not how many tokens one has.",
                hint="State the size of a block, as it was when the trace was recorded: --trace-block-tokens.",
            )
        most = -(-tokens // self.block_tokens)
        if len(ids) > most:
            raise self._wrong(
                line,
                field,
                f"{len(ids)} blocks of {self.block_tokens} tokens are more than an input of {tokens}",
                "If the file's blocks have another size, state it.",
            )
        found = []
        for number, value in enumerate(ids, 1):
            if isinstance(value, str) and strings and len(value) <= MAXIMUM_NAME:
                found.append(
                    int.from_bytes(hashlib.sha256(value.encode("utf-8", "replace")).digest()[:8], "big")
                )
            elif isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 64:
                found.append(value)
            else:
                raise self._wrong(
                    line, field, f"id {number} is not a whole number below 2**64" + " or a name" * strings
                )
        return tuple(found)

    # -- CSV -------------------------------------------------------------------------------------------------------

    def _burstgpt(self) -> Iterator[RawRequest]:
        columns: dict[str, int] | None = None
        asked_at = answered_at = time_at = width = 0
        total_at: int | None = None
        named_at: tuple[int, ...] = ()
        for line, data in self._lines():
            cells = self._cells(line, data)
            if columns is None:
                columns = self._columns(line, cells)
                time_at, asked_at, answered_at = (columns[name] for name in _NEEDED)
                total_at = columns.get("Total tokens")
                named_at = tuple(columns[name] for name in ("Model", "Log Type") if name in columns)
                width = max(columns.values()) + 1
                continue
            if len(cells) < width:
                raise self._wrong(line, "", f"{len(cells)} fields, where the header names more")
            asked = self._whole(line, cells[asked_at], "Request tokens")
            answered = self._whole(line, cells[answered_at], "Response tokens")
            total = None if total_at is None else self._whole(line, cells[total_at], "Total tokens")
            try:
                time = float(cells[time_at])
            except ValueError:
                raise self._wrong(line, "Timestamp", f"{cells[time_at][:40]!r} is not a number") from None
            yield RawRequest(
                line,
                self._nanoseconds(line, "Timestamp", time),
                asked,
                answered,
                ", ".join([cells[place][:MAXIMUM_NAME] for place in named_at if cells[place]]),
                (),
                total is not None and total != asked + answered,
            )

    def _cells(self, line: int, data: bytes) -> list[str]:
        try:
            text = data.decode()
            # A quoted field may not run over the end of its line: no file of this form has one that does.
            if '"' not in text:
                return [cell.strip() for cell in text.split(",")]
            return [cell.strip() for cell in next(csv.reader([text], strict=True))]
        except (UnicodeDecodeError, csv.Error, StopIteration) as error:
            raise self._wrong(line, "", f"not a line of CSV ({error})") from None

    def _columns(self, line: int, cells: list[str]) -> dict[str, int]:
        columns: dict[str, int] = {}
        for name in (*_NEEDED, "Model", "Total tokens", "Log Type"):
            if cells.count(name) > 1:
                raise self._wrong(line, name, "two columns of this name")
            if name in cells:
                columns[name] = cells.index(name)
            elif name in _NEEDED:
                raise self._wrong(
                    line,
                    name,
                    "no column of this name",
                    f"The first line names the columns: {', '.join(_NEEDED)}.",
                )
        return columns

    def _whole(self, line: int, text: str, field: str) -> int:
        if not (text.isdigit() and text.isascii()):
            whole = text.removesuffix(".0")
            if whole == text or not whole.isdigit():
                raise self._wrong(line, field, f"{text[:40]!r} is not a number of tokens")
            return self._whole(line, whole, field)
        # Of more digits than that `int` is slow, and in the end refuses.
        if len(text) > 12 or (tokens := int(text)) > MAXIMUM_TOKENS:
            raise self._wrong(line, field, f"{text[:40]!r} is not a number of tokens")
        return tokens
