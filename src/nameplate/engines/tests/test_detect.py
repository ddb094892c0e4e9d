"""Which engine answers, which model is meant, and what the adapters know."""

from __future__ import annotations

import pytest
from msgspec import structs

from nameplate.contract.errors import CallerError, ServerError
from nameplate.contract.target import Target
from nameplate.engines.adapter import TokenCount
from nameplate.engines.detect import adapter_named
from nameplate.engines.fakes import NOT_FOUND, Answer, FakeClock, ScriptedTransport, reply
from nameplate.engines.tests.helpers import TARGET, detected, golden
from nameplate.engines.transport import Reply

VLLM: dict[str, Answer | list[Answer]] = {
    "GET /v1/models": golden("vllm-0.32-models.json"),
    "GET /version": golden("vllm-0.32-version.json"),
    "GET /metrics": golden("vllm-0.32-metrics.txt"),
    "GET /server_info?config_format=json": golden("vllm-0.32-server-info.json"),
    "POST /tokenize": golden("vllm-0.32-tokenize.json"),
    "GET /health": reply(b""),
}
SGLANG_INFO = {
    "model_path": "/models/toy",
    "api_key": "sk-verysecret",
    "version": "0.5.5",
    "dp_size": 2,
    "tp_size": 4,
    "page_size": 64,
    "context_length": None,
    "max_running_requests": 64,
    "max_total_num_tokens": 1000,
    "disable_radix_cache": False,
    "disable_cuda_graph": False,
    "cuda_graph_max_bs": 32,
    "quantization": None,
    "speculative_algorithm": "EAGLE",
    "speculative_num_steps": 3,
    "speculative_num_draft_tokens": 4,
    "internal_states": [
        {"effective_max_running_requests_per_dp": 9},
        {"effective_max_running_requests_per_dp": 9},
    ],
}


def models(owner: str, *ids: str, **more: object) -> Reply:
    return reply({"data": [{"id": name, "owned_by": owner, **more} for name in ids or ("toy",)]})


def test_vllm_is_known_by_its_models_and_tells_its_identity() -> None:
    """All four sources of a vLLM in dev mode are read, each fact with its own."""
    adapter = detected(ScriptedTransport(VLLM))
    assert adapter.name == "vllm" and adapter.target.model == "small"
    identity = adapter.identity()
    assert identity.text("version") == "0.32.0"
    assert identity.text("model_root") == "/models/small"
    assert identity.integer("context_limit_tokens") == 8192
    assert identity.integer("kv_tokens") == 349_440
    assert identity.integer("running_limit_requested") == identity.integer("running_limit_effective") == 4
    assert identity.facts["kv_tokens"].source == "/metrics"
    assert identity.facts["version"].source == "/version"
    assert identity.text("graph_policy") == "eager" and identity.text("speculative") == "none"
    assert "accepted_connections" in identity.missing
    assert not {"created", "permission"} & set(identity.facts)


def test_vllm_counts_with_the_template() -> None:
    """`/tokenize` with messages counts what usage will."""
    assert detected(ScriptedTransport(VLLM)).tokenize("Hello there") == TokenCount(13, templated=True)


def test_metrics_off_does_not_prevent_detection_and_leaves_facts_unknown() -> None:
    """Without `/metrics` and dev mode it is still vLLM; pool and limits are unknown."""
    script = {key: value for key, value in VLLM.items() if "metrics" not in key and "info" not in key}
    adapter = detected(ScriptedTransport(script))
    assert adapter.name == "vllm"
    assert adapter.identity().integer("kv_tokens") is None
    assert adapter.state().error == "the metrics page answered HTTP 404"
    assert adapter.metrics_path is None


def test_metrics_behind_a_prefix_are_found_at_the_root() -> None:
    """The API stands behind a path, the metrics page usually does not."""
    script: dict[str, Answer | list[Answer]] = {
        "GET /llm/v1/models": golden("vllm-0.32-models.json"),
        "GET /metrics": golden("vllm-0.32-metrics.txt"),
    }
    adapter = detected(ScriptedTransport(script), Target.parse("http://fake.test/llm/v1"))
    assert adapter.state().running == 0
    assert adapter.metrics_path == "/metrics"


@pytest.mark.parametrize("path", ["/server_info", "/get_server_info"])
def test_sglang_is_known_by_its_server_info_of_either_name(path: str) -> None:
    """Limits and pools add up over data-parallel engines, and its key goes nowhere."""
    script: dict[str, Answer | list[Answer]] = {
        "GET /v1/models": models("somebody", max_model_len=32_768),
        f"GET {path}": reply(SGLANG_INFO),
    }
    adapter = detected(ScriptedTransport(script))
    assert adapter.name == "sglang"
    identity = adapter.identity()
    assert identity.integer("kv_tokens") == 2000
    assert identity.integer("running_limit_requested") == 64
    assert identity.integer("running_limit_effective") == 18
    assert identity.integer("context_limit_tokens") == 32_768
    assert identity.value("prefix_caching") is True
    assert identity.text("parallel_degrees") == "tp=4 dp=2"
    assert identity.text("speculative") == "EAGLE steps=3 drafts=4"
    assert "verysecret" not in str(identity.facts)


def test_the_built_in_engine_is_not_taken_for_vllm() -> None:
    """Its owner names it, and its own page tells its limits."""
    parameters = {"running_limit_requested": 64, "running_limit": 9, "kv_tokens": 4096, "block_tokens": 16}
    script: dict[str, Answer | list[Answer]] = {
        "GET /v1/models": models("nameplate-sim", root="sim:demo"),
        "GET /sim": reply({"engine": "nameplate-sim", "parameters": parameters}),
        "GET /version": reply({"version": "0.1"}),
    }
    adapter = detected(ScriptedTransport(script))
    assert adapter.name == "nameplate-sim"
    identity = adapter.identity()
    assert (identity.integer("running_limit_requested"), identity.integer("running_limit_effective")) == (
        64,
        9,
    )


def test_llama_cpp_applies_the_template_before_it_counts() -> None:
    """Its limits come from `/props`, its counts from two calls."""
    script: dict[str, Answer | list[Answer]] = {
        "GET /v1/models": models("llamacpp"),
        "GET /props": reply(
            {"total_slots": 4, "default_generation_settings": {"n_ctx": 2048}, "build_info": "b1"}
        ),
        "POST /apply-template": reply({"prompt": "<user>hi"}),
        "POST /tokenize": reply({"tokens": [1, 2, 3]}),
    }
    adapter = detected(ScriptedTransport(script))
    identity = adapter.identity()
    assert adapter.name == "llama.cpp" and identity.integer("kv_tokens") == 8192
    assert identity.integer("running_limit_effective") == 4
    assert adapter.tokenize("hi") == TokenCount(3, templated=True)
    assert adapter.flush().supported is False


def test_tensorrt_llm_reads_its_other_page() -> None:
    """`/metrics` is JSON there; the Prometheus page has a path of its own."""
    script: dict[str, Answer | list[Answer]] = {
        "GET /v1/models": models("tensorrt_llm"),
        "GET /metrics": reply([]),
        "GET /prometheus/metrics": reply("trtllm_num_requests_running 2\n"),
    }
    adapter = detected(ScriptedTransport(script))
    assert adapter.name == "tensorrt-llm"
    assert adapter.state().running == 2 and adapter.metrics_path == "/prometheus/metrics"


def test_an_engine_is_recognised_by_its_metrics_alone() -> None:
    """A gateway may rename the owner and hide the rest."""
    script: dict[str, Answer | list[Answer]] = {
        "GET /v1/models": models("me"),
        "GET /metrics": golden("vllm-0.32-metrics.txt"),
    }
    adapter = detected(ScriptedTransport(script))
    assert (adapter.name, adapter.detected_by) == ("vllm", "/metrics")


def test_an_unknown_server_is_generic_and_says_so() -> None:
    """Nothing is claimed about it: no engine, no state, no flush."""
    adapter = detected(ScriptedTransport({"GET /v1/models": models("openai")}))
    assert adapter.name == "generic"
    assert adapter.identity().value("engine") is None
    assert adapter.state().running is None and adapter.state().error
    assert (adapter.flush().supported, adapter.tokenize("x")) == (None, None)
    assert adapter.healthy()


def test_detection_asks_each_path_once() -> None:
    """An unknown server sees a dozen requests and no more."""
    transport = ScriptedTransport({"GET /v1/models": models("openai")})
    detected(transport)
    assert len(transport.calls) == len(set(transport.calls)) <= 12


def test_health_never_touches_a_generating_endpoint() -> None:
    """SGLang's `/health_generate` is workload."""
    transport = ScriptedTransport({"GET /v1/models": models("sglang"), "GET /health": reply(b"", 503)})
    adapter = detected(transport)
    assert not adapter.healthy()
    assert not any("generate" in call or "completions" in call for call in transport.calls)


def test_a_flush_that_refuses_with_200_is_not_accepted() -> None:
    """vLLM says `success: false`, SGLang says 400, and a missing path is unsupported."""
    for answer, supported, accepted in (
        (reply({"success": False}), True, False),
        (reply({"success": True}), True, True),
        (reply(b""), True, True),
        (reply("Flush cache failed.", 400), True, False),
        (NOT_FOUND, False, None),
        (reply("forbidden", 403), None, False),
    ):
        adapter = detected(ScriptedTransport({**VLLM, "POST /reset_prefix_cache": answer}))
        found = adapter.flush()
        assert (found.supported, found.accepted) == (supported, accepted), found.detail


def test_odd_answers_leave_facts_unknown() -> None:
    """Wrong types, lists for objects, zeros and broken JSON never raise and never become facts."""
    odd: tuple[Answer, ...] = (
        reply([]),
        reply(b"{"),
        reply(b"[" * 100_000),
        reply({"version": 3, "vllm_config": []}),
        "timeout",
    )
    for answer in odd:
        script = {**VLLM, "GET /version": answer, "GET /server_info?config_format=json": answer}
        identity = detected(ScriptedTransport(script)).identity()
        assert identity.value("running_limit_effective") is None
        assert identity.value("model") == "small"


def test_a_server_that_died_has_an_unknown_identity() -> None:
    """Reading the identity afterwards never raises: what cannot be read is unknown."""
    script = ScriptedTransport({f"GET {path}": "refused" for path in ("/v1/models", "/version", "/metrics")})
    adapter = adapter_named("vllm", script, structs.replace(TARGET, model="small"), FakeClock())
    identity = adapter.identity()
    assert identity.value("version") is None and identity.text("model_root") is None


# -- choosing the model


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (reply({"error": "no"}, 401), "--api-key-env"),
        (reply({"error": "no"}, 403), "asks for a key"),
        (reply("<html>login</html>", content_type="text/html"), "not an OpenAI-compatible API"),
        (reply("<html>gone</html>", 404, content_type="text/html"), "web page"),
        (reply("hello"), "not an OpenAI-compatible API"),
        (reply({"object": "list"}), "not an OpenAI-compatible API"),
        (reply({"data": []}), "serves no model"),
        (reply({"data": [None, 3, {"id": 4}]}), "serves no model"),
        (Reply(302, (("location", "https://elsewhere/"),), b""), "redirects to https://elsewhere/"),
        (reply("loading", 503), "not ready"),
        (reply("boom", 500), "HTTP 500"),
        (NOT_FOUND, "--model"),
        ("refused", "Nothing listens"),
        ("dns", "cannot be resolved"),
        ("timeout", "no whole answer in time"),
        ("tls", "--ca-file"),
        ("not_http", "does not answer in HTTP"),
    ],
)
def test_each_failure_has_its_own_message_and_exit_code_5(answer: Answer, words: str) -> None:
    """A key, a web page, a hang, a wrong port: the person is told which."""
    with pytest.raises(ServerError) as caught:
        detected(ScriptedTransport({"GET /v1/models": answer}))
    assert words in str(caught.value)
    assert caught.value.exit_code == 5


def test_a_wrong_model_lists_what_is_served() -> None:
    """The names that would have worked are in the message."""
    with pytest.raises(ServerError, match="It serves alpha, beta"):
        detected(
            ScriptedTransport({"GET /v1/models": models("vllm", "alpha", "beta")}),
            structs.replace(TARGET, model="gamma"),
        )


def test_several_models_need_a_choice_but_aliases_and_adapters_do_not() -> None:
    """Two roots are two models; two names of one root, or a LoRA beside its base, are one."""
    with pytest.raises(CallerError, match="Choose one with --model"):
        detected(ScriptedTransport({"GET /v1/models": models("vllm", "alpha", "beta")}))
    same = models("vllm", "alpha", "alias", root="/models/a")
    assert detected(ScriptedTransport({"GET /v1/models": same})).target.model == "alpha"
    lora = reply({"data": [{"id": "base", "root": "a"}, {"id": "tuned", "root": "b", "parent": "base"}]})
    assert detected(ScriptedTransport({"GET /v1/models": lora})).target.model == "base"


def test_without_a_model_list_the_named_model_is_taken() -> None:
    """Some servers have no such path."""
    adapter = detected(ScriptedTransport({}), structs.replace(TARGET, model="mine"))
    assert (adapter.name, adapter.target.model) == ("generic", "mine")
    assert adapter.identity().facts["model"].source == "--model"
