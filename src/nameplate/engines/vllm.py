"""vLLM: identity from its API, its dev endpoints where they are on, and its metrics page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from nameplate.contract.identity import Fact
from nameplate.engines.adapter import Adapter, FlushReply, TokenCount
from nameplate.engines.answers import child, facts, json_object, whole

_DEV_MODE = "Start the server with VLLM_SERVER_DEV_MODE=1 in its environment (not on a public address)."


class VllmAdapter(Adapter):
    """Read `/version`, `/v1/models`, `/metrics` and `/server_info` (dev mode only); flush and abort in dev mode."""

    name = "vllm"
    # Without `reset_running_requests` a busy server refuses, and that is what is wanted here.
    flush_path = "/reset_prefix_cache"
    how_to_enable: ClassVar[Mapping[str, str]] = {
        "metrics": "Start without --disable-log-stats; behind a gateway, reach the server itself.",
        "flush": _DEV_MODE,
        "cached-token reports": "Start the server with --enable-prompt-tokens-details.",
        "running limit": f"{_DEV_MODE} Or give --server-log FILE, or --fact running_limit_requested=N.",
        "portability": "Give --server-log FILE or --fact name=value; VLLM_SERVER_DEV_MODE=1 lets the API tell more.",
        "tokenise": "Newer versions serve POST /tokenize.",
    }

    def _engine_facts(self) -> dict[str, Fact]:
        version, path = self._object("/version")
        found = facts(self.detected_by or path, engine=self.name)
        found.update(facts(path, version=version.get("version")))
        info, path = self._object("/server_info?config_format=json")
        config = info.get("vllm_config")
        if isinstance(config, dict):
            found.update(_config_facts(config, path))
        environment = info.get("system_env")
        if isinstance(environment, dict):
            found.update(_host_facts(environment, f"{path} (the server's host)"))
        return found

    def abort_all(self) -> FlushReply:
        """Abort all requests, where the dev endpoint exists."""
        return self._order("/abort_requests", {})

    def tokenize(self, text: str) -> TokenCount | None:
        if self.target.api == "chat":
            body: Mapping[str, Any] = {
                "model": self.target.model,
                "messages": [{"role": "user", "content": text}],
            }
        else:
            body = {"model": self.target.model, "prompt": text}
        reply = self._try("POST", "/tokenize", body)
        count = whole(json_object(reply).get("count")) if reply else None
        return None if count is None else TokenCount(count, templated=True)


def _config_facts(config: Mapping[str, Any], source: str) -> dict[str, Fact]:
    parallel = config.get("parallel_config")
    engines = whole(child(parallel, "data_parallel_size")) or 1
    limit = whole(child(config, "scheduler_config", "max_num_seqs"))
    eager = child(config, "model_config", "enforce_eager")
    mode = child(config, "compilation_config", "cudagraph_mode")
    speculative = config.get("speculative_config")
    found = facts(
        source,
        # One scheduler an engine: the limits of data-parallel engines add up.
        running_limit_requested=None if limit is None else limit * engines,
        running_limit_effective=None if limit is None else limit * engines,
        quantisation=child(config, "model_config", "quantization") or "none",
        dtype=child(config, "model_config", "dtype"),
        kv_dtype=child(config, "cache_config", "cache_dtype"),
        model_snapshot=child(config, "model_config", "revision"),
        prefill_chunk_tokens=whole(child(config, "scheduler_config", "max_num_batched_tokens")),
    )
    degrees = [
        f"{short}={size}"
        for short, key in (
            ("tp", "tensor_parallel_size"),
            ("pp", "pipeline_parallel_size"),
            ("dp", "data_parallel_size"),
            ("dcp", "decode_context_parallel_size"),
        )
        if (size := whole(child(parallel, key))) is not None
    ]
    graphs = "eager" if eager is True else (f"cudagraph_mode={mode}" if mode is not None else None)
    found.update(facts(source, parallel_degrees=" ".join(degrees), graph_policy=graphs))
    if isinstance(speculative, dict):
        method, tokens = speculative.get("method"), speculative.get("num_speculative_tokens")
        found.update(facts(source, speculative=f"{method} tokens={tokens}"))
    elif "speculative_config" in config and speculative is None:
        found.update(facts(source, speculative="none"))
    return found


def _host_facts(environment: Mapping[str, Any], source: str) -> dict[str, Fact]:
    gpus = environment.get("nvidia_gpu_models") or environment.get("intel_gpu_models")
    hardware = gpus if isinstance(gpus, str) else _processor(environment.get("cpu_info"))
    driver = environment.get("nvidia_driver_version") or environment.get("level_zero_driver_version")
    return facts(
        source,
        hardware=" ".join(hardware.split()) if hardware else None,
        driver=driver,
        torch=environment.get("torch_version"),
    )


def _processor(text: Any) -> str | None:
    if not isinstance(text, str):
        return None
    fields = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
    name, count = fields.get("Model name", "").strip(), fields.get("CPU(s)", "").strip()
    return f"{name}, {count} CPUs, no GPU reported" if name else None
