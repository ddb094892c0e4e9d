"""llama.cpp: `/props` for its limits, its template applied before counting; its cache has no flush."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from nameplate.contract.identity import Fact
from nameplate.engines.adapter import Adapter, FlushReply, TokenCount
from nameplate.engines.answers import child, facts, json_object, whole


class LlamaCppAdapter(Adapter):
    """Read `/props` and, where the server was started with it, `/metrics`."""

    name = "llama.cpp"
    how_to_enable: ClassVar[Mapping[str, str]] = {
        "metrics": "Start the server with --metrics.",
        "flush": "Caches are per slot; fresh prompts (the default) stay cold by construction.",
        "portability": "Give --fact name=value.",
    }

    def _engine_facts(self) -> dict[str, Fact]:
        props, path = self._object("/props")
        slots = whole(props.get("total_slots"))
        context = whole(child(props, "default_generation_settings", "n_ctx"))
        return {
            **facts(self.detected_by or path, engine=self.name),
            **facts(
                path,
                version=props.get("build_info"),
                model_root=props.get("model_path"),
                # `n_ctx` is one slot's share.
                context_limit_tokens=context,
                kv_tokens=None if slots is None or context is None else slots * context,
                running_limit_requested=slots,
                running_limit_effective=slots,
            ),
        }

    def flush(self) -> FlushReply:
        return FlushReply(False, None, "llama.cpp erases caches slot by slot, only with --slot-save-path")

    def tokenize(self, text: str) -> TokenCount | None:
        templated = False
        if self.target.api == "chat":
            message = {"messages": [{"role": "user", "content": text}]}
            reply = self._try("POST", "/apply-template", message)
            prompt = json_object(reply).get("prompt") if reply else None
            if isinstance(prompt, str):
                text, templated = prompt, True
        body = {"content": text, "add_special": True, "parse_special": templated}
        reply = self._try("POST", "/tokenize", body)
        tokens = json_object(reply).get("tokens") if reply else None
        if not isinstance(tokens, list) or not tokens:
            return None
        return TokenCount(len(tokens), templated or self.target.api == "completions")
