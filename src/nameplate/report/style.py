"""How statuses look. The word always stands; colour only repeats it."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Group, RenderableType
from rich.text import Text

from nameplate.report.layout import bulleted, heading, indented
from nameplate.report.safe import safe, safe_text
from nameplate.verdict.warnings import Warned

# A warning may hold a list of names; a page of them helps nobody.
_LIMIT = 2000

_STYLES = {
    "pass": "green",
    "yes": "green",
    "ok": "green",
    "confirmed": "bold green",
    "fail": "red",
    "failed": "bold red",
    "no": "red",
    "refused": "yellow",
    "noisy": "bold yellow",
    "inconclusive": "yellow",
    "unverified": "yellow",
    "unknown": "yellow",
    "open_above": "bold yellow",
    "open_below": "bold yellow",
    "budget": "bold yellow",
    "invalid": "bold magenta",
    "interrupted": "bold magenta",
    "valid": "green",
    "over_capacity": "blue",
    "over_limit": "blue",
    "not_ready": "yellow",
    "underfilled": "yellow",
    "extra_traffic": "yellow",
    "looped": "magenta",
    "client_limited": "bold magenta",
    "server_error": "red",
    "skipped": "dim",
}


def status(word: str) -> Text:
    """Return a status word in its colour."""
    return Text(safe(word), style=_STYLES.get(word, ""))


def style_of(word: str) -> str:
    """Return a status word's colour; none for a word that is not known."""
    return _STYLES.get(word, "")


def warnings(found: Iterable[Warned], title: str = "Warnings") -> Group | None:
    """Return warnings as paragraphs: what was seen, why it matters, what to try; None where there are none."""
    parts: list[RenderableType] = []
    for warned in found:
        text = safe_text(warned.what, "bold", _LIMIT)
        for part in (warned.why, warned.hint):
            if part:
                text.append(f" {safe(part, _LIMIT)}", style="not bold")
        parts.append(indented(bulleted("!", "bold yellow", text)))
    return Group(heading(title), *parts) if parts else None
