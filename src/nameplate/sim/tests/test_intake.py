"""The API server in front of the engine takes requests in one after another."""

import msgspec
import pytest

from nameplate.sim.engine import Engine
from nameplate.sim.parameters import EngineParameters
from nameplate.sim.sequence import EngineRequest

PARAMETERS = EngineParameters(
    step_ns=1_000,
    prefill_token_ns=10.0,
    intake_request_ns=5_000,
    intake_token_ns=100.0,
    chunk_tokens=64,
    kv_tokens=1_024,
    context_tokens=128,
)


def first_tokens(engine: Engine) -> dict[int, int]:
    """Run until nothing is left; return when each request's first token came."""
    found: dict[int, int] = {}
    while (next_ns := engine.next_ns()) is not None:
        for emission in engine.advance(next_ns):
            found.setdefault(emission.id, emission.t_ns)
    return found


def test_requests_are_taken_in_one_after_another() -> None:
    """Three requests of one moment reach the idle engine 6,000 ns apart, and each then takes its step."""
    engine = Engine(PARAMETERS)
    for number in range(3):
        engine.submit(EngineRequest(number, range(number * 100, number * 100 + 10), 1), 0)
    assert first_tokens(engine) == {0: 7_100, 1: 13_100, 2: 19_100}
    assert engine.histograms.queue.sum_s == 0.0
    assert engine.histograms.ttft.sum_s == pytest.approx((7_100 + 13_100 + 19_100) * 1e-9)


def test_what_is_not_taken_in_is_neither_running_nor_waiting() -> None:
    """The engine's gauges begin with the request's turn, also in the middle of a step."""
    slow = Engine(msgspec.structs.replace(PARAMETERS, step_ns=20_000))
    for number in range(3):
        slow.submit(EngineRequest(number, range(number * 100, number * 100 + 10), 1), 0)
    seen = []
    for now_ns in (5_999, 6_001, 11_999, 12_000, 18_000):
        slow.advance(now_ns)
        seen.append((slow.state().running, slow.state().waiting))
    assert seen == [(0, 0), (1, 0), (1, 0), (1, 1), (1, 2)]


def test_a_cancelled_request_has_taken_its_turn() -> None:
    """Who leaves before being taken in never runs, and those behind come no sooner."""
    engine = Engine(PARAMETERS)
    for number in range(2):
        engine.submit(EngineRequest(number, range(number * 100, number * 100 + 10), 1), 0)
    assert engine.cancel(0, 0)
    assert first_tokens(engine) == {1: 13_100}
    state = engine.state()
    assert (state.running, state.waiting) == (0, 0)


def test_time_of_its_own_is_not_skipped() -> None:
    """An engine that should have taken a request in must be advanced before the next is submitted."""
    engine = Engine(PARAMETERS)
    engine.submit(EngineRequest(0, range(10), 1), 0)
    with pytest.raises(ValueError, match="advance"):
        engine.submit(EngineRequest(1, range(10), 1), 50_000)
    with pytest.raises(ValueError, match="before it began"):
        msgspec.structs.replace(PARAMETERS, intake_request_ns=-1)
