"""What goes into the engine, what comes out, and one request on its way through."""

import math
from collections import abc
from random import Random

import msgspec

from nameplate.sim.kv import Holding, block_hashes
from nameplate.sim.parameters import EngineParameters


class EngineRequest(msgspec.Struct, frozen=True):
    """Describe one request; `output_tokens` is where it ends, `finish` the reason it then gives."""

    id: int
    prompt: abc.Sequence[int]
    output_tokens: int
    finish: str = "length"
    seed: int = 0


class Emission(msgspec.Struct, gc=False):
    """Report what one step gave one request: `tokens` new ones, `total` so far, `finish` on the last."""

    id: int
    t_ns: int
    tokens: int
    total: int
    finish: str | None
    cached_tokens: int


class Sequence:
    """Follow one request through the engine."""

    __slots__ = (
        "arrival_ns", "cached", "capacity", "computed", "finish", "first_ns", "gone", "hashes", "holding", "id",
        "last_ns", "limit", "log_acceptance", "outputs", "prompt_tokens", "queued_ns", "random", "scheduled_ns",
        "taken_in", "target",
    )  # fmt: skip

    def __init__(self, request: EngineRequest, now_ns: int, parameters: EngineParameters) -> None:
        self.id = request.id
        self.prompt_tokens = len(request.prompt)
        self.hashes = block_hashes(request.prompt, parameters.block_tokens)
        self.limit = request.output_tokens
        self.finish = request.finish
        self.outputs = 0
        self.computed = 0
        self.target = self.prompt_tokens  # what must be prefilled before the next token can come
        self.cached = 0
        self.holding = Holding()
        self.capacity = 0
        self.arrival_ns = now_ns
        self.queued_ns = now_ns  # when the API server hands it to the engine
        self.taken_in = False
        self.scheduled_ns = -1
        self.first_ns = -1
        self.last_ns = -1
        self.gone = False
        self.random = Random(request.seed)
        spread = parameters.acceptance_spread
        chance = parameters.acceptance
        if spread:
            chance += spread * (2.0 * self.random.random() - 1.0)
        self.log_acceptance = (
            math.log(min(chance, 0.999)) if parameters.draft_tokens and chance > 0.0 else 0.0
        )
