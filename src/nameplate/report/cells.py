"""A planned cell in words: its name, its status, and which of its numbers may be shown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from rich.text import Text

from nameplate.contract.matrix import Kind
from nameplate.measure.speed_result import CellRow, CellValues
from nameplate.report import numbers
from nameplate.report.safe import safe
from nameplate.report.style import style_of
from nameplate.statistics.percentile import Distribution
from nameplate.verdict.cell import UNDERFILLED_SHARE, CellStatus

LABEL_LIMIT = 24

PHASE: dict[Kind, str] = {
    "prefill": "prefill",
    "decode": "decode",
    "burst": "burst",
    "mixed": "mixed prefill",
}

WORDS: dict[CellStatus, str] = {status: status.value.replace("_", " ") for status in CellStatus}

# Where a column is narrow its words are broken here and nowhere else.
_BROKEN = {
    CellStatus.underfilled: "under-\nfilled",
    CellStatus.interrupted: "inter-\nrupted",
}

MEANING: dict[CellStatus, str] = {
    CellStatus.valid: "measured as planned",
    CellStatus.over_capacity: "not run: so many requests of this length need more KV cache than the server has",
    CellStatus.over_limit: "beyond what the server accepts: its context length, or how many it runs at once",
    CellStatus.not_ready: "the server did not come to run all of them at once before the deadline",
    CellStatus.underfilled: (
        f"fewer ran than asked in more than {UNDERFILLED_SHARE:.0%} of the window, so it is no rate of that many"
    ),
    CellStatus.extra_traffic: "the server ran more than ours: somebody else's requests, or some left over",
    CellStatus.looped: "too many streams repeated the same text, which decodes unlike an answer",
    CellStatus.client_limited: "this machine was too slow, so the numbers would be its own",
    CellStatus.server_error: "the server failed, so there is nothing to rate",
    CellStatus.skipped: "not run, by choice or for want of time",
    CellStatus.interrupted: "cut short before it was over",
}


def label_of(row: CellRow) -> str:
    """Return a row's context as people name it."""
    return safe(row.label, LABEL_LIMIT)


def name_of(row: CellRow) -> str:
    """Name a cell within its phase: `8K x 4`, a prefill by its context alone."""
    return label_of(row) if row.kind == "prefill" else f"{label_of(row)} x {row.concurrency:,}"


def status_of(row: CellRow, *, broken: bool = False) -> Text:
    """Return a row's status in words; `broken` over the lines of a narrow column."""
    words = WORDS[row.status]
    if broken:
        words = _BROKEN.get(row.status, words.replace(" ", "\n"))
    return Text(words, style=style_of(row.status.value))


def values_of(row: CellRow, discarded: bool = False) -> CellValues | None:
    """Return a valid row's numbers; with `discarded` those of any other row too, to be marked by the caller."""
    if row.status is CellStatus.valid:
        return row.values
    return row.discarded if discarded else None


def bracketed(said: str, row: CellRow) -> str:
    """Put a number in brackets that was measured in a cell that is not valid."""
    return said if row.status is CellStatus.valid or said in ("", numbers.ABSENT) else f"({said})"


def middle(held: Distribution | None, *, brief: bool = True) -> str:
    """Write a distribution's median; the one value where there is one."""
    if held is None or held.n == 0:
        return numbers.ABSENT
    if held.p50 is None:
        return numbers.NEVER
    if held.unit != "ns":
        return numbers.brief_rate(held.p50)
    return numbers.brief(held.p50) if brief else numbers.duration(held.p50)


def per_user(values: CellValues) -> float | None:
    """Return what one of the users reads, in tokens a second: the median over the streams."""
    if values.per_user is not None and values.per_user.n:
        return values.per_user.p50
    return None


def tally(rows: Iterable[CellRow]) -> str:
    """Count cells by status, the most first, valid ones ahead: `14 valid, 31 looped, 3 over capacity`."""
    counted = Counter(row.status for row in rows)
    order = sorted(counted, key=lambda one: (one is not CellStatus.valid, -counted[one], one.value))
    return ", ".join(f"{counted[one]:,} {WORDS[one]}" for one in order)


def prompt_range(rows: Iterable[CellRow]) -> tuple[int, int] | None:
    """Return the smallest and largest prompt that the server counted in these rows; None where it counted none."""
    known = [row.prompt_tokens for row in rows if row.prompt_tokens is not None]
    return (min(one.low for one in known), max(one.high for one in known)) if known else None
