"""What became of a trial's requests: counts that add up, and failures by name with what was said of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import htpy as h

from nameplate.contract.plan import TrialPlan
from nameplate.evidence.rows import RequestRow
from nameplate.measure.correctness import Correctness
from nameplate.pages.table import Cell, Column, table
from nameplate.pages.values import value
from nameplate.report import numbers
from nameplate.report.safe import safe
from nameplate.wire.outcome import Outcome

_PARTS = ("ok", "failed", "cancelled", "unfinished")
# A hostile server can fail every request with a message of its own.
_MOST_KINDS = 20
_MESSAGE_LIMIT = 300
_CUT = (Outcome.cancelled.value, Outcome.unfinished.value)


def sums(found: Correctness, path: str | None = "measurement.correctness") -> h.Element:
    """Return sent = ok + failed + cancelled + unfinished; without a path the counts stand in no document."""

    def of(name: str) -> h.Element:
        count: int = getattr(found, name)
        return value(f"{count:,}", count, None if path is None else f"{path}.{name}")

    return h.span(".sums")[
        of("sent"),
        " sent = ",
        [[" + " if at else "", of(name), f" {name}"] for at, name in enumerate(_PARTS)],
    ]


def failures(rows: Sequence[RequestRow], plan: TrialPlan) -> h.Node:
    """Return the measured requests that did not end well, by outcome, HTTP status and message, the most first.

    Those of a load that is cut as planned are no failures.
    """
    kinds: Counter[tuple[str, int | None, str]] = Counter()
    first: dict[tuple[str, int | None, str], int] = {}
    for row in rows:
        if row.outcome == Outcome.ok or (plan.cut and row.outcome in _CUT):
            continue
        kind = (row.outcome, row.http_status, (row.error or "")[:_MESSAGE_LIMIT])
        kinds[kind] += 1
        first.setdefault(kind, row.index)
    if not kinds:
        return None
    shown = kinds.most_common(_MOST_KINDS)
    found: list[list[Cell | str]] = [
        [
            safe(outcome, 60),
            Cell(None if status is None else str(status), status),
            Cell(f"{count:,}", count),
            Cell(f"{first[outcome, status, error]:,}", first[outcome, status, error]),
            safe(error, _MESSAGE_LIMIT) or "-",
        ]
        for (outcome, status, error), count in shown
    ]
    columns = (
        Column("outcome", kind="text"),
        Column("HTTP"),
        Column("requests"),
        Column("first", "first request"),
        Column("message", kind="text"),
    )
    rest = len(kinds) - len(shown)
    note = f"and {numbers.count(rest, 'more kind')}" if rest else None
    return table(columns, found, "Requests that did not end well, by name", note=note)
