"""Find out which engine answers, from its answers alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec import structs

from nameplate.contract.target import Target
from nameplate.engines.adapter import Adapter
from nameplate.engines.answers import json_object
from nameplate.engines.builtin import ENGINE, BuiltinAdapter
from nameplate.engines.clock import Clock, SystemClock
from nameplate.engines.failures import TransportError
from nameplate.engines.generic import GenericAdapter
from nameplate.engines.llamacpp import LlamaCppAdapter
from nameplate.engines.metrics import TABLES
from nameplate.engines.models import ServedModel, choose_model, list_models, models_path
from nameplate.engines.sglang import INFO_PATHS, SglangAdapter
from nameplate.engines.transport import Reply, Transport
from nameplate.engines.trtllm import TensorRtLlmAdapter
from nameplate.engines.vllm import VllmAdapter

ADAPTERS: Mapping[str, type[Adapter]] = {
    adapter.name: adapter
    for adapter in (
        VllmAdapter,
        SglangAdapter,
        BuiltinAdapter,
        TensorRtLlmAdapter,
        LlamaCppAdapter,
        GenericAdapter,
    )
}

# A path that hangs is no evidence, and there are up to a dozen to try.
_TIMEOUT_S = 3.0

# What the engines write into `owned_by` of their own model entries.
_OWNERS = {
    "vllm": "vllm",
    "sglang": "sglang",
    "tensorrt_llm": "tensorrt-llm",
    "llamacpp": "llama.cpp",
    ENGINE: ENGINE,
}


def detect(transport: Transport, target: Target, clock: Clock | None = None) -> Adapter:
    """Return the adapter for what answers; its target names the model that is meant.

    The model list comes first, and its failures are the caller's to see: ServerError in all the words of `models.py`.
    Then, until one answers: `/version` (names the built-in engine), the models' owner, engine-specific info paths,
    the metrics page. An engine behind a gateway that hides all of these is generic.
    """
    models = list_models(transport, target)
    chosen = structs.replace(target, model=choose_model(models, target.model, target))
    name, source = _engine(transport, chosen, models or ())
    return ADAPTERS[name](transport, chosen, clock or SystemClock(), source)


def adapter_named(
    name: str, transport: Transport, target: Target, clock: Clock, metrics_path: str | None = None
) -> Adapter:
    """Return the adapter of an engine that was detected before; generic for a name that is not known."""
    return ADAPTERS.get(name, GenericAdapter)(transport, target, clock, "detected before", metrics_path)


def _engine(transport: Transport, target: Target, models: tuple[ServedModel, ...]) -> tuple[str, str]:
    base = target.base_path
    get = _Getter(transport)
    version = get(f"{base}/version")
    if version is not None and json_object(version).get("engine") == ENGINE:
        return ENGINE, f"{base}/version"
    for model in models:
        if model.id == target.model and (name := _OWNERS.get(model.owned_by or "")):
            return name, f"{models_path(target)} (owned_by)"
    for paths, holds, name in _INFO:
        for path in paths:
            reply = get(base + path)
            if reply is not None and holds(reply):
                return name, base + path
    for name, table in TABLES.items():
        for path in dict.fromkeys(prefix + path for path in table.paths for prefix in (base, "")):
            page = get(path)
            if page is not None and page.ok and f"\n{table.prefix}".encode() in b"\n" + page.body:
                return name, path
    return "generic", "nothing that it answered names an engine"


def _is_sglang(reply: Reply) -> bool:
    info = json_object(reply)
    return "internal_states" in info or ("max_total_num_tokens" in info and "model_path" in info)


def _is_llama_cpp(reply: Reply) -> bool:
    return isinstance(json_object(reply).get("default_generation_settings"), dict)


def _is_vllm(reply: Reply) -> bool:
    return "vllm_config" in json_object(reply)


_INFO: tuple[tuple[tuple[str, ...], Callable[[Reply], bool], str], ...] = (
    (INFO_PATHS, _is_sglang, "sglang"),
    (("/server_info",), _is_vllm, "vllm"),
    (("/props",), _is_llama_cpp, "llama.cpp"),
)


class _Getter:
    """Fetch each path once; None where no answer came."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._replies: dict[str, Reply | None] = {}

    def __call__(self, path: str) -> Reply | None:
        if path not in self._replies:
            try:
                self._replies[path] = self._transport.fetch("GET", path, timeout_s=_TIMEOUT_S)
            except TransportError:
                self._replies[path] = None
        return self._replies[path]
