"""A fault as one paragraph: what happened, why it matters, what to try, whose fault it is."""

from __future__ import annotations

from rich.text import Text

from nameplate.contract.errors import Interrupted, NameplateError
from nameplate.report.safe import safe

# An error may carry a server's answer; a page of it helps nobody.
_LIMIT = 1200

_BLAME = {
    "the request": "What was asked is at fault.",
    "the evidence": "The evidence is at fault.",
    "this machine": "This machine is at fault, not the server.",
    "the server": "The server is at fault.",
}


def error_paragraph(error: NameplateError) -> Text:
    """Return the paragraph; where a server's words are part of it they are made harmless."""
    if isinstance(error, Interrupted):
        return Text(" ".join(safe(part, _LIMIT) for part in (error.what, error.why, error.hint) if part))
    text = Text("Error: ", style="bold red")
    text.append(safe(error.what, _LIMIT), style="bold default")
    for part in (error.why, error.hint, _BLAME.get(error.fault, "")):
        if part:
            text.append(f" {safe(part, _LIMIT)}", style="not bold default")
    return text
