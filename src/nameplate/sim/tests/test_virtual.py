"""Simulated time shows the same server as its pages do."""

from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nameplate.contract.target import Target
from nameplate.engines.detect import adapter_named
from nameplate.engines.state import ServerSample
from nameplate.sim.app import App
from nameplate.sim.faults import FaultPlan, parse_fault
from nameplate.sim.http import HttpRequest, Output
from nameplate.sim.parameters import EngineParameters
from nameplate.sim.presets import Preset
from nameplate.sim.virtual import SECOND_NS, World

TIGHT = EngineParameters(
    step_ns=10_000_000,
    prefill_token_ns=50_000.0,
    chunk_tokens=64,
    kv_tokens=512,
    running_limit=4,
    context_tokens=256,
)
DRAFTING = msgspec.structs.replace(TIGHT, draft_tokens=3, acceptance=0.6)


def world_of(engine: EngineParameters, *faults: str) -> World:
    """Return a world around a small server."""
    preset = Preset(name="small", about="", model="small", template_tokens=8, engine=engine)
    return World(App(preset, faults=FaultPlan(tuple(map(parse_fault, faults)))))


def ask(world: World, words: int, output_tokens: int, index: int, model: str = "small") -> int:
    """Send one request; return its connection."""
    prompt = f"common words first {index} " + "word " * words
    body = {
        "model": model,
        "prompt": prompt,
        "max_tokens": output_tokens,
        "stream": True,
        "ignore_eos": True,
    }

    def take(output: Output) -> None:
        del output

    connection = world.open(take)
    request = HttpRequest("POST", "/v1/completions", {}, msgspec.json.encode(body))
    world.app.handle(connection, request, world.now_ns())
    return connection


def scraped(world: World) -> ServerSample:
    """Read the metrics page as a real server's is read; how long that took is left out."""
    target = Target("http", "sim", 80, model="small")
    return ServerSample.of(adapter_named("nameplate-sim", world, target, world, "/metrics").state())


@settings(max_examples=40, deadline=None)
@given(
    drafting=st.booleans(),
    phantom=st.booleans(),
    requests=st.lists(
        st.tuples(st.integers(1, 100), st.integers(1, 100), st.integers(0, 300), st.booleans()),
        min_size=1,
        max_size=12,
    ),
)
def test_a_virtual_sample_is_what_the_page_says(
    drafting: bool, phantom: bool, requests: list[tuple[int, int, int, bool]]
) -> None:
    """At any moment the sample taken without the page equals the one read from it, field by field."""
    world = world_of(DRAFTING if drafting else TIGHT, *(("phantom:2",) if phantom else ()))
    for index, (words, output_tokens, pause_ms, cancel) in enumerate(requests):
        connection = ask(world, words, output_tokens, index)
        world.sleep_ns(pause_ms * 1_000_000)
        if cancel:
            world.close(connection)
        assert world.sample(world.now_ns()) == scraped(world)
    world.sleep_ns(60 * SECOND_NS)
    sample = world.sample(world.now_ns())
    assert sample == scraped(world)
    assert sample.running == (2 if phantom else 0)
    assert (sample.spec_drafts_total is None) == (not drafting)
    assert all(getattr(sample, name) is not None for name in ("finished", "cached_tokens_total", "queue_s"))


def test_samples_come_as_often_as_asked_and_at_once(tmp_path: Path) -> None:
    """A line each interval, in the file as soon as its moment has passed."""
    world = world_of(TIGHT)
    path = tmp_path / "server.jsonl"
    ask(world, 50, 100, 0)
    with world.sampling(path, SECOND_NS // 4):
        world.sleep_ns(SECOND_NS)
        rows = [msgspec.json.decode(line, type=ServerSample) for line in path.read_bytes().splitlines()]
    assert [row.t_ns for row in rows] == [index * SECOND_NS // 4 for index in range(5)]
    generated = [row.output_tokens_total or 0 for row in rows]
    assert generated == sorted(generated) and generated[1] < generated[2] < generated[3]
    world.sleep_ns(SECOND_NS)
    assert len(path.read_bytes().splitlines()) == 5
    with pytest.raises(ValueError, match="interval"), world.sampling(path, 0):
        pass
