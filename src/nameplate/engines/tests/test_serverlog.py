"""Facts from logs and from people."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nameplate.contract.errors import CallerError
from nameplate.contract.identity import Fact, Identity
from nameplate.engines.given import kv_tokens_fact, parse_facts
from nameplate.engines.identify import combine, limit_warning
from nameplate.engines.serverlog import parse_server_log, read_server_log
from nameplate.engines.tests.helpers import DATA

SGLANG = """\
[2026-05-15 08:39:19] server_args=ServerArgs(model_path='/models/toy', api_key='sk-verysecret1', \
admin_api_key='other', quantization='fp8', dtype='auto', context_length=None, page_size=64, tp_size=4, \
dp_size=1, max_running_requests=64, disable_radix_cache=False, speculative_algorithm=None, host='0.0.0.0')
[2026-05-15 08:40:00 TP0] max_running_requests was reduced from the requested 64 to 9 (per dp worker) due to \
the available KV cache capacity.
[2026-05-15 08:40:01 TP0] max_total_num_tokens=171008, chunked_prefill_size=4096, max_running_requests=9, \
context_len=169000, available_gpu_mem=8.27 GB
[2026-05-15 08:40:01 TP1] max_total_num_tokens=171008, chunked_prefill_size=4096, max_running_requests=9, \
context_len=169000, available_gpu_mem=8.27 GB
""".splitlines()


def values(facts: dict[str, Fact]) -> dict[str, object]:
    return {name: fact.value for name, fact in facts.items()}


def test_a_real_vllm_log_is_read() -> None:
    """Arguments, resolved configuration and the pool of vLLM 0.32."""
    facts = read_server_log(DATA / "vllm-0.32-server.log")
    found = values(facts)
    assert found["version"] == "0.32.0" and found["engine"] == "vllm"
    assert (found["running_limit_requested"], found["kv_tokens"]) == (4, 349_440)
    assert (found["context_limit_tokens"], found["quantisation"]) == (8192, "none")
    assert (found["parallel_degrees"], found["graph_policy"]) == ("tp=1 pp=1 dp=1", "eager")
    assert "max_num_seqs=4" in str(found["server_arguments"])
    assert all("server log" in fact.source for fact in facts.values())


def test_an_sglang_log_tells_the_limit_that_was_reduced() -> None:
    """Requested and effective limit are two facts, and ranks that repeat a line do not add up."""
    found = values(parse_server_log(SGLANG))
    assert (found["running_limit_requested"], found["running_limit_effective"]) == (64, 9)
    assert (found["kv_tokens"], found["context_limit_tokens"]) == (171_008, 169_000)
    assert (found["quantisation"], found["parallel_degrees"]) == ("fp8", "tp=4 dp=1")


def test_keys_never_leave_a_log() -> None:
    """By their name or by their look, keys and tokens are redacted."""
    line = (
        "non-default args: {'model': 'm', 'api_key': ['sk-abcdefghijk'], 'hf_token': 'hf_abcdefghijkl', "
        "'hf_overrides': {'inner_api_key': 'plainsecret'}, 'download_dir': 'Bearer abc.def'}"
    )
    text = str(values(parse_server_log([line]))) + str(values(parse_server_log(SGLANG)))
    for secret in ("abcdefghijk", "plainsecret", "verysecret", "other", "abc.def"):
        assert secret not in text
    assert "redacted" in text


def test_engine_pools_of_a_data_parallel_vllm_add_up() -> None:
    """Each engine core writes its own line."""
    lines = ["non-default args: {'data_parallel_size': 2, 'max_num_seqs': 8}"] + [
        f"(EngineCore_DP{rank} pid=1) INFO GPU KV cache size: 1,000 tokens" for rank in (0, 1)
    ]
    found = values(parse_server_log(lines))
    assert (found["kv_tokens"], found["running_limit_requested"]) == (2000, 16)


def test_a_later_start_replaces_an_earlier_one() -> None:
    """Appended logs hold several starts; nothing of an old one stays."""
    found = values(parse_server_log([*SGLANG, "x non-default args: {'max_num_seqs': 4}"]))
    assert found["engine"] == "vllm" and "kv_tokens" not in found


def test_a_log_with_values_that_are_no_literals_is_read_as_far_as_it_goes() -> None:
    """An enum or a cut line does not hide the arguments beside it."""
    line = (
        "server_args=ServerArgs(model_path='m', mode=<Mode.A: 1>, max_running_requests=64, tp_size=2, cut='ab"
    )
    found = values(parse_server_log([line]))
    assert (found["running_limit_requested"], found["parallel_degrees"]) == (64, "tp=2")


def test_arguments_beside_an_object_and_those_of_old_versions_are_read() -> None:
    """A value that is no literal costs only itself; before 0.8 the whole namespace was written."""
    line = "non-default args: {'max_num_seqs': 4, 'config': Thing(a=1), 'quantization': 'awq'}"
    found = values(parse_server_log([line]))
    assert (found["running_limit_requested"], found["quantisation"]) == (4, "awq")
    old = "INFO args: Namespace(model='m', block_size=16, api_key='sk-abcdefghijk', f=<function x>, max_num_seqs=8)"
    found = values(parse_server_log([old, "# GPU blocks: 100, # CPU blocks: 5"]))
    assert (found["running_limit_requested"], found["kv_tokens"]) == (8, 1600)
    assert "abcdefghijk" not in str(found)


def test_a_log_of_something_else_is_refused(tmp_path: Path) -> None:
    """No facts would be a silent surprise."""
    file = tmp_path / "x.log"
    file.write_bytes(b"\x00\xffhello\n" * 100)
    with pytest.raises(CallerError, match="nothing that is known"):
        read_server_log(file)
    with pytest.raises(CallerError, match="cannot be read"):
        read_server_log(tmp_path / "absent")


@given(
    st.lists(
        st.sampled_from(
            [
                "non-default args: ",
                "server_args=ServerArgs(",
                "LLM engine (v",
                "tokens=",
                "{'a':",
                "KV cache size: ",
                "max_total_num_tokens=",
                "9,9",
                "(((",
                "'",
                " # GPU blocks: 3",
            ]
        )
    )
)
def test_no_line_crashes_the_reader(parts: list[str]) -> None:
    """Fragments in any order are read without an error."""
    parse_server_log(["".join(parts), *parts])


def test_stated_facts_are_typed_and_sourced() -> None:
    """Numbers that are compared must be numbers; anything else is text."""
    facts = parse_facts(["hardware=4 x B70", "kv-tokens=1_000", "prefix_caching=on", "note=a=b"])
    assert values(facts) == {"hardware": "4 x B70", "kv_tokens": 1000, "prefix_caching": True, "note": "a=b"}
    assert {fact.source for fact in facts.values()} == {"--fact"}
    assert kv_tokens_fact(5)["kv_tokens"].source == "--kv-tokens (manual)"


@pytest.mark.parametrize(
    "text", ["", "novalue", "=x", "a=", "Bad Name=1", "kv_tokens=many", "kv_tokens=0", "x=" + "y" * 1001]
)
def test_a_stated_fact_that_is_none_is_the_callers_mistake(text: str) -> None:
    """Code 2, with an example."""
    with pytest.raises(CallerError):
        parse_facts([text])
    with pytest.raises(CallerError):
        parse_facts(["a=1", "a=2"])
    with pytest.raises(CallerError):
        kv_tokens_fact(0)


def test_people_win_over_the_api_and_the_api_over_the_log() -> None:
    """A contradiction is named, whoever wins."""
    api = Identity({"version": Fact("2", "/version"), "kv_tokens": Fact(10, "/metrics")})
    found = combine(
        api,
        {"version": Fact("1", "server log"), "driver": Fact("d", "server log")},
        {"kv_tokens": Fact(20, "--kv-tokens (manual)")},
    )
    assert found.identity.value("version") == "2" and found.identity.value("driver") == "d"
    assert found.identity.integer("kv_tokens") == 20
    assert len(found.conflicts) == 2 and "server log says 1" in found.conflicts[0]


def test_a_concurrency_above_the_effective_limit_is_warned_about() -> None:
    """The reduced limit counts; an unknown one warns of nothing."""
    limits = Identity({"running_limit_requested": Fact(64, "log"), "running_limit_effective": Fact(9, "log")})
    assert limit_warning(limits, 9) is None
    warning = limit_warning(limits, 12)
    assert warning is not None and "reduced from 64" in warning and "3 wait" in warning
    assert limit_warning(Identity(), 999) is None
