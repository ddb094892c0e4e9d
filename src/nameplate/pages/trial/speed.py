"""A trial of the speed matrix: its cell's status first, and numbers only where that is valid."""

from __future__ import annotations

import htpy as h

from nameplate.measure.result import TrialResult
from nameplate.measure.speed_trial import SpeedTrial
from nameplate.pages.values import Raw, value
from nameplate.pages.words import badge, facts, paragraphs
from nameplate.report import numbers
from nameplate.report.safe import safe


def cell_section(result: TrialResult) -> h.Node:
    """Return what the cell of a trial came to; nothing for a trial of another study."""
    speed = result.speed
    if speed is None:
        return None
    entries: list[tuple[h.Node, h.Node] | None] = [
        ("Cell", [badge(speed.verdict.status), " ", safe(speed.verdict.reason, 1500)])
    ]
    if speed.verdict.valid:
        entries += _numbers(speed)
    return h.div[
        h.h3["The cell of the matrix"],
        facts(entries),
        paragraphs(safe(one, 600) for one in speed.verdict.notes),
    ]


def _numbers(speed: SpeedTrial) -> list[tuple[h.Node, h.Node] | None]:
    found: list[tuple[h.Node, h.Node] | None] = []

    def add(title: str, said: str, raw: Raw, path: str | None) -> None:
        if said != numbers.ABSENT:
            found.append((title, value(said, raw, None if path is None else f"speed.{path}")))

    cell, prefill, mixed = speed.cell, speed.prefill, speed.mixed
    if cell is not None:
        length = None if cell.window is None else cell.window.length_ns
        add("Output, all streams", numbers.rate(cell.rate, "tok/s"), cell.rate, "cell.rate")
        add(
            "Per user, p50",
            f"{numbers.percentile(cell.per_user, 'p50')} tok/s",
            cell.per_user.p50,
            "cell.per_user.p50",
        )
        add("ITL p50", numbers.percentile(cell.itl, "p50"), cell.itl.p50, "cell.itl.p50")
        add(f"TTFT p50, {cell.warmth}", numbers.percentile(cell.ttft, "p50"), cell.ttft.p50, "cell.ttft.p50")
        # The document holds its edges.
        add("Window", numbers.duration(length), length, None)
        add("In flight", numbers.count(cell.in_flight), cell.in_flight, "cell.in_flight")
        add("Streams that started again", numbers.count(cell.restarts), cell.restarts, "cell.restarts")
    if prefill is not None:
        add("Prefill, median", numbers.rate(prefill.median, "tok/s"), prefill.median, "prefill.median")
    if mixed is not None:
        add("TTFT of the arrival", numbers.duration(mixed.ttft_ns), mixed.ttft_ns, "mixed.ttft_ns")
        for name in ("before", "during", "after"):
            part = getattr(mixed, name)
            if part is not None:
                add(f"Streams {name} it", numbers.rate(part.rate, "tok/s"), part.rate, f"mixed.{name}.rate")
    return found
