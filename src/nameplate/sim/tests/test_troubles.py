"""Each variant of the small server shows the trouble that its name says, and the server itself none."""

import msgspec
import pytest

from nameplate.sim.app import App
from nameplate.sim.engine import Engine
from nameplate.sim.parameters import EngineParameters
from nameplate.sim.preset import Neighbour
from nameplate.sim.presets import MATRIX, PRESETS, find_preset
from nameplate.sim.sequence import EngineRequest
from nameplate.sim.tests.cells import OUTPUT, SECOND_NS, run_cell
from nameplate.sim.tests.test_virtual import ask
from nameplate.sim.virtual import World

K = 1_024
LONGEST = 27 * K  # the context limit less 4,096 of output and 1,024 to spare


def engine_of(name: str) -> EngineParameters:
    """Return the parameters of `matrix-NAME`."""
    return find_preset(f"matrix-{name}").engine


def cold_s(parameters: EngineParameters, prompt: int) -> float:
    """Return the time to first token of one cold prompt alone."""
    engine = Engine(parameters)
    engine.submit(EngineRequest(0, range(prompt), 1), 0)
    while (next_ns := engine.next_ns()) is not None:
        engine.advance(next_ns)
    return engine.now_ns * 1e-9


def page(app: App, path: str) -> bytes:
    """Return a page of the server."""
    return World(app).fetch("GET", path).body


def test_every_variant_says_what_it_shows() -> None:
    """All are named after the small server, differ from it, and are described in a line."""
    variants = [preset for name, preset in PRESETS.items() if name.startswith("matrix-")]
    assert len(variants) >= 12
    for preset in PRESETS.values():
        assert 20 < len(preset.about) < 110, preset.name
    for preset in variants:
        kept = msgspec.structs.asdict(preset) | {"name": MATRIX.name, "about": MATRIX.about}
        assert kept != msgspec.structs.asdict(MATRIX), preset.name


@pytest.mark.parametrize(("prompt", "streams"), [(8 * K, 1), (8 * K, 16), (16 * K, 4), (LONGEST, 2)])
def test_the_small_server_is_well(prompt: int, streams: int) -> None:
    """It is ready within the cold prefill of all prompts, runs all through the window, and preempts nobody."""
    cell = run_cell(MATRIX.engine, prompt, streams)
    assert cell.ready_ns is not None
    assert cell.ready_ns * 1e-9 < 1.2 * streams * cold_s(MATRIX.engine, prompt) + 4
    assert {(state.running, state.waiting) for state in cell.states} == {(streams, 0)}
    # 4,096 characters within the window, at no less than four a token, so that a loop can be told.
    assert cell.tokens / streams * 4 > 4_096
    assert MATRIX.engine.kv_tokens >= (LONGEST + OUTPUT) * 128


def test_a_small_pool_is_over_capacity_where_it_says() -> None:
    """Half of each cell that exceeds the pool fits with its outputs, and runs undisturbed."""
    pool = engine_of("small-kv").kv_tokens
    for prompt, streams in ((8 * K, 32), (16 * K, 16), (LONGEST, 8)):
        assert prompt * streams > pool
        assert (prompt + 30 + OUTPUT) * streams / 2 <= pool
    cell = run_cell(engine_of("small-kv"), 8 * K + 30, 16)
    assert {state.running for state in cell.states} == {16}


@pytest.mark.parametrize(("prompt", "streams", "left"), [(8 * K, 16, 11), (16 * K, 8, 6)])
def test_preemption_begins_after_readiness(prompt: int, streams: int, left: int) -> None:
    """The prompts fit, the outputs do not: most of the window fewer run than were asked for, and ever fewer."""
    cell = run_cell(engine_of("preempt"), prompt + 30, streams)
    assert cell.ready_ns is not None
    fewer = [state for state in cell.states if state.running < streams]
    assert len(fewer) > 20 and fewer[-1].running == left
    assert all(state.waiting and state.kv_use > 0.8 for state in fewer)


def test_thrash_prefills_the_same_prompts_again_and_again() -> None:
    """Sixteen prompts of 8K are never all running for three seconds, and are computed several times over."""
    cell = run_cell(engine_of("thrash"), 8 * K + 30, 16, deadline_s=60)
    assert cell.ready_ns is None
    assert cell.counters.preemptions > 10
    assert cell.counters.prefix_queries > 2 * 16 * 8 * K


def test_starved_prompts_take_far_longer_than_alone() -> None:
    """Sixteen prompts take over three times their cold prefill, 32 are never all running; eight are hardly late."""
    parameters = engine_of("starved")
    alone_s = cold_s(parameters, 8 * K)
    for streams, patience in ((16, 3.0), (32, 6.0)):
        late = run_cell(parameters, 8 * K, streams, deadline_s=patience * streams * alone_s)
        assert late.ready_ns is None
        assert late.ramp.running <= 16
    few = run_cell(parameters, 8 * K, 8)
    assert few.ready_ns is not None and few.ready_ns * 1e-9 < 1.6 * 8 * alone_s + 4


def test_a_contradicted_claim_never_runs_whole() -> None:
    """The claim holds 32 prompts of 8K, the pool 24: it is nearly full, and the rest wait for ever."""
    parameters = engine_of("kv-claim")
    assert parameters.claimed_blocks * parameters.block_tokens > 32 * (8 * K + 30 + OUTPUT)
    claimed = parameters.claimed_blocks * parameters.block_tokens
    app = App(find_preset("matrix-kv-claim"))
    assert f'kv_cache_size_tokens="{claimed}"'.encode() in page(app, "/metrics")
    facts = msgspec.json.decode(page(app, "/sim"))["parameters"]
    assert (facts["kv_tokens"], facts["kv_claim_tokens"]) == (claimed, None)
    cell = run_cell(parameters, 8 * K + 30, 32, deadline_s=120)
    assert cell.ready_ns is None
    assert cell.ramp.running < 25 and cell.ramp.waiting > 6 and cell.ramp.kv_use > 0.9


def test_a_slow_ramp_is_ready_late() -> None:
    """Ready after a second a stream; what has not been taken in is neither running nor waiting."""
    cell = run_cell(engine_of("slow-ramp"), 8 * K, 16)
    assert cell.ready_ns is not None and 19 <= cell.ready_ns * 1e-9 < 21
    early = run_cell(engine_of("slow-ramp"), 8 * K, 16, deadline_s=8)
    assert early.ramp.running == 8 and early.ramp.waiting == 0


def test_a_running_limit_leaves_the_rest_waiting() -> None:
    """Twelve of sixteen run, four wait."""
    cell = run_cell(engine_of("running-limit"), 8 * K, 16, deadline_s=60)
    assert cell.ready_ns is None
    assert (cell.ramp.running, cell.ramp.waiting) == (12, 4)


def test_without_a_prefix_cache_restarts_prefill() -> None:
    """A stream that starts again finds nothing cached, where the small server finds all of it."""
    hits = []
    for parameters in (engine_of("no-cache"), MATRIX.engine):
        engine = Engine(parameters)
        for number in range(2):
            engine.submit(EngineRequest(number, range(8 * K), 1), engine.now_ns)
            while (next_ns := engine.next_ns()) is not None:
                engine.advance(next_ns)
        hits.append(engine.counters.prefix_hits)
    assert hits == [0, 8 * K - 16]


def test_a_neighbour_runs_inside_the_window() -> None:
    """Fifteen seconds after every eighth request one more runs, for seven to fifteen seconds, in all counters."""
    world = World(App(find_preset("matrix-traffic")))
    for index in range(8):
        ask(world, 200, OUTPUT, index, model="matrix")
    running = []
    for _ in range(40):
        world.sleep_ns(SECOND_NS)
        running.append(world.sample(world.now_ns()).running)
    assert running[:14] == [8] * 14
    more = running.count(9)
    assert 7 <= more <= 15 and set(running) == {8, 9}
    assert running[15 : 15 + more] == [9] * more


def test_a_neighbour_s_tokens_count_and_go_nowhere() -> None:
    """The counters hold the neighbour's prompt and output, and no client gets a byte of them."""
    alone = world_with(None)
    beside = world_with(Neighbour(every=1, delay_ns=0, prompt_tokens=100, output_tokens=50))
    samples = []
    for world in (alone, beside):
        ask(world, 20, 50, 0, model="matrix")
        world.sleep_ns(60 * SECOND_NS)
        samples.append(world.sample(world.now_ns()))
    one, two = samples
    assert (two.output_tokens_total, two.prompt_tokens_total) == (
        (one.output_tokens_total or 0) + 50,
        (one.prompt_tokens_total or 0) + 100,
    )
    assert len(beside.app.served) == len(alone.app.served) == 1
    with pytest.raises(ValueError, match="context limit"):
        world_with(Neighbour(every=1, delay_ns=0, prompt_tokens=40_000, output_tokens=50))
    with pytest.raises(ValueError, match="rhythm"):
        Neighbour(every=0, delay_ns=0, prompt_tokens=1, output_tokens=1)


def world_with(neighbour: Neighbour | None) -> World:
    """Return a world around the small server with that neighbour."""
    return World(App(msgspec.structs.replace(MATRIX, neighbour=neighbour)))


def test_a_phantom_can_begin_with_a_request() -> None:
    """The gauge is honest until the named request has come, then one too high."""
    world = World(App(msgspec.structs.replace(MATRIX, faults=("phantom:1@2",))))
    running = []
    for index in range(4):
        ask(world, 20, 400, index, model="matrix")
        running.append(world.sample(world.now_ns()).running)
        world.sleep_ns(SECOND_NS)
    assert world.sample(world.now_ns()).running == 5
    assert running == [0, 1, 3, 4]


@pytest.mark.parametrize(("name", "looping"), [("loop", 40), ("loop-some", 5), ("loop-few", 1)])
def test_loops_are_long_enough_to_be_called_so(name: str, looping: int) -> None:
    """Of 40 answers so many repeat 35 characters over at least 4,096 within what a window holds; the rest never do."""
    preset = find_preset(f"matrix-{name}")
    world = World(App(preset))
    window = run_cell(MATRIX.engine, 8 * K, 16).tokens // 16
    found = 0
    for index in range(40):
        body = {"model": "matrix", "prompt": f"say {index}", "max_tokens": window, "ignore_eos": True}
        reply = world.fetch("POST", "/v1/completions", msgspec.json.encode(body), timeout_s=300)
        text = msgspec.json.decode(reply.body)["choices"][0]["text"]
        repeats = text == (text[:35] * (len(text) // 35 + 1))[: len(text)]
        assert not repeats or len(text) >= 4_096
        found += repeats
    assert found == looping
