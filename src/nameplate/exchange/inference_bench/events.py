"""What the event log of a result file tells: the server's version and limits, and what became of cells.

A line is `HH:MM:SS words`, a context in it `64k` for 65,536.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from msgspec import Struct

from nameplate.exchange.inference_bench.reading import context_of

_ENGINE = re.compile(r"\bengine (\S+) (\S+) models=")
_LIMIT = re.compile(r"\bmodel context length: ([\d,]{1,15}) tokens")
_POOL = re.compile(r"\bKV cache budget(?: (manual))?: ")
_STARTED = re.compile(r"\bcell start C=(\d{1,6}) ctx=(\S+)")
_ENDED = re.compile(r"\bcell (?:done|end) C=(\d{1,6}) ctx=(\S+)")
_SKIPPED = re.compile(r"\bcell skipped C=(\d{1,6}) ctx=(\S+)(.*)")


class Log(Struct, frozen=True, kw_only=True):
    """Hold what the log tells; cells are (context, concurrency)."""

    engine_version: str | None = None
    context_limit: int | None = None
    pool_by_hand: bool = False
    started: frozenset[tuple[int, int]] = frozenset()
    ended: frozenset[tuple[int, int]] = frozenset()
    skipped: Mapping[tuple[int, int], str] = {}

    def why_skipped(self, context: int, concurrency: int) -> str | None:
        return self.skipped.get((context, concurrency))


def read_log(lines: Iterable[str]) -> Log:
    """Read the log; lines that say nothing of this are passed over."""
    version, limit, by_hand = None, None, False
    started, ended = set(), set()
    skipped: dict[tuple[int, int], str] = {}
    for line in lines:
        if match := _ENGINE.search(line):
            version = match[2]
        elif match := _LIMIT.search(line):
            digits = match[1].replace(",", "")
            limit = int(digits) if digits else limit
        elif match := _POOL.search(line):
            by_hand = match[1] is not None
        elif (match := _STARTED.search(line)) and (cell := _cell(match)):
            started.add(cell)
        elif (match := _ENDED.search(line)) and (cell := _cell(match)):
            ended.add(cell)
        elif (match := _SKIPPED.search(line)) and (cell := _cell(match)):
            skipped.setdefault(cell, match[3].strip())
    return Log(
        engine_version=version,
        context_limit=limit,
        pool_by_hand=by_hand,
        started=frozenset(started),
        ended=frozenset(ended),
        skipped=skipped,
    )


def _cell(match: re.Match[str]) -> tuple[int, int] | None:
    context = context_of(match[2])
    return None if context is None else (context, int(match[1]))
