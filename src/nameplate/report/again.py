"""The command that repeats a run: the same, but for its directory, which is taken now."""

from __future__ import annotations

import shlex
from collections.abc import Sequence


def repeating(command: Sequence[str]) -> str:
    """Return a recorded command line, quoted for a shell, without its `--out`."""
    words = list(command)
    for at, word in enumerate(words):
        if word == "--out":
            del words[at : at + 2]
            break
        if word.startswith("--out="):
            del words[at]
            break
    return shlex.join(words)
