"""The built-in engine: vLLM's interface under a name of its own, and a page of its parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from nameplate.contract.identity import Fact
from nameplate.engines.answers import child, facts, whole
from nameplate.engines.vllm import VllmAdapter

ENGINE = "nameplate-sim"


class BuiltinAdapter(VllmAdapter):
    """Speak to the built-in engine: what a real one tells in its log stands on `/sim`."""

    name = ENGINE
    how_to_enable: ClassVar[Mapping[str, str]] = {}

    def _engine_facts(self) -> dict[str, Fact]:
        version, version_path = self._object("/version")
        page, path = self._object("/sim")
        parameters = page.get("parameters")
        found = facts(self.detected_by or path, engine=self.name)
        found.update(facts(version_path, version=version.get("version")))
        drafts = child(parameters, "draft_tokens")
        found.update(
            facts(
                path,
                running_limit_requested=whole(child(parameters, "running_limit_requested")),
                running_limit_effective=whole(child(parameters, "running_limit")),
                kv_tokens=whole(child(parameters, "kv_tokens")),
                block_size_tokens=whole(child(parameters, "block_tokens")),
                prefix_caching=child(parameters, "prefix_cache"),
                prefill_chunk_tokens=whole(child(parameters, "chunk_tokens")),
                speculative=None if drafts is None else (f"drafts={drafts}" if drafts else "none"),
                hardware="none: a model of an engine" if page else None,
            )
        )
        return found
