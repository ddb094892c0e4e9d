"""The server under a soak, from start to start, and what came in between."""

from __future__ import annotations

import htpy as h

from nameplate.measure.soak.result import SoakResult
from nameplate.measure.soak.segment import Part, SegmentResult
from nameplate.pages.table import Cell, Column, table
from nameplate.report import numbers
from nameplate.report.safe import safe
from nameplate.report.soak_fates import gap_words, outage_words, since_s, step_words
from nameplate.report.soak_words import moment, spread

# Rows of each table here; a server that restarts more often is told by their number.
MOST_ROWS = 200


def server_section(result: SoakResult) -> h.Element:
    """Return each life of the server with its pool, then losses, gaps, clock steps and damage."""
    return h.section(aria_label="The server, from start to start")[
        h.h2["The server, from start to start"],
        _parts(result),
        _between(result),
    ]


def _parts(result: SoakResult) -> h.Node:
    columns = (
        Column("part", kind="text"),
        Column("from", "from, s"),
        Column("to", "to, s"),
        Column("KV pool\ntokens", "KV pool, tokens"),
        Column("full-budget\nequivalents", "full-budget equivalents"),
        Column("really\nresident", "really resident, full budgets"),
        Column("running"),
        Column("KV use", "KV use, mean"),
        Column("ok"),
        Column("failed"),
        Column("changed", kind="text"),
        Column("ended by", kind="text"),
    )
    segments = {segment.segment: segment for segment in result.segments}
    held = [(at, part) for at, part in enumerate(result.parts) if part.segment in segments]
    rows = [
        _part(result, segments[part.segment], part, f"result.parts.{at}") for at, part in held[:MOST_ROWS]
    ]
    budget = result.parts[0].full_budget_tokens if result.parts else 0
    more = f" {len(held) - MOST_ROWS:,} more parts stand in soak.json." if len(held) > MOST_ROWS else ""
    return h.fragment[
        table(columns, rows, "Lives of the server"),
        h.p(".soft")[
            f"Full-budget equivalents: pool / {budget:,} tokens (input + output of a request), a planning ratio, not a "
            f"measurement. Really resident: mean KV use x pool, in the same unit.{more}"
        ],
    ]


def _part(result: SoakResult, segment: SegmentResult, part: Part, path: str) -> list[Cell | str]:
    short = safe(part.segment.rpartition(".")[2], 40)
    usage, running = part.kv_usage, part.running
    begin_s, end_s = since_s(result, segment, part.begin_ns), since_s(result, segment, part.end_ns)
    return [
        f"{short}, {part.number}" if len(result.segments) > 1 else f"{part.number}",
        Cell(moment(begin_s), begin_s),
        Cell(moment(end_s), end_s),
        Cell(numbers.count(part.kv_tokens), part.kv_tokens, f"{path}.kv_tokens"),
        Cell(_decimal(part.equivalents_full), part.equivalents_full, f"{path}.equivalents_full"),
        Cell(_decimal(part.equivalents_resident), part.equivalents_resident, f"{path}.equivalents_resident"),
        Cell(None) if running is None else Cell(spread(running), running.mean, f"{path}.running.mean"),
        Cell(None)
        if usage is None
        else Cell(
            f"{numbers.share(usage.mean)} ({numbers.share(usage.max, 2)} at most)",
            usage.mean,
            f"{path}.kv_usage.mean",
        ),
        Cell(f"{part.ok:,}", part.ok, f"{path}.ok"),
        Cell(f"{part.failed:,}", part.failed, f"{path}.failed"),
        Cell(safe("; ".join(str(change) for change in part.changes), 400), classes="words"),
        Cell(safe(part.ends, 120), part.ends, f"{path}.ends", "words"),
    ]


def _decimal(found: float | None) -> str | None:
    return None if found is None else f"{found:.1f}"


def _between(result: SoakResult) -> h.Node:
    """Return losses of the server, gaps, steps of the wall clock and damage, in words."""
    said: list[tuple[str, str]] = []
    for segment in result.segments:
        said += [("Server lost", outage_words(result, segment, outage)) for outage in segment.outages]
    for gap in result.gaps:
        said.append(("Gap", gap_words(result, gap)))
    for segment in result.segments:
        said += [("Clock step", step_words(result, segment, step)) for step in segment.clock_steps]
        said += [("Torn", f"{segment.segment}: {words}") for words in segment.torn]
        said += [("Damage", f"{segment.segment}: {words}") for words in segment.damage]
    if not said:
        return h.p["Nothing came in between: no loss of the server, no gap, no step of the clock, no damage."]
    columns = (Column("what", kind="text"), Column("what happened", kind="text"))
    rows = [[what, safe(words, 600)] for what, words in said[:MOST_ROWS]]
    more = f"{len(said) - MOST_ROWS:,} more stand in soak.json" if len(said) > MOST_ROWS else None
    return table(columns, rows, "What came in between", sortable=False, note=more)
