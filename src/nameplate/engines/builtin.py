"""The built-in engine: vLLM's interface under a name of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from nameplate.engines.vllm import VllmAdapter

ENGINE = "nameplate-sim"


class BuiltinAdapter(VllmAdapter):
    """Speak to the built-in engine, whose `/version` names it."""

    name = ENGINE
    how_to_enable: ClassVar[Mapping[str, str]] = {}
