"""The app answers as vLLM does, byte for byte where it matters."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from nameplate import __version__
from nameplate.sim.http import HttpRequest
from nameplate.sim.tests.client import TINY, app_of, ask, chat, get, now_of, run
from nameplate.sim.tokens import tokenize

HEAD = (
    f"HTTP/1.1 200 OK\r\nserver: nameplate-sim/{__version__}\r\ncontent-type: text/event-stream; charset=utf-8\r\n"
    "transfer-encoding: chunked\r\n\r\n"
).encode()


def framed(event: str) -> bytes:
    """Frame one event as one HTTP chunk."""
    data = f"data: {event}\n\n".encode()
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


def test_a_chat_stream_is_these_bytes() -> None:
    """Head at once, role chunk with the first token, finish on the last delta, usage, [DONE], last chunk."""
    exchange = ask(app_of(), chat(tokens=2))
    identifier = exchange.events[0]["id"]
    first, second = (event["choices"][0]["delta"]["content"] for event in exchange.events[1:3])
    start = f'{{"id":"{identifier}","object":"chat.completion.chunk","created":1700000000,"model":"tiny","choices":['
    wanted = [
        start
        + '{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]}',
        start
        + f'{{"index":0,"delta":{{"content":"{first}"}},"logprobs":null,"finish_reason":null,"token_ids":null}}]}}',
        start + f'{{"index":0,"delta":{{"content":"{second}"}},"logprobs":null,"finish_reason":"length",'
        '"stop_reason":null,"token_ids":null}]}',
        start + '],"usage":{"prompt_tokens":12,"total_tokens":14,"completion_tokens":2,'
        '"prompt_tokens_details":{"cached_tokens":0}}}',
        "[DONE]",
    ]
    assert exchange.raw == HEAD + b"".join(map(framed, wanted)) + b"0\r\n\r\n"
    assert exchange.end == "done"
    assert [output.tokens for output in exchange.outputs] == [0, 1, 1]


def test_times_are_the_engine_s() -> None:
    """The head leaves when the request came, each token when its step ends."""
    exchange = ask(app_of(), chat(tokens=3))
    assert [output.t_ns for output in exchange.outputs] == [0, 1_012_000, 2_012_000, 3_012_000]


def test_a_completions_stream_has_its_own_form() -> None:
    """Text instead of deltas, no role chunk, `usage: null` on ordinary chunks."""
    body = {"prompt": "one two three", "max_tokens": 2, "stream": True, "ignore_eos": True}
    exchange = ask(app_of(), body, "/v1/completions")
    first = exchange.events[0]
    assert first["id"].startswith("cmpl-") and first["object"] == "text_completion"
    assert first["usage"] is None and first["choices"][0]["finish_reason"] is None
    assert exchange.events[1]["choices"][0]["finish_reason"] == "length"
    assert exchange.events[2:] == ["[DONE]"]


def test_a_completions_prompt_may_be_token_ids() -> None:
    """Ids, a list of one text and a list of one list are prompts; several are refused."""
    for prompt, count in (([5, 6, 7], 3), (["a b"], 2), ([[1, 2]], 2)):
        body = {"prompt": prompt, "max_tokens": 1}
        assert ask(app_of(), body, "/v1/completions").json["usage"]["prompt_tokens"] == count
    assert ask(app_of(), {"prompt": ["a", "b"]}, "/v1/completions").status == 400


def test_an_answer_that_does_not_stream_is_one_document() -> None:
    """The same text as streamed, with its usage and a length."""
    streamed = ask(app_of(), chat(tokens=5))
    whole = ask(app_of(), chat(tokens=5, stream=False, stream_options=None))
    choice = whole.json["choices"][0]
    assert choice["message"]["content"] == streamed.text
    assert choice["finish_reason"] == "length"
    assert whole.json["usage"] == streamed.usage
    assert f"content-length: {len(whole.body)}".encode() in whole.raw


def test_continuous_usage_counts_up_on_every_chunk() -> None:
    """The role chunk says 0, each later chunk how many tokens there are by then."""
    exchange = ask(
        app_of(), chat(tokens=3, stream_options={"include_usage": True, "continuous_usage_stats": True})
    )
    counts = [event["usage"]["completion_tokens"] for event in exchange.events[:-1]]
    assert counts == [0, 1, 2, 3, 3]


def test_speculative_steps_bundle_tokens_in_a_chunk() -> None:
    """With drafts there are fewer chunks than tokens, and usage tells the tokens."""
    engine = msgspec.structs.replace(TINY.engine, draft_tokens=3, acceptance=0.9)
    exchange = ask(app_of(preset=msgspec.structs.replace(TINY, engine=engine)), chat(tokens=40))
    assert exchange.usage["completion_tokens"] == 40 == len(tokenize(exchange.text))
    assert len(exchange.outputs) - 1 < 25


@settings(max_examples=50, deadline=None)
@given(st.text(max_size=60), st.integers(1, 20))
def test_usage_is_what_the_tokenizer_counts(text: str, tokens: int) -> None:
    """Prompt tokens are the template and the text; output tokens are those of the text that was sent."""
    exchange = ask(app_of(), chat(text, tokens))
    assert exchange.usage["prompt_tokens"] == 10 + len(tokenize(text))
    assert exchange.usage["completion_tokens"] == tokens == len(tokenize(exchange.text))


def test_greedy_repeats_and_seeds_differ() -> None:
    """Temperature 0 depends on the prompt alone; otherwise the request's seed decides, and no seed is always new."""
    app = app_of()
    greedy = [ask(app, chat(tokens=12)).text for _ in range(2)]
    seeded = [ask(app, chat(tokens=12, temperature=1, seed=seed)).text for seed in (1, 1, 2)]
    free = [ask(app, chat(tokens=12, temperature=1)).text for _ in range(2)]
    assert greedy[0] == greedy[1] != ask(app, chat("other words", 12)).text
    assert seeded[0] == seeded[1] != seeded[2]
    assert free[0] != free[1]


def test_a_natural_answer_stops_by_itself() -> None:
    """Without ignore_eos the answer ends with `stop` at a length of its own, within min and max."""
    preset = msgspec.structs.replace(
        TINY, engine=msgspec.structs.replace(TINY.engine, context_tokens=4_000, kv_tokens=4_096)
    )
    app = app_of(preset=preset)
    lengths = []
    for index in range(12):
        exchange = ask(app, chat(f"question {index}", 3_000, ignore_eos=False, min_tokens=20))
        assert exchange.events[-3]["choices"][0]["finish_reason"] == "stop"
        lengths.append(exchange.usage["completion_tokens"])
    assert len(set(lengths)) > 6 and min(lengths) >= 20
    cut = ask(app, chat("question 0", 3, ignore_eos=False))
    assert cut.events[-3]["choices"][0]["finish_reason"] == "length"


def test_max_completion_tokens_wins() -> None:
    """Both limits given: the newer name counts, as in vLLM."""
    assert ask(app_of(), chat(tokens=9, max_completion_tokens=2)).usage["completion_tokens"] == 2


def test_too_long_a_request_is_refused_in_vllm_s_words() -> None:
    """400 with the limit, what was asked and what the prompt has, in the wording that clients match."""
    exchange = ask(app_of(), chat("word " * 200, 100))
    assert exchange.status == 400
    error = exchange.json["error"]
    assert error["message"] == (
        "This model's maximum context length is 256 tokens. However, you requested 100 output tokens and your prompt "
        "contains at least 210 input tokens, for a total of at least 310 tokens. Please reduce the length of the input "
        "prompt or the number of requested output tokens. (parameter=input_tokens, value=210)"
    )
    assert (error["type"], error["param"], error["code"]) == ("BadRequestError", "input_tokens", 400)


def test_exactly_the_context_is_accepted() -> None:
    """Prompt plus output equal to the limit runs, and an unstated output fills what is left."""
    assert ask(app_of(), chat("word " * 200, 46)).usage["total_tokens"] == 256
    assert ask(app_of(), chat("word " * 200, None)).usage["total_tokens"] == 256


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"{", 400),
        (b"[]", 400),
        (b'{"messages": 3}', 400),
        (b'{"messages": []}', 400),
        (b'{"messages": [{"role": "user", "content": "x"}], "max_tokens": 0}', 400),
        (b'{"messages": [{"role": "user", "content": "x"}], "max_tokens": -5}', 400),
        (b'{"messages": [{"role": "user", "content": "x"}], "max_tokens": 1e99}', 400),
        (b'{"messages": [{"role": "user", "content": "x"}], "n": 2}', 400),
        (b'{"messages": [{"role": "user", "content": "x"}], "temperature": -1}', 400),
        (b'{"messages": [{"role": "user", "content": "x"}], "min_tokens": 5, "max_tokens": 2}', 400),
        (b'{"messages": [{"role": "user", "content": "x"}], "stream_options": {}}', 400),
        (b'{"model": "other", "messages": [{"role": "user", "content": "x"}]}', 404),
        (b"\xff\xfe", 400),
        (b"[" * 100_000, 400),
    ],
)
def test_a_bad_body_gets_an_error_object(body: bytes, status: int) -> None:
    """Whatever is posted, the answer is an error document with a message and nothing breaks."""
    app = app_of()
    exchange = ask(app, body)
    assert exchange.status == status
    assert exchange.json["error"]["message"]
    assert ask(app, chat()).status == 200


def test_a_key_is_asked_for_where_vllm_asks_for_it() -> None:
    """With a key everything under /v1 needs it; health and metrics do not."""
    app = app_of(api_key="secret")
    assert ask(app, chat()).status == 401
    assert ask(app, chat(), authorization="Bearer wrong").status == 401
    assert ask(app, chat(), authorization="Bearer secret").status == 200
    assert get(app, "/v1/models").status == 401
    assert get(app, "/v1/models", authorization="Bearer secret").status == 200
    assert get(app, "/health").status == get(app, "/metrics").status == 200


def test_pages_say_what_is_served() -> None:
    """Models, version, the simulator's own facts, and unknown paths and methods."""
    app = app_of()
    model = get(app, "/v1/models").json["data"][0]
    assert (model["id"], model["max_model_len"], model["root"]) == ("tiny", 256, "sim:tiny")
    assert get(app, "/version").json == {"version": __version__}
    facts = get(app, "/sim").json
    assert (facts["engine"], facts["parameters"]["running_limit_requested"]) == ("nameplate-sim", 4)
    assert get(app, "/nothing").status == 404
    assert get(app, "/v1/chat/completions").status == 405
    assert get(app, "/health", "POST").status == 405


def test_tokenize_counts_text_and_messages() -> None:
    """The page counts a prompt without a template and messages with one."""
    app = app_of()
    assert ask(app, {"prompt": "hello there world"}, "/tokenize").json["count"] == 3
    messages = [{"role": "user", "content": "hello there world"}]
    page = ask(app, {"messages": messages}, "/tokenize").json
    assert (page["count"], page["max_model_len"], len(page["tokens"])) == (13, 256, 13)
    assert ask(app, b"nonsense", "/tokenize").status == 400


def test_the_prefix_cache_is_reported_and_flushed() -> None:
    """A repeated prompt reports cached tokens; after a flush it does not; a busy server refuses to flush."""
    app = app_of()
    text = "the same words again and again " * 4
    cached = [ask(app, chat(text)).usage["prompt_tokens_details"]["cached_tokens"] for _ in range(2)]
    assert cached[0] == 0 and cached[1] >= 24
    assert get(app, "/reset_prefix_cache", "POST").json == {"success": True}
    assert ask(app, chat(text)).usage["prompt_tokens_details"]["cached_tokens"] == 0
    app.handle(1, HttpRequest("POST", "/v1/chat/completions", {}, json.dumps(chat()).encode()), now_of(app))
    assert app.next_ns() is not None
    app.advance(now_of(app) + 1)
    app.handle(2, HttpRequest("POST", "/reset_prefix_cache"), now_of(app))
    busy = [output for output in app.advance(now_of(app)) if output.connection == 2]
    assert b'{"success":false}' in busy[0].data
    run(app)


def metrics_of(app: Any) -> dict[str, float]:
    """Read the metrics page with a real parser: name and labels but for the two that all series have."""
    found = {}
    for family in text_string_to_metric_families(get(app, "/metrics").body.decode()):
        for sample in family.samples:
            labels = {k: v for k, v in sample.labels.items() if k not in ("engine", "model_name")}
            found[sample.name + (json.dumps(labels) if labels else "")] = sample.value
    return found


def test_the_metrics_page_agrees_with_what_was_served() -> None:
    """Counters and histograms hold what happened; gauges return to zero."""
    app = app_of()
    for index in range(3):
        app.handle(
            index + 10,
            HttpRequest("POST", "/v1/chat/completions", {}, json.dumps(chat(tokens=4)).encode()),
            0,
        )
    assert app.next_ns() == 0  # three heads are due
    app.advance(0)
    app.advance(500_000)
    during = app.engine.state()
    assert (during.running, during.waiting) == (2, 1)
    run(app)
    found = metrics_of(app)
    assert found["vllm:num_requests_running"] == found["vllm:num_requests_waiting"] == 0
    assert found["vllm:generation_tokens_total"] == 12
    assert found["vllm:prompt_tokens_total"] == 36
    assert found['vllm:request_success_total{"finished_reason": "length"}'] == 3
    for name in ("time_to_first_token", "e2e_request_latency", "request_queue_time", "request_decode_time"):
        assert found[f"vllm:{name}_seconds_count"] == 3
        assert found[f'vllm:{name}_seconds_bucket{{"le": "+Inf"}}'] == 3
    assert found["vllm:inter_token_latency_seconds_count"] == 9
    assert found["vllm:inter_token_latency_seconds_sum"] == pytest.approx(0.009, rel=0.05)
    assert found["process_start_time_seconds"] == 1_700_000_000
    config = next(key for key in found if key.startswith("vllm:cache_config_info"))
    labels = json.loads(config.removeprefix("vllm:cache_config_info"))
    assert (labels["block_size"], labels["num_gpu_blocks"], labels["kv_cache_size_tokens"]) == (
        "8",
        "64",
        "512",
    )
    assert "vllm:spec_decode_num_drafts_total" not in found


def test_a_closed_connection_stops_its_generation() -> None:
    """After the client is gone nothing more is sent, the engine is idle, and the log says cancelled."""
    app = app_of()
    app.handle(1, HttpRequest("POST", "/v1/chat/completions", {}, json.dumps(chat(tokens=50)).encode()), 0)
    assert app.advance(3_000_000)
    app.cancel(1, 3_500_000)
    assert run(app) == {}
    assert app.engine.state().running == 0
    assert [(served.finish, served.output_tokens) for served in app.served] == [("cancelled", 3)]


def test_a_connection_that_asks_to_close_is_closed() -> None:
    """Without keep-alive the response says so and ends with close."""
    app = app_of()
    request = HttpRequest(
        "POST", "/v1/chat/completions", {}, json.dumps(chat(tokens=1)).encode(), keep_alive=False
    )
    app.handle(1, request, 0)
    exchange = run(app)[1]
    assert exchange.end == "close" and b"connection: close" in exchange.raw


ODD = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["role", "content", "text"]), inner)
    ),
    max_leaves=6,
)
KEYS = [
    *(
        "model",
        "messages",
        "prompt",
        "stream",
        "stream_options",
        "max_tokens",
        "min_tokens",
        "ignore_eos",
        "seed",
    ),
    *("temperature", "n"),
]


@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from(
        ["/v1/chat/completions", "/v1/completions", "/tokenize", "/reset_prefix_cache", "/x?y", ""]
    ),
    st.sampled_from(["POST", "GET", "PUT"]),
    st.dictionaries(st.sampled_from(KEYS), ODD) | st.binary(max_size=20),
)
def test_whatever_is_asked_is_answered(path: str, method: str, body: dict[str, Any] | bytes) -> None:
    """Any path, method and body gets one complete response with a status, and the engine ends idle."""
    app = app_of()
    # A good request with odd values put in gets further than one of odd values alone.
    data = body if isinstance(body, bytes) else json.dumps({"prompt": "x"} | chat() | body).encode()
    app.handle(1, HttpRequest(method, path, {}, data), 0)
    exchange = run(app)[1]
    assert exchange.status in (200, 400, 404, 405)
    assert exchange.end == "done"
    assert app.engine.state().kv_blocks_used == 0
