"""The engine keeps its promises whatever is asked of it."""

from itertools import pairwise
from random import Random

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nameplate.sim.engine import Engine
from nameplate.sim.parameters import EngineParameters
from nameplate.sim.sequence import Emission, EngineRequest

SMALL = EngineParameters(
    step_ns=1_000,
    prefill_token_ns=10.0,
    decode_sequence_ns=100.0,
    resident_token_ns=0.5,
    chunk_tokens=32,
    kv_tokens=256,
    block_tokens=8,
    running_limit=4,
    running_limit_requested=4,
    context_tokens=128,
)


class Ask(msgspec.Struct, frozen=True):
    """One request of a scenario: when, how long a prompt of which family, how much output, cancelled when."""

    at_ns: int
    prompt: int
    family: int
    output: int
    cancel_after_ns: int | None


ASKS = st.lists(
    st.builds(
        Ask,
        st.integers(0, 60_000),
        st.integers(1, 90),
        st.integers(0, 2),
        st.integers(1, 24),
        st.one_of(st.none(), st.none(), st.integers(0, 30_000)),
    ),
    min_size=1,
    max_size=8,
)
PARAMETERS = st.builds(
    EngineParameters,
    step_ns=st.integers(0, 2_000),
    prefill_step_ns=st.integers(0, 2_000),
    decode_step_ns=st.integers(0, 2_000),
    prefill_token_ns=st.floats(0, 50),
    prefill_context_ns=st.floats(0, 1),
    decode_sequence_ns=st.floats(0, 500),
    resident_token_ns=st.floats(0, 2),
    decode_graph_sizes=st.sampled_from([(), (1, 2, 4)]),
    scheduler=st.sampled_from(["mixed", "prefill_first"]),
    intake_request_ns=st.sampled_from([0, 0, 700, 9_000]),
    intake_token_ns=st.sampled_from([0.0, 0.0, 25.0]),
    chunk_tokens=st.integers(8, 80),
    kv_tokens=st.integers(128, 400),
    block_tokens=st.sampled_from([1, 4, 16]),
    running_limit=st.integers(1, 6),
    context_tokens=st.just(128),
    prefix_cache=st.booleans(),
    draft_tokens=st.integers(0, 7),
    acceptance=st.sampled_from([0.0, 0.5, 0.9]),
    acceptance_spread=st.sampled_from([0.0, 0.05]),
    noise=st.sampled_from([0.0, 0.2]),
    seed=st.integers(0, 3),
)


def prompt_of(ask: Ask) -> list[int]:
    """Prompts of one family share their head, so that the prefix cache has something to find."""
    return [ask.family * 1_000 + index for index in range(ask.prompt)]


class Run:
    """Play a scenario and check at every step what must always hold."""

    def __init__(self, parameters: EngineParameters, asks: list[Ask]) -> None:
        self.engine = Engine(parameters)
        self.parameters = parameters
        self.emissions: list[Emission] = []
        self.cancelled: set[int] = set()
        events: list[tuple[int, int, int]] = []
        for index, ask in enumerate(asks):
            events.append((ask.at_ns, 0, index))
            if ask.cancel_after_ns is not None:
                events.append((ask.at_ns + ask.cancel_after_ns, 1, index))
        self.asks = asks
        for at_ns, kind, index in sorted(events):
            self.advance(at_ns)
            if kind == 0:
                request = EngineRequest(index, prompt_of(asks[index]), asks[index].output, "length", index)
                self.engine.submit(request, at_ns)
            elif self.engine.cancel(index, at_ns):
                self.cancelled.add(index)
            self.check()
        for _ in range(100_000):
            end_ns = self.engine.next_ns()
            if end_ns is None:
                break
            self.advance(end_ns)
        else:
            raise AssertionError("the engine never becomes idle")

    def advance(self, to_ns: int) -> None:
        if to_ns == self.engine.now_ns:
            return  # asking for next_ns would start a step before all of this moment have arrived
        while (end_ns := self.engine.next_ns()) is not None and end_ns <= to_ns:
            self.emissions += self.engine.advance(end_ns)
            self.check()
        self.emissions += self.engine.advance(to_ns)

    def check(self) -> None:
        state = self.engine.state()
        assert 0 <= state.running <= self.parameters.running_limit
        assert state.waiting >= 0
        assert 0 <= state.kv_blocks_used <= self.parameters.blocks
        assert state.kv_blocks_used + self.engine.pool.cached_idle <= self.parameters.blocks


@settings(max_examples=100, deadline=None)
@given(PARAMETERS, ASKS)
def test_every_request_finishes_or_was_cancelled_and_no_token_is_lost(
    parameters: EngineParameters, asks: list[Ask]
) -> None:
    """Whatever the limits, each request gives exactly its tokens, and the pool and the batch end empty."""
    run = Run(parameters, asks)
    by_request: dict[int, list[Emission]] = {}
    for emission in run.emissions:
        by_request.setdefault(emission.id, []).append(emission)
    for index, ask in enumerate(asks):
        emissions = by_request.get(index, [])
        total = 0
        for emission in emissions:
            assert emission.tokens >= 1
            total += emission.tokens
            assert emission.total == total
            assert (emission.finish is not None) == (total == ask.output)
        if index in run.cancelled:
            assert total < ask.output or not emissions
        else:
            assert total == ask.output
    counters, state = run.engine.counters, run.engine.state()
    assert counters.submitted == counters.finished_length + counters.finished_stop + counters.cancelled
    assert counters.generation_tokens == sum(emission.tokens for emission in run.emissions)
    assert (state.running, state.waiting, state.kv_blocks_used) == (0, 0, 0)


@settings(max_examples=60, deadline=None)
@given(PARAMETERS, ASKS)
def test_the_same_calls_give_the_same_emissions(parameters: EngineParameters, asks: list[Ask]) -> None:
    """The engine has no hidden state: a replay is identical, and times never go back."""
    first, second = Run(parameters, asks), Run(parameters, asks)
    assert first.emissions == second.emissions
    times = [emission.t_ns for emission in first.emissions]
    assert times == sorted(times)


@settings(max_examples=60, deadline=None)
@given(PARAMETERS, ASKS, st.integers(1, 5_000))
def test_how_often_one_looks_changes_nothing(
    parameters: EngineParameters, asks: list[Ask], stride_ns: int
) -> None:
    """Advancing in many small strides gives what advancing step by step gives."""
    asks = [msgspec.structs.replace(ask, cancel_after_ns=None, at_ns=0) for ask in asks]
    expected = Run(parameters, asks).emissions
    engine = Engine(parameters)
    for index, ask in enumerate(asks):
        engine.submit(EngineRequest(index, prompt_of(ask), ask.output, "length", index), 0)
    found: list[Emission] = []
    now_ns = 0
    while (end_ns := engine.next_ns()) is not None:
        # Idle strides before the step's end are skipped over, those in it are taken.
        now_ns = max(now_ns + stride_ns, end_ns - 2 * stride_ns)
        found += engine.advance(now_ns)
    assert found == expected


@settings(max_examples=60, deadline=None)
@given(PARAMETERS, ASKS)
def test_no_step_exceeds_the_chunk_budget(parameters: EngineParameters, asks: list[Ask]) -> None:
    """Prefill never exceeds the budget; where decodes share it, the whole step does not."""
    counters = Run(parameters, asks).engine.counters
    assert counters.largest_prefill <= parameters.chunk_tokens
    if parameters.scheduler == "mixed":
        assert counters.largest_step <= parameters.chunk_tokens


@settings(max_examples=60, deadline=None)
@given(PARAMETERS, ASKS)
def test_first_tokens_come_in_order_of_arrival(parameters: EngineParameters, asks: list[Ask]) -> None:
    """Waiting is first come, first served, as long as nobody is preempted."""
    asks = [msgspec.structs.replace(ask, cancel_after_ns=None) for ask in asks]
    run = Run(parameters, asks)
    if run.engine.counters.preemptions:
        return
    order = [emission.id for emission in run.emissions if emission.total == emission.tokens]
    arrival = sorted(range(len(asks)), key=lambda index: (asks[index].at_ns, index))
    assert order == arrival


def drive(engine: Engine, requests: list[EngineRequest]) -> list[Emission]:
    """Submit all at time 0 and run to the end."""
    for request in requests:
        engine.submit(request, 0)
    emissions: list[Emission] = []
    while (end_ns := engine.next_ns()) is not None:
        emissions += engine.advance(end_ns)
    return emissions


def test_step_time_follows_the_cost_model() -> None:
    """One request alone: prefill chunks, then decodes over a growing context, to the nanosecond."""
    parameters = msgspec.structs.replace(SMALL, resident_token_ns=1.0, prefill_step_ns=500, decode_step_ns=50)
    emissions = drive(Engine(parameters), [EngineRequest(0, list(range(40)), 3)])
    first = (1_000 + 500 + 32 * 10) + (1_000 + 500 + 8 * 10 + 32)
    second = first + 1_000 + 50 + 100 + 41
    assert [emission.t_ns for emission in emissions] == [first, second, second + 1_000 + 50 + 100 + 42]


def test_a_context_term_makes_late_chunks_dearer() -> None:
    """The context term charges each prefilled token for those before it."""
    parameters = msgspec.structs.replace(SMALL, resident_token_ns=0.0, prefill_context_ns=2.0)
    emissions = drive(Engine(parameters), [EngineRequest(0, list(range(64)), 1)])
    pairs = sum(range(64))
    assert emissions[0].t_ns == 2 * 1_000 + 64 * 10 + 2 * pairs


def test_decodes_go_on_during_prefill_only_when_mixed() -> None:
    """A long prompt stalls the others' tokens under prefill-first, and does not under a shared budget."""
    longest = {}
    for scheduler in ("mixed", "prefill_first"):
        engine = Engine(msgspec.structs.replace(SMALL, scheduler=scheduler))
        engine.submit(EngineRequest(0, [1, 2, 3], 30), 0)
        emissions = engine.advance(5_000)
        engine.submit(EngineRequest(1, list(range(100, 196)), 1), 5_000)
        while (end_ns := engine.next_ns()) is not None:
            emissions += engine.advance(end_ns)
        times = [emission.t_ns for emission in emissions if emission.id == 0]
        longest[scheduler] = max(after - before for before, after in pairwise(times))
    assert longest["prefill_first"] > 2 * longest["mixed"]


def test_the_rest_of_a_chunk_is_filled_with_the_next_prompt() -> None:
    """Prompts of 40 in chunks of 32 share chunks: the third ends in the fourth chunk, not in the sixth."""
    engine = Engine(msgspec.structs.replace(SMALL, scheduler="prefill_first", kv_tokens=512))
    emissions = drive(engine, [EngineRequest(index, [index] * 40, 1) for index in range(3)])
    assert engine.counters.steps == 4
    assert [emission.id for emission in emissions] == [0, 1, 2]


def test_an_exhausted_pool_preempts_the_youngest_and_loses_nothing() -> None:
    """Two requests that cannot both grow: the younger is recomputed, and both give all their tokens."""
    parameters = msgspec.structs.replace(SMALL, kv_tokens=128, prefix_cache=False)
    engine = Engine(parameters)
    emissions = drive(engine, [EngineRequest(index, [index] * 50, 40) for index in range(2)])
    assert engine.counters.preemptions >= 1
    assert [sum(e.tokens for e in emissions if e.id == index) for index in range(2)] == [40, 40]
    assert emissions[-1].id == 1


def test_a_repeated_prompt_is_cached_and_a_flush_forgets_it() -> None:
    """The second of two equal prompts is served from the cache but for its last token's block."""
    engine = Engine(SMALL)
    cached = []
    for index in range(3):
        if index == 2:
            assert engine.flush()
        engine.submit(EngineRequest(index, list(range(64)), 2), engine.now_ns)
        assert engine.next_ns() is not None
        assert not engine.flush()
        while (end_ns := engine.next_ns()) is not None:
            emissions = engine.advance(end_ns)
        cached.append(emissions[-1].cached_tokens)
    assert cached == [0, 56, 0]
    assert (engine.counters.prefix_queries, engine.counters.prefix_hits) == (192, 56)


def test_speculation_gives_several_tokens_a_step_and_the_mean_follows_the_acceptance() -> None:
    """With geometric acceptance p and k drafts a step gives 1 + p + ... + p^k tokens on average."""
    parameters = msgspec.structs.replace(
        SMALL, draft_tokens=7, acceptance=0.8, kv_tokens=65_536, context_tokens=32_768, block_tokens=64
    )
    engine = Engine(parameters)
    drive(engine, [EngineRequest(0, [1], 20_000, "length", 5)])
    counters = engine.counters
    mean = 1 + counters.accepted_tokens / counters.drafts
    assert mean == pytest.approx(sum(0.8**i for i in range(8)), rel=0.03)
    assert counters.draft_tokens == 7 * counters.drafts


def test_acceptance_is_a_request_s_own() -> None:
    """How many drafts are accepted depends on the request's seed, not on who runs beside it."""
    parameters = msgspec.structs.replace(
        SMALL, draft_tokens=3, acceptance=0.6, chunk_tokens=64, kv_tokens=1_024
    )
    request = EngineRequest(7, [1, 2], 30, "length", 99)
    alone = [emission.tokens for emission in drive(Engine(parameters), [request])]
    others = [EngineRequest(index, [index], 20, "length", index) for index in range(3)]
    among = [
        emission.tokens for emission in drive(Engine(parameters), [*others, request]) if emission.id == 7
    ]
    assert among == alone


def test_what_can_never_run_is_refused() -> None:
    """A request beyond the context limit, an empty one, and a repeated number raise ValueError."""
    engine = Engine(SMALL)
    for request in (EngineRequest(0, [1] * 100, 29), EngineRequest(0, [], 1), EngineRequest(0, [1], 0)):
        with pytest.raises(ValueError):
            engine.submit(request, 0)
    engine.submit(EngineRequest(0, [1], 1), 0)
    with pytest.raises(ValueError):
        engine.submit(EngineRequest(0, [1], 1), 0)


def test_what_arrives_together_at_an_idle_engine_starts_together() -> None:
    """Requests of one moment share the first step, even if time was asked to come to that moment in between."""
    engine = Engine(SMALL)
    for number in range(3):
        assert engine.advance(100) == []
        engine.submit(EngineRequest(number, [number], 1), 100)
    assert [emission.t_ns for emission in engine.advance(10_000)] == [1_130] * 3
    assert engine.counters.steps == 1


def test_what_arrives_as_a_step_ends_waits_for_the_next() -> None:
    """A busy engine has begun its next step by the time its clients can react to the last one."""
    engine = Engine(SMALL)
    engine.submit(EngineRequest(0, [1], 3), 0)
    first_ns = engine.next_ns()
    assert first_ns is not None and engine.advance(first_ns)
    engine.submit(EngineRequest(1, [2], 1), first_ns)
    second_ns = engine.next_ns()
    assert second_ns is not None
    assert [emission.id for emission in engine.advance(second_ns)] == [0]
    third_ns = engine.next_ns()
    assert third_ns is not None
    assert sorted(emission.id for emission in engine.advance(third_ns)) == [0, 1]


def test_time_does_not_go_back() -> None:
    """A submission in the past is the caller's mistake."""
    engine = Engine(SMALL)
    engine.advance(100)
    with pytest.raises(ValueError):
        engine.submit(EngineRequest(0, [1], 1), 99)


def test_work_grows_with_the_number_of_requests_and_not_with_its_square() -> None:
    """Ten times the requests make the scheduler look at about ten times as many sequences."""
    parameters = msgspec.structs.replace(SMALL, kv_tokens=4_096, running_limit=8, chunk_tokens=64)
    visits = []
    for count in (10, 100, 1_000):
        engine = Engine(parameters)
        random = Random(count)
        drive(
            engine, [EngineRequest(i, [random.getrandbits(30) for _ in range(20)], 10) for i in range(count)]
        )
        visits.append(engine.counters.visits)
    assert visits[1] < 15 * visits[0]
    assert visits[2] < 15 * visits[1]
