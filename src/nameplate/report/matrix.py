"""The speed matrix as people read it: each cell's rate, or why there is none, and a legend of what occurs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct
from rich.console import Group, RenderableType
from rich.text import Text

from nameplate.contract.matrix import BURST_REQUESTS_PER_STREAM, Kind, Matrix
from nameplate.measure.cell import Warmth
from nameplate.measure.speed_result import CellRow, CellValues, SpeedResult
from nameplate.report import numbers
from nameplate.report.cells import (
    MEANING,
    WORDS,
    bracketed,
    label_of,
    middle,
    name_of,
    prompt_range,
    status_of,
    values_of,
)
from nameplate.report.grid import Grid, GridCell
from nameplate.report.layout import facts, heading, indented
from nameplate.report.safe import safe, safe_text
from nameplate.report.style import style_of
from nameplate.verdict.cell import CellStatus

ESTIMATED = "~"
NOTED = "!"
WARMTH_MARK: dict[Warmth, str] = {"cold": "c", "warm": "w", "partly warm": "p", "unknown": "?"}
WARMTH_MEANING: dict[Warmth, str] = {
    "cold": "the prompts were not in the server's cache, so the TTFT holds their prefill",
    "warm": "the prompts were in the server's cache, so the TTFT mostly leaves prefill out",
    "partly warm": "some of the prompts were in the server's cache",
    "unknown": "the server does not tell whether prompts were in its cache",
}
_REASON_LIMIT = 300


class _Form(Struct, frozen=True):
    """Say how a phase's cells read: what stands below the total rate, in the wide form and the narrow one."""

    caption: str
    detail: Callable[[CellValues], tuple[str, str]]
    narrow_first: str
    warmth: bool


def _decode_detail(values: CellValues) -> tuple[str, str]:
    return middle(values.per_user), middle(values.ttft)


def _burst_detail(values: CellValues) -> tuple[str, str]:
    return middle(values.ttft), middle(values.e2e)


_FORMS: dict[Kind, _Form] = {
    "decode": _Form(
        caption="below it each user's tok/s and the ramp's TTFT",
        detail=_decode_detail,
        narrow_first="{} each",
        warmth=True,
    ),
    "burst": _Form(
        caption="below it TTFT and E2E latency",
        detail=_burst_detail,
        narrow_first="{}",
        warmth=False,
    ),
}


def matrix(
    result: SpeedResult, kind: Kind, explained: set[CellStatus], *, discarded: bool = False
) -> RenderableType | None:
    """Return one phase's matrix with its legend; None where it has no cells.

    `explained` holds the statuses that need no more words, and gains those of this legend.
    """
    rows = result.rows_of(kind)
    if not rows:
        return None
    form = _FORMS[kind]
    shown = [values for row in rows if (values := values_of(row, discarded)) is not None]
    warmths = Counter(values.warmth for values in shown if values.warmth is not None and form.warmth)
    one_warmth = next(iter(warmths)) if len(warmths) == 1 else None
    best = max((v.tokens_per_s for row in rows if (v := values_of(row)) and v.tokens_per_s), default=None)
    contexts = sorted({row.context_tokens for row in rows})
    levels = sorted({row.concurrency for row in rows})
    cells = {
        (contexts.index(row.context_tokens), levels.index(row.concurrency)): _cell(
            row, form, best, discarded, mark=form.warmth and one_warmth is None
        )
        for row in rows
    }
    heads = [_row_head([row for row in rows if row.context_tokens == context]) for context in contexts]
    grid = Grid("context", heads, [f"{level:,}" for level in levels], cells)
    return Group(
        _heading(result, kind),
        *(indented(line) for line in _captions(rows, form, one_warmth, bool(shown))),
        Text(""),
        indented(grid),
        *legend(rows, explained, marks=_marks(rows, warmths, discarded)),
    )


def _heading(result: SpeedResult, kind: Kind) -> Text:
    title, more = matrix_title(result, kind)
    return heading(title).append(f"  {more}", style="not bold")


def matrix_title(result: SpeedResult, kind: Kind) -> tuple[str, str]:
    """Name the matrix of decode or burst, and say how its cells were measured."""
    speed = result.contract.speed if result.contract is not None else None
    if result.origin is not None:
        return kind.capitalize(), f"as {safe(result.origin.tool, 80)} measured it"
    if kind == "burst":
        each = "" if speed is None else _wave(speed)
        return "Burst", f"one wave with admission, queueing and cache behaviour in it{each}"
    if speed is not None and speed.requests is not None:
        return "Decode", f"over {speed.requests:,} requests a cell"
    window = "" if speed is None else f" of {numbers.limit(speed.window_ns)}"
    return "Sustained decode", f"over a fixed window{window}, once all streams run"


def _wave(speed: Matrix) -> str:
    if speed.burst_requests is not None:
        return f", {numbers.count(speed.burst_requests, 'request')} or one a user"
    return f", {BURST_REQUESTS_PER_STREAM} requests a user"


def _captions(rows: Sequence[CellRow], form: _Form, warmth: Warmth | None, shown: bool) -> list[Text]:
    said = "Rows: context"
    if prompt_range(rows) is not None:
        said += ", and its prompt tokens as counted"
    lines = [Text(f"{said}. Columns: simultaneous requests.", style="dim")]
    if shown:
        known = "" if warmth is None else f" ({warm_words(warmth)})"
        total = f"Cells: total output tok/s; {form.caption}{known}, medians."
        lines.append(Text(total, style="dim"))
    if shown and form.warmth and warmth != "warm" and any(row.concurrency > 1 for row in rows):
        lines.append(
            Text("A ramp sends all its prompts at once: its TTFT holds the others' prefill.", style="dim")
        )
    return lines


def warm_words(warmth: Warmth) -> str:
    """Say whether prompts were cached."""
    return "cold or warm unknown" if warmth == "unknown" else warmth


def _row_head(rows: Sequence[CellRow]) -> Text:
    head = Text(label_of(rows[0]), style="bold")
    counted = prompt_range(rows)
    if counted is not None:
        low, high = f"{counted[0]:,}", f"{counted[1]:,}"
        said = low if low == high else f"{low} to\n{high}"
        head.append(f"\n{said}", style="not bold dim")
    return head


def _cell(row: CellRow, form: _Form, best: float | None, discarded: bool, mark: bool) -> GridCell:
    values = values_of(row, discarded)
    valid = row.status is CellStatus.valid
    if values is None:
        return GridCell((status_of(row),), (status_of(row, broken=True),))
    total = ("~" if values.estimated else "") + numbers.brief_rate(values.tokens_per_s)
    if valid and row.notes:
        total = f"{NOTED} {total}"
    top = Text(
        bracketed(total, row),
        style="dim" if not valid else "bold green" if values.tokens_per_s == best else "bold",
    )
    first, second = form.detail(values)
    if mark and values.warmth is not None and second != numbers.ABSENT:
        second += f" {WARMTH_MARK[values.warmth]}"
    narrow = [
        top,
        Text(form.narrow_first.format(first) if first != numbers.ABSENT else first, style="dim"),
        Text(second, style="dim"),
    ]
    if valid:
        return GridCell((top, (first, second)), narrow)
    return GridCell((status_of(row), top), (status_of(row, broken=True), top))


def _marks(rows: Sequence[CellRow], warmths: Counter[Warmth], discarded: bool) -> list[tuple[str, str]]:
    """Explain the marks that occur."""
    shown = [(row, values) for row in rows if (values := values_of(row, discarded)) is not None]
    marks: list[tuple[str, str]] = []
    if len(warmths) > 1:
        marks += [
            (f"{WARMTH_MARK[one]} ({count:,})", f"{warm_words(one)}: {WARMTH_MEANING[one]}")
            for one, count in sorted(warmths.items())
        ]
    estimated = sum(values.estimated for _, values in shown)
    if estimated:
        marks.append((f"{ESTIMATED} ({estimated:,})", "estimated: the server does not count tokens along"))
    noted = sum(row.status is CellStatus.valid and bool(row.notes) for row, _ in shown)
    if noted:
        marks.append((f"{NOTED} ({noted:,})", "valid, with a note below"))
    bad = sum(row.status is not CellStatus.valid for row, _ in shown)
    if bad:
        marks.append(
            (f"(n) ({bad:,})", "measured in a cell that is not valid: no result, shown because you asked")
        )
    return marks


def legend(
    rows: Iterable[CellRow], explained: set[CellStatus], *, marks: Sequence[tuple[str, str]] = ()
) -> list[RenderableType]:
    """Explain the statuses and marks that occur, with how many there are; nothing where all is plain."""
    lines: list[tuple[str, RenderableType]] = list(marks)
    by_status: dict[CellStatus, list[CellRow]] = {}
    for row in rows:
        by_status.setdefault(row.status, []).append(row)
    for status in CellStatus:
        held = by_status.get(status)
        if not held or status is CellStatus.valid:
            continue
        said = Text() if status in explained else Text(f"{MEANING[status]}; ")
        explained.add(status)
        example = held[0]
        eg = "" if len(held) == 1 else "e.g. "
        said.append_text(
            safe_text(f"{eg}{name_of(example)}: {safe(example.reason, _REASON_LIMIT)}", "dim", None)
        )
        lines.append((f"{WORDS[status]} ({len(held):,})", said))
    if not lines:
        return []
    colours = {f"{WORDS[status]} (": style_of(status.value) for status in by_status}
    return [Text(""), _coloured(lines, colours)]


def _coloured(lines: Sequence[tuple[str, RenderableType]], colours: dict[str, str]) -> RenderableType:
    """Lay out the legend's lines, each label in its status' colour."""
    return facts(lines, styles=[_style(label, colours) for label, _ in lines])


def _style(label: str, colours: dict[str, str]) -> str:
    return next((style for start, style in colours.items() if label.startswith(start)), "bold")
