"""Whose numbers an imported result holds, and how that tool's definitions differ from ours."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Group, RenderableType
from rich.text import Text

from nameplate.measure.speed_result import SpeedResult
from nameplate.report.layout import facts, heading
from nameplate.report.safe import safe, safe_text

_MEANING_LIMIT = 600
# So many definitions are told; those of the numbers that the summary shows come first.
_SHOWN = 8

# By the names of llm-inference-bench's fields, in the order in which they matter here: what ours means instead.
OURS = {
    "aggregate_tps": "the same tokens / the fixed window",
    "ttft": "from the first byte sent on an open connection; a request without output counts as never",
    "output_tps_per_user": "1 / ITL of what arrived in the window",
    "inter_token_latency": "of what arrived in the window, over the tokens after the first chunk",
    "max_total_tokens": "the engine's own count, with its source",
    "server_utilization": "mean and largest over the window",
    "request_latency": "send to last output",
    "time_to_second_token": "since the request was sent",
    "server_spec_accept_rate": "over the whole window",
    "measurement_wall_seconds": "the window is fixed in advance",
}


def whose(result: SpeedResult) -> Text | None:
    """Say of an imported result whose numbers these are; None for our own."""
    origin = result.origin
    if origin is None:
        return None
    text = Text("Imported: ", style="bold yellow")
    text.append(
        f"these numbers are those of {safe(origin.tool, 80)} {safe(origin.version, 40)}, by its definitions, from "
        f"{safe(origin.file)}. nameplate has measured none of them; it read the file and gave each cell "
        f"its status.",
        style="default not bold",
    )
    return text


def most_telling(names: Iterable[str]) -> list[str]:
    """Sort names of fields: those whose meaning matters most here come first."""
    rank = {name: at for at, name in enumerate(OURS)}
    return sorted(names, key=lambda name: rank.get(name, len(rank)))


def definitions(result: SpeedResult) -> RenderableType | None:
    """List what an imported result's fields mean there and what ours mean instead; the most telling ones first."""
    origin = result.origin
    if origin is None or not origin.definitions:
        return None
    names = most_telling(origin.definitions)
    lines: list[tuple[str, RenderableType]] = []
    for name in names[:_SHOWN]:
        said = safe_text(origin.definitions[name], "", _MEANING_LIMIT)
        if name in OURS:
            said.append(f" Here: {OURS[name]}.", style="dim")
        lines.append((safe(name, 40), said))
    if len(names) > _SHOWN:
        more = f"{len(names) - _SHOWN:,} more definitions in result.json, under origin"
        lines.append(("", Text(more, style="dim")))
    return Group(heading(f"How {safe(origin.tool, 80)}'s definitions differ"), facts(lines))
