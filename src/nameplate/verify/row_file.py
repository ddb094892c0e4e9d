"""The rows of a segment by index, without holding them: where each begins is known, and it is read when asked for."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import BinaryIO

import msgspec
from msgspec import Struct

from nameplate.contract.errors import EvidenceError
from nameplate.evidence import layout
from nameplate.evidence.reader import LINE_LIMIT_BYTES
from nameplate.evidence.rows import RequestRow
from nameplate.verify.ledger import KEPT

# Indices are given away in order; one so far above the number of rows was not written by us.
MOST_UNSEEN = 1 << 20


class RowFile(Mapping[int, RequestRow]):
    """Read rows by index from a segment whose workers' files are one; eight bytes a row stay in memory.

    `repeated` are indices with two rows (the first thousand of them), of which the first counts. `torn` says what of
    the tail was dropped. EvidenceError where a line is no row.
    """

    def __init__(self, directory: Path) -> None:
        self._begins = array("q")
        self._count = 0
        self._decoder = msgspec.json.Decoder(RequestRow)
        self._file: BinaryIO | None = None
        self.repeated: list[int] = []
        self.torn: list[str] = []
        paths = layout.parts(directory, layout.REQUESTS)
        if len(paths) > 1:
            raise EvidenceError(f"{layout.REQUESTS} of {directory} is still in parts.")
        for path in paths:
            self._file = path.open("rb")
            self._scan(path, self._file)

    def _scan(self, path: Path, stream: BinaryIO) -> None:
        at = 0
        decoder = msgspec.json.Decoder(_Index)
        while line := stream.readline(LINE_LIMIT_BYTES):
            if not line.endswith(b"\n"):
                if len(line) == LINE_LIMIT_BYTES:
                    raise EvidenceError(f"{path}: a line longer than {LINE_LIMIT_BYTES >> 20} MiB.")
                self.torn.append(f"{path.name} ends inside the line at byte {at}")
                break
            try:
                index = decoder.decode(line).index
            except (msgspec.MsgspecError, RecursionError) as error:
                raise EvidenceError(f"{path}, the line at byte {at}: {error}.") from error
            self._note(path, index, at)
            at += len(line)

    def _note(self, path: Path, index: int, at: int) -> None:
        begins = self._begins
        if not 0 <= index <= self._count + MOST_UNSEEN:
            raise EvidenceError(f"{path}, the line at byte {at}: no request of ours has the index {index}.")
        if index >= len(begins):
            begins.extend([-1] * (index + 1 - len(begins)))
        if begins[index] >= 0:
            if len(self.repeated) < KEPT:
                self.repeated.append(index)
            return
        begins[index] = at
        self._count += 1

    def __getitem__(self, index: int) -> RequestRow:
        begin = self._begins[index] if 0 <= index < len(self._begins) else -1
        if begin < 0 or self._file is None:
            raise KeyError(index)
        self._file.seek(begin)
        try:
            return self._decoder.decode(self._file.readline(LINE_LIMIT_BYTES))
        except (msgspec.MsgspecError, RecursionError) as error:
            raise EvidenceError(f"{layout.REQUESTS}, the line at byte {begin}: {error}.") from error

    def __contains__(self, index: object) -> bool:
        return isinstance(index, int) and 0 <= index < len(self._begins) and self._begins[index] >= 0

    def __iter__(self) -> Iterator[int]:
        return (index for index, begin in enumerate(self._begins) if begin >= 0)

    def __len__(self) -> int:
        return self._count

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


class _Index(Struct):
    index: int
