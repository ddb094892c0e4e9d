"""The adapter for a server whose engine is not known: what OpenAI's API tells, and nothing more."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from nameplate.engines.adapter import Adapter


class GenericAdapter(Adapter):
    """Know nothing, and say so: no state, no flush, no counts but those of each answer's usage."""

    name = "generic"
    how_to_enable: ClassVar[Mapping[str, str]] = {
        "metrics": "The engine was not recognised. Its state stays unknown: idleness, other traffic and KV use "
        "cannot be checked.",
        "flush": "Restart the server between studies, or use fresh prompts (the default).",
        "portability": "State what you know with --fact version=... --fact kv_tokens=... or --server-log FILE.",
    }
