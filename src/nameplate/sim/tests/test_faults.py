"""Each fault does what it says, to the requests it was asked for, and to no others."""

import json

import pytest

from nameplate.sim.faults import FAULTS, Fault, FaultPlan, parse_fault
from nameplate.sim.http import HttpRequest
from nameplate.sim.tests.client import app_of, ask, chat, get, now_of, run


def test_faults_are_read_from_text() -> None:
    """Name, argument and which requests, each optional but the name."""
    assert parse_fault("stall") == Fault("stall", 8)
    assert parse_fault("stall:3") == Fault("stall", 3)
    assert parse_fault("cut:0@every 4") == Fault("cut", 0, every=4)
    assert parse_fault("429@2") == Fault("429", 1, at=2)


@pytest.mark.parametrize(
    "text", ["", "nap", "cut:x", "cut@", "cut@every", "cut@every 0", "cut@-1", "cut@every 2 3"]
)
def test_what_cannot_be_read_is_refused_with_a_reason(text: str) -> None:
    """A wrong fault raises ValueError that names the faults or the form."""
    with pytest.raises(ValueError, match=r"choose one of|write NAME|N is at least"):
        parse_fault(text)


def test_a_fault_befalls_the_requests_it_names() -> None:
    """`@every N` is the last of each N, `@INDEX` one alone."""
    assert [i for i in range(9) if parse_fault("cut@every 3").befalls(i)] == [2, 5, 8]
    assert [i for i in range(9) if parse_fault("cut@4").befalls(i)] == [4]
    assert all(map(parse_fault("cut").befalls, range(9)))


def test_every_fault_has_a_test_here() -> None:
    """The list below and the list of faults are the same."""
    tested = (
        "die error_event stall cut loop wrong_usage no_usage 429 503 slow_headers refuse_flush early_stop"
    )
    tested += " no_cached phantom html wrong_model identity_change slowing slower restart"
    assert set(tested.split()) == set(FAULTS)


def test_die_exits_after_some_tokens() -> None:
    """Three tokens come, then the process is to exit."""
    exchange = ask(app_of("die:3"), chat(tokens=9))
    assert exchange.end == "exit"
    assert sum(output.tokens for output in exchange.outputs[:-1]) == 3


def test_restart_exits_and_begins_anew() -> None:
    """Its request ends the process at once; started again, it has no past but the count of its faults."""
    app = app_of("restart:2.5@1")
    assert ask(app, chat(tokens=3)).end == "done"
    before = app.started_s
    assert (ask(app, chat(tokens=9)).end, app.away_ns) == ("exit", 2_500_000_000)
    app.restart(9_000_000_000)
    assert app.started_s == before + 9
    assert app.away_ns is None
    assert app.next_ns() is None
    assert app.engine.counters.generation_tokens == 0 and app.engine.state().running == 0
    app.advance(9_000_000_000)
    assert ask(app, chat(tokens=3)).end == "done"


def test_cut_resets_the_connection_and_stops_generating() -> None:
    """The stream has no end and no [DONE]; the engine is idle at once."""
    app = app_of("cut:3")
    exchange = ask(app, chat(tokens=9))
    assert exchange.end == "reset" and b"[DONE]" not in exchange.raw
    assert app.engine.state().running == 0 and app.engine.counters.cancelled == 1
    assert app.served[0].finish == "cut"


def test_stall_goes_silent_and_never_ends() -> None:
    """Nothing comes after the third token, and the connection stays open."""
    exchange = ask(app_of("stall:3"), chat(tokens=9))
    assert exchange.end == "more"
    assert sum(output.tokens for output in exchange.outputs) == 3


def test_error_event_is_an_error_on_status_200_and_then_done() -> None:
    """As vLLM fails: an error object in a data line, [DONE], an orderly end, no usage."""
    exchange = ask(app_of("error_event:2"), chat(tokens=9))
    assert exchange.status == 200 and exchange.end == "done"
    assert exchange.events[-2]["error"]["code"] == 500
    assert exchange.events[-1] == "[DONE]" and exchange.usage is None
    whole = ask(app_of("error_event:2"), chat(tokens=9, stream=False, stream_options=None))
    assert whole.status == 500


def test_loop_repeats_the_same_words() -> None:
    """The text has a period of five tokens; the counts are right."""
    exchange = ask(app_of("loop"), chat(tokens=30))
    assert exchange.text == " little winter window always closed" * 6
    assert exchange.usage["completion_tokens"] == 30


def test_wrong_usage_miscounts() -> None:
    """Usage is off by the argument while the text is not."""
    assert ask(app_of("wrong_usage:-1"), chat(tokens=9)).usage["completion_tokens"] == 8
    assert ask(app_of("wrong_usage:5"), chat(tokens=9)).usage["completion_tokens"] == 14


def test_no_usage_says_nothing() -> None:
    """Neither a usage chunk, nor continuous usage, nor usage in a document."""
    options = {"include_usage": True, "continuous_usage_stats": True}
    assert ask(app_of("no_usage"), chat(stream_options=options)).usage is None
    assert ask(app_of("no_usage"), chat(stream=False, stream_options=None)).json["usage"] is None


@pytest.mark.parametrize("status", ["429", "503"])
def test_overload_answers_with_retry_after(status: str) -> None:
    """Only the request that was named is refused, and it generates nothing."""
    app = app_of(f"{status}:7@1")
    assert ask(app, chat()).status == 200
    refused = ask(app, chat())
    assert refused.status == int(status) and b"retry-after: 7\r\n" in refused.raw
    assert ask(app, chat()).status == 200
    assert app.engine.counters.submitted == 2


def test_slow_headers_hold_everything_back() -> None:
    """No byte before the delay, then all that was held, in order."""
    exchange = ask(app_of("slow_headers:1"), chat(tokens=5))
    assert {output.t_ns for output in exchange.outputs} == {1_000_000_000}
    assert exchange.usage["completion_tokens"] == 5


def test_slow_headers_hold_back_no_one_else() -> None:
    """A second request on another connection is served while the first one's headers wait."""
    app = app_of("slow_headers:1@0")
    for connection in (1, 2):
        body = json.dumps(chat(tokens=3)).encode()
        app.handle(connection, HttpRequest("POST", "/v1/chat/completions", {}, body), 0)
    exchanges = run(app)
    assert exchanges[2].outputs[-1].t_ns < 10_000_000 < exchanges[1].outputs[0].t_ns


def test_refuse_flush_answers_200_and_flushes_nothing() -> None:
    """success is false and the repeated prompt is still cached."""
    app = app_of("refuse_flush")
    text = "the same words " * 10
    ask(app, chat(text))
    flushed = get(app, "/reset_prefix_cache", "POST")
    assert flushed.status == 200 and flushed.json == {"success": False}
    assert ask(app, chat(text)).usage["prompt_tokens_details"]["cached_tokens"] > 0


def test_early_stop_ignores_ignore_eos() -> None:
    """The answer is short and says `stop`."""
    exchange = ask(app_of("early_stop:4"), chat(tokens=20))
    assert exchange.usage["completion_tokens"] == 4
    assert exchange.events[-3]["choices"][0]["finish_reason"] == "stop"


def test_no_cached_keeps_the_cache_and_says_nothing_of_it() -> None:
    """prompt_tokens_details is null although the server has a cache."""
    assert ask(app_of("no_cached"), chat()).usage["prompt_tokens_details"] is None


def test_phantom_shows_somebody_else_s_request() -> None:
    """An idle server reports running requests."""
    assert (
        b'vllm:num_requests_running{engine="0",model_name="tiny"} 2.0'
        in get(app_of("phantom:2"), "/metrics").body
    )


def test_html_is_a_page_with_status_200() -> None:
    """Every path answers HTML, as a captive portal does."""
    app = app_of("html")
    for exchange in (ask(app, chat()), get(app, "/v1/models"), get(app, "/metrics")):
        assert exchange.status == 200 and exchange.body.startswith(b"<!DOCTYPE html>")


def test_wrong_model_names_another() -> None:
    """The right name is accepted, and another one comes back."""
    app = app_of("wrong_model")
    assert get(app, "/v1/models").json["data"][0]["id"] == "tiny-other"
    assert ask(app, chat()).events[0]["model"] == "tiny-other"


def test_identity_change_looks_like_a_restart() -> None:
    """After some requests, start time, version and context limit are others."""
    app = app_of("identity_change:1")

    def identity() -> tuple[object, ...]:
        page = get(app, "/metrics").body.decode()
        started = next(line for line in page.splitlines() if line.startswith("process_start_time_seconds"))
        return started, get(app, "/version").json, get(app, "/v1/models").json["data"][0]["max_model_len"]

    before = identity()
    assert identity() == before
    ask(app, chat())
    assert all(a != b for a, b in zip(before, identity(), strict=True))
    assert now_of(app) > 0


def test_slower_begins_with_the_request_it_names() -> None:
    """The first request takes its usual time, every later one three times as long."""
    app = app_of("slower:3@1")
    taken = []
    for text in ("one", "two", "three"):
        began_ns = now_of(app)
        ask(app, chat(text, tokens=8))
        taken.append(now_of(app) - began_ns)
    assert taken[1] > 2.5 * taken[0] and taken[2] == pytest.approx(taken[1], rel=0.05)


def test_slowing_goes_on_with_time() -> None:
    """An hour after the first request, steps take half as long again; the first hour's end counts, not requests."""
    plan = FaultPlan((parse_fault("slowing"),))
    assert [plan.pace(9, hours * 3600 * 10**9) for hours in (0, 1, 4)] == [1.0, 1.5, 3.0]
