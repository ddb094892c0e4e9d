"""One cell of a speed matrix on a bare engine: C streams that start again when they end, and a window."""

import msgspec

from nameplate.sim.counters import Counters, EngineState
from nameplate.sim.engine import Engine
from nameplate.sim.parameters import EngineParameters
from nameplate.sim.sequence import EngineRequest

SECOND_NS = 1_000_000_000
STABLE_NS = 3 * SECOND_NS
OUTPUT = 4_096


class Cell(msgspec.Struct, frozen=True):
    """Hold what a cell saw: `ready_ns` None when it never was; the rest is of the window, if there was one.

    `ramp` is the state when the deadline passed or the window began, `states` the window's at each second, `counters`
    are of the whole run, `first_ns` when each stream's first output came, counted from the start.
    """

    ready_ns: int | None
    ramp: EngineState
    counters: Counters
    tokens: int = 0
    states: tuple[EngineState, ...] = ()
    first_ns: tuple[int, ...] = ()

    @property
    def rate(self) -> float:
        """Return tokens a second over a window of 30 s."""
        return self.tokens / 30


def run_cell(
    parameters: EngineParameters,
    prompt: int,
    streams: int,
    *,
    warm: bool = False,
    seconds: int = 30,
    deadline_s: float = 3_600.0,
) -> Cell:
    """Run one cell; ready is: all streams run, none waits, all have produced, for three seconds.

    `prompt` counts tokens, template included. `warm` runs each prompt once before, so that all are cached.
    """
    engine = Engine(parameters)
    requests = 0
    owners: dict[int, int] = {}
    produced: set[int] = set()
    firsts: dict[int, int] = {}

    def submit(stream: int, now_ns: int, outputs: int = OUTPUT) -> None:
        nonlocal requests
        tokens = range((stream + 1) << 20, ((stream + 1) << 20) + prompt)
        engine.submit(EngineRequest(requests, tokens, outputs, seed=requests), now_ns)
        owners[requests] = stream
        requests += 1

    def step(to_ns: int) -> int:
        """Advance; return the tokens that came."""
        came = 0
        for emission in engine.advance(to_ns):
            stream = owners[emission.id]
            came += emission.tokens
            if stream not in produced:
                produced.add(stream)
                firsts[stream] = emission.t_ns - start_ns
            if emission.finish is not None and not warming:
                submit(stream, emission.t_ns)
        return came

    warming, start_ns = warm, 0
    if warm:
        for stream in range(streams):
            submit(stream, engine.now_ns, 1)
            while (next_ns := engine.next_ns()) is not None:
                step(next_ns)
        warming, start_ns = False, engine.now_ns
        produced.clear()
    for stream in range(streams):
        submit(stream, start_ns)
    since_ns: int | None = None
    while True:
        next_ns = engine.next_ns()
        assert next_ns is not None
        step(next_ns)
        state = engine.state()
        full = state.running == streams and state.waiting == 0 and len(produced) == streams
        since_ns = (engine.now_ns if since_ns is None else since_ns) if full else None
        if since_ns is not None and engine.now_ns - since_ns >= STABLE_NS:
            break
        if engine.now_ns - start_ns > deadline_s * SECOND_NS:
            return Cell(None, state, engine.counters, first_ns=tuple(firsts.values()))
    ready_ns, tokens, states = engine.now_ns, 0, []
    for second in range(1, seconds + 1):
        while (next_ns := engine.next_ns()) is not None and next_ns <= ready_ns + second * SECOND_NS:
            tokens += step(next_ns)
        states.append(engine.state())
    return Cell(ready_ns - start_ns, state, engine.counters, tokens, tuple(states), tuple(firsts.values()))
