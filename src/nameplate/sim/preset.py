"""What is simulated: an engine, what it serves, and whom else."""

import msgspec

from nameplate.sim.parameters import EngineParameters


class Neighbour(msgspec.Struct, frozen=True, kw_only=True):
    """Describe somebody else's traffic: with each `every`-th generation request comes one of theirs, `delay_ns` later.

    Their requests are real: they run, hold KV and are in all counters. Raises ValueError for traffic that cannot be.
    """

    every: int
    delay_ns: int
    prompt_tokens: int
    output_tokens: int

    def __post_init__(self) -> None:
        if min(self.every, self.prompt_tokens, self.output_tokens) < 1 or self.delay_ns < 0:
            raise ValueError("a neighbour's requests need a rhythm, a prompt and an output")


class Preset(msgspec.Struct, frozen=True, kw_only=True):
    """Name one simulated machine: what it serves, how fast it is, and what is wrong with it.

    `template_tokens` is what the chat template adds to one user message. `faults` are written as on the command line
    (`faults.parse_fault`); those that are given there as well come first. Raises ValueError for a neighbour whose
    requests do not fit the context limit.
    """

    name: str
    about: str
    model: str
    template_tokens: int
    engine: EngineParameters
    faults: tuple[str, ...] = ()
    neighbour: Neighbour | None = None

    def __post_init__(self) -> None:
        other = self.neighbour
        if other is not None and other.prompt_tokens + other.output_tokens > self.engine.context_tokens:
            raise ValueError("a neighbour's requests must fit the context limit")
