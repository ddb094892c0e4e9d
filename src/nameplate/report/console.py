"""The two consoles: stderr is for people, stdout is for answers."""

from __future__ import annotations

import os
import sys
from typing import TextIO

from rich.console import Console

# A log has no width of its own; the tables show every column at this one.
PIPED_WIDTH = 120


def people() -> Console:
    """Return the console on stderr, for progress and messages; NO_COLOR, FORCE_COLOR and COLUMNS are respected."""
    return _console(sys.stderr)


def answers() -> Console:
    """Return the console on stdout, for what was asked; NO_COLOR, FORCE_COLOR and COLUMNS are respected."""
    return _console(sys.stdout)


def animated(console: Console) -> bool:
    """Tell whether a person watches: lines may be redrawn. FORCE_COLOR makes no terminal of a pipe."""
    return _is_terminal(console.file) and not console.is_dumb_terminal


def _console(stream: TextIO) -> Console:
    # A stream that cannot write a letter writes its number; an answer is never lost over an encoding.
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="backslashreplace")
    piped = not _is_terminal(stream) and not os.environ.get("COLUMNS")
    return Console(
        file=stream,
        width=PIPED_WIDTH if piped else None,
        markup=False,
        emoji=False,
        highlight=False,
    )


def _is_terminal(stream: object) -> bool:
    try:
        return bool(stream.isatty())  # type: ignore[attr-defined]
    except (AttributeError, ValueError):
        return False
