"""What a simulated engine is made of: step costs, scheduler, KV pool, limits."""

import math
from functools import lru_cache
from random import Random
from typing import Literal

import msgspec

Scheduler = Literal["mixed", "prefill_first"]


class EngineParameters(msgspec.Struct, frozen=True, kw_only=True):
    """State the cost model and the limits of one engine.

    A step lasts `step_ns`, plus `prefill_step_ns` if it prefills at all, plus `decode_step_ns` if it decodes
    at all, plus per prefilled token `prefill_token_ns + prefill_context_ns x (tokens before it)`, plus
    `decode_sequence_ns` a decoding sequence and `resident_token_ns` a token of resident KV.

    `scheduler`: "mixed" shares one token budget between decodes and prefill chunks in each step (vLLM's
    chunked prefill); "prefill_first" lets any admissible prompt go before all decodes (SGLang's default).
    `decode_graph_sizes`: batch sizes that were captured as graphs; a decode batch is padded to the next one.
    `intake_request_ns` and `intake_token_ns`: what a request and each token of its prompt cost the one API server
    in front of the engine (HTTP, tokenising); it takes requests in one after another, and until then the engine
    neither runs nor counts them. `kv_claim_tokens`: what the server says its KV pool holds, where that is not true.
    `noise` is the relative standard deviation of each step's length for itself; `spell_noise` that of the logarithm of
    a factor that all steps within a spell of `spell_ns` share, a function of seed and time: a machine that is a little
    faster now than a minute later.
    Raises ValueError for values that no server could have.
    """

    step_ns: int = 0
    prefill_step_ns: int = 0
    decode_step_ns: int = 0
    prefill_token_ns: float = 0.0
    prefill_context_ns: float = 0.0
    decode_sequence_ns: float = 0.0
    resident_token_ns: float = 0.0
    decode_graph_sizes: tuple[int, ...] = ()
    intake_request_ns: int = 0
    intake_token_ns: float = 0.0
    scheduler: Scheduler = "mixed"
    chunk_tokens: int = 2048
    kv_tokens: int = 65_536
    kv_claim_tokens: int | None = None
    block_tokens: int = 16
    running_limit_requested: int = 256
    running_limit: int = 256
    context_tokens: int = 32_768
    prefix_cache: bool = True
    draft_tokens: int = 0
    acceptance: float = 0.0
    acceptance_spread: float = 0.0
    noise: float = 0.0
    spell_noise: float = 0.0
    spell_ns: int = 15 * 10**9
    seed: int = 0

    def __post_init__(self) -> None:
        if min(self.chunk_tokens, self.block_tokens, self.running_limit, self.context_tokens) < 1:
            raise ValueError(
                "chunk_tokens, block_tokens, running_limit and context_tokens must be at least 1"
            )
        if self.kv_tokens < self.block_tokens:
            raise ValueError("kv_tokens must hold at least one block")
        if self.context_tokens > self.blocks * self.block_tokens:
            raise ValueError("the KV pool must hold one request of context_tokens, or it could never finish")
        if self.chunk_tokens < 1 + self.draft_tokens:
            raise ValueError("chunk_tokens must hold one decode step, drafts included")
        if not 0.0 <= self.acceptance < 1.0 or not 0.0 <= self.acceptance_spread < 1.0 or self.noise < 0.0:
            raise ValueError("acceptance and its spread lie in [0, 1), noise is not negative")
        if self.spell_noise < 0.0 or self.spell_ns < 1:
            raise ValueError("a spell lasts some time, and its noise is not negative")
        if self.intake_request_ns < 0 or self.intake_token_ns < 0.0:
            raise ValueError("taking a request in cannot end before it began")

    def spell(self, now_ns: int) -> float:
        """Return the factor that all steps of this moment's spell share; its median is one."""
        if not self.spell_noise:
            return 1.0
        return _spell(self.seed, now_ns // self.spell_ns, self.spell_noise)

    @property
    def blocks(self) -> int:
        """Count the blocks of the KV pool."""
        return self.kv_tokens // self.block_tokens

    @property
    def claimed_blocks(self) -> int:
        """Count the blocks that the server says its KV pool has."""
        return self.blocks if self.kv_claim_tokens is None else self.kv_claim_tokens // self.block_tokens


@lru_cache(maxsize=64)
def _spell(seed: int, number: int, noise: float) -> float:
    return math.exp(Random(f"spell {number} of {seed}").gauss(0.0, noise))
