"""SGLang: identity from its server info, flush that refuses while busy, metrics where they are enabled."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from nameplate.contract.identity import Fact
from nameplate.engines.adapter import Adapter, FlushReply, TokenCount
from nameplate.engines.answers import child, facts, json_object, whole

# Newer name first.
INFO_PATHS = ("/server_info", "/get_server_info")


class SglangAdapter(Adapter):
    """Read `/server_info` and `/metrics`. `/health_generate` is never used: it generates, so it is workload."""

    name = "sglang"
    flush_path = "/flush_cache"
    how_to_enable: ClassVar[Mapping[str, str]] = {
        "metrics": "Start the server with --enable-metrics.",
        "cached-token reports": "Start the server with --enable-cache-report.",
        "flush": "POST /flush_cache refuses while requests run; with a key set, it may need the admin key.",
        "portability": "Give --server-log FILE or --fact name=value.",
        "tokenise": "Newer versions serve POST /tokenize.",
    }

    def _engine_facts(self) -> dict[str, Fact]:
        info, path = self._object(*INFO_PATHS)
        found = facts(self.detected_by or path, engine=self.name)
        found.update(server_info_facts(info, path))
        return found

    def abort_all(self) -> FlushReply:
        return self._order("/abort_request", {"rid": "", "abort_all": True})

    def tokenize(self, text: str) -> TokenCount | None:
        reply = self._try("POST", "/tokenize", {"model": self.target.model, "prompt": text})
        count = whole(json_object(reply).get("count")) if reply else None
        # Its endpoint counts the plain text; usage counts the chat template as well.
        return None if count is None else TokenCount(count, templated=self.target.api == "completions")


def server_info_facts(info: Mapping[str, Any], source: str) -> dict[str, Fact]:
    """Return the facts of a server-info object or of the log's `ServerArgs`; the rest, keys above all, is left."""
    if not info:
        return {}
    dp = whole(info.get("dp_size")) or 1
    states = [state for state in info.get("internal_states") or () if isinstance(state, dict)]
    limits = [
        limit for state in states if (limit := whole(state.get("effective_max_running_requests_per_dp")))
    ]
    effective = sum(limits) if len(limits) == dp else limits[0] * dp if limits else None
    pool = whole(info.get("max_total_num_tokens"))
    radix = info.get("disable_radix_cache")
    graphs = info.get("disable_cuda_graph")
    found = facts(
        source,
        version=info.get("version"),
        model_root=info.get("model_path"),
        context_limit_tokens=whole(info.get("context_length")),
        # One pool a data-parallel engine, the same on each of its tensor ranks.
        kv_tokens=None if pool is None else pool * dp,
        block_size_tokens=whole(info.get("page_size")),
        running_limit_requested=whole(info.get("max_running_requests")),
        running_limit_effective=effective,
        prefix_caching=not radix if isinstance(radix, bool) else None,
        dtype=info.get("dtype"),
        kv_dtype=info.get("kv_cache_dtype"),
        model_snapshot=info.get("revision"),
        prefill_chunk_tokens=whole(info.get("chunked_prefill_size")),
    )
    if "quantization" in info:
        found.update(facts(source, quantisation=info["quantization"] or "none"))
    if "speculative_algorithm" in info:
        algorithm = info["speculative_algorithm"]
        steps = (
            f" steps={info.get('speculative_num_steps')} drafts={info.get('speculative_num_draft_tokens')}"
        )
        found.update(facts(source, speculative=f"{algorithm}{steps}" if algorithm else "none"))
    degrees = [
        f"{short}={size}"
        for short, key in (("tp", "tp_size"), ("pp", "pp_size"), ("dp", "dp_size"), ("ep", "ep_size"))
        if (size := whole(child(info, key))) is not None
    ]
    policy = {True: "no CUDA graphs", False: f"CUDA graphs to batch {info.get('cuda_graph_max_bs')}"}
    found.update(
        facts(
            source,
            parallel_degrees=" ".join(degrees),
            graph_policy=policy.get(graphs) if isinstance(graphs, bool) else None,
        )
    )
    return found
