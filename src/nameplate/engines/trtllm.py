"""TensorRT-LLM's `trtllm-serve`: its Prometheus page is not at `/metrics`, and off by default."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from nameplate.contract.identity import Fact
from nameplate.engines.adapter import Adapter, FlushReply
from nameplate.engines.answers import facts


class TensorRtLlmAdapter(Adapter):
    """Read `/version` and `/prometheus/metrics`."""

    name = "tensorrt-llm"
    how_to_enable: ClassVar[Mapping[str, str]] = {
        "metrics": "Set `return_perf_metrics: true` in the file given with --extra_llm_api_options (or --config).",
        "flush": "It has no such request; fresh prompts (the default) stay cold by construction.",
        "portability": "Give --fact name=value.",
    }

    def _engine_facts(self) -> dict[str, Fact]:
        version, path = self._object("/version")
        return {
            **facts(self.detected_by or path, engine=self.name),
            **facts(path, version=version.get("version")),
        }

    def flush(self) -> FlushReply:
        return FlushReply(False, None, "trtllm-serve has no request that flushes its cache")
