"""The metronome keeps its schedule and writes down what it did."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nameplate.sim.metronome import MetronomeOptions
from nameplate.sim.process import SimProcess, running
from nameplate.sim.tests.client import Exchange, chat
from nameplate.sim.tests.test_server import connect, read_until, request_bytes
from nameplate.sim.tokens import tokenize

pytestmark = pytest.mark.live


@pytest.fixture(scope="module")
def server() -> Iterator[SimProcess]:
    """One fast metronome: first token after 20 ms, then one each 2 ms."""
    with running("metronome", "--ttft-ms", "20", "--itl-ms", "2") as process:
        yield process


def stream(server: SimProcess, **more: Any) -> Exchange:
    """Run one request and return its response."""
    from nameplate.sim.http import Output

    with connect(server) as sock:
        sock.sendall(request_bytes(chat(**(more | {"model": "metronome"}))))
        return Exchange([Output(0, 0, read_until(sock, b"0\r\n\r\n"), "done")])


def test_the_stream_is_like_vllm_s(server: SimProcess) -> None:
    """Role chunk, chunks of some 230 bytes, finish on the last, usage, [DONE]."""
    exchange = stream(server, text="one two three", tokens=70)
    events = exchange.events
    assert events[0]["choices"][0]["delta"]["role"] == "assistant"
    assert events[-3]["choices"][0]["finish_reason"] == "length"
    assert events[-1] == "[DONE]"
    assert exchange.usage["prompt_tokens"] == 15
    assert exchange.usage["completion_tokens"] == 70 == len(tokenize(exchange.text))
    assert 200 <= len(exchange.body) / len(events) <= 250


def test_continuous_usage_counts_up(server: SimProcess) -> None:
    """With continuous usage every chunk tells how many tokens there are."""
    exchange = stream(
        server, tokens=5, stream_options={"include_usage": True, "continuous_usage_stats": True}
    )
    assert [event["usage"]["completion_tokens"] for event in exchange.events[:-1]] == [0, 1, 2, 3, 4, 5, 5]


def test_one_token_is_first_and_last(server: SimProcess) -> None:
    """A single token has role, text, finish, usage and end in one send."""
    exchange = stream(server, tokens=1)
    assert exchange.events[1]["choices"][0]["finish_reason"] == "length"
    assert exchange.usage["completion_tokens"] == 1


def test_no_chunk_leaves_before_it_is_due_and_lateness_does_not_add_up(server: SimProcess) -> None:
    """The log's times are at or after received + TTFT + k x ITL, and the last is not later than by a stall."""
    began_ns = time.monotonic_ns()
    stream(server, tokens=100)
    with connect(server) as sock:
        sock.sendall(b"GET /log HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        log = read_until(sock, b"never").partition(b"\r\n\r\n")[2]
    row = json.loads(log.splitlines()[-1])
    assert row["received_ns"] > began_ns and row["tokens"] == 100
    lateness = [after - (20_000_000 + 2_000_000 * index) for index, after in enumerate(row["events_ns"])]
    assert len(lateness) == 100 and min(lateness) >= 0
    assert row["first_sent_ns"] - row["received_ns"] == row["events_ns"][0]


def test_bundled_tokens_and_the_log_at_the_end(tmp_path: Path) -> None:
    """Several tokens a chunk, the rest in the last; SIGTERM writes the log."""
    log = tmp_path / "truth.jsonl"
    with running("metronome", "--ttft-ms", "1", "--itl-ms", "1", "--chunk-tokens", "4", log=log) as process:
        exchange = stream(process, tokens=10)
        assert exchange.usage["completion_tokens"] == 10 == len(tokenize(exchange.text))
        assert process.stop() == 0
    about, row = map(json.loads, log.read_text().splitlines())
    assert about["chunk_tokens"] == 4
    assert (len(row["events_ns"]), row["tokens"], row["finish"]) == (3, 10, "length")


def test_bad_requests_and_schedules_are_refused(server: SimProcess) -> None:
    """Another model, no stream, and a negative time."""
    with connect(server) as sock:
        sock.sendall(request_bytes(chat(model="other")))
        assert b" 404 " in sock.recv(1_000)
        sock.sendall(request_bytes(chat(model="metronome", stream=False, stream_options=None)))
        assert b" 400 " in sock.recv(1_000)
    with pytest.raises(ValueError):
        MetronomeOptions(itl_ns=-1)
