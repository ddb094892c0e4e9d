"""A small server for speed matrices, and what can be wrong with one: each preset shows one status of a cell."""

from msgspec import structs

from nameplate.sim.parameters import EngineParameters
from nameplate.sim.preset import Neighbour, Preset

SECOND_NS = 1_000_000_000

# Invented. It drafts seven tokens at 85% and so gives (1 - 0.85^8) / 0.15 = 4.85 tokens a step: chunks are not tokens,
# and a window of 30 s is some 300 chunks a stream, which simulate quickly. One request alone gets 48 tok/s, 128 of 8K
# get 38 each, so that 4,096 characters of text come within 25 s and a loop can be told. A step prefills up to 4,096
# tokens in 0.08 s on top of its 0.1 s: a prompt of 8K alone is read in 0.4 s, 128 of 16K in some two minutes. The
# context limit leaves 27K for the longest prompt with 4,096 of output and 1,024 to spare, and refuses 32K and more;
# the pool holds 128 of those with their outputs.
_ENGINE = EngineParameters(
    scheduler="mixed",
    chunk_tokens=4_096,
    step_ns=100_000_000,
    prefill_token_ns=20_000.0,
    decode_sequence_ns=200_000.0,
    resident_token_ns=3.0,
    kv_tokens=128 * 32_768,
    block_tokens=16,
    running_limit_requested=256,
    running_limit=256,
    context_tokens=32_768,
    draft_tokens=7,
    acceptance=0.85,
)

MATRIX = Preset(
    name="matrix",
    about="a small server for speed matrices: every cell up to 27K x 128 is valid",
    model="matrix",
    template_tokens=30,
    engine=_ENGINE,
)


def _trouble(name: str, about: str, **changes: object) -> Preset:
    """Return the small server with some parameters changed."""
    return structs.replace(
        MATRIX, name=f"matrix-{name}", about=about, engine=structs.replace(_ENGINE, **changes)
    )


SMALL_KV = _trouble(
    "small-kv",
    "over capacity: 8K x 32, 16K x 16 and 27K x 8 exceed the KV pool; half of each fits with its output",
    kv_tokens=204_800,
)
PREEMPT = _trouble(
    "preempt",
    "preemption: the prompts of 8K x 16 and 16K x 8 fit the KV pool, their outputs do not: streams are lost",
    # 8K x 16 with its template is 131,552 tokens: some 8,448 remain, 528 of output a stream. Fifteen drafts at 95% give
    # 11.2 tokens a step, so that takes five seconds. From then on one request after another is thrown out, and waits
    # for room for all of itself: after 30 s 11 of 16 run, or 6 of 8.
    kv_tokens=140_000,
    draft_tokens=15,
    acceptance=0.95,
)
THRASH = _trouble(
    "thrash",
    "recompute thrash: as preempt, and answers end so soon that who was thrown out comes back, again and again",
    # Steps are half as long: an answer of 4,096 ends after 20 s or so and makes room for the first in line, who
    # prefills all it had and is the next to be thrown out. 8K x 16 is never ready.
    step_ns=50_000_000,
    kv_tokens=140_000,
    draft_tokens=15,
    acceptance=0.95,
)
STARVED = _trouble(
    "starved",
    "prefill starvation: decodes leave the last of 16 prompts 8 tokens a step, and more find none: not ready",
    # A decode takes eight tokens of a step's budget, its own and seven drafts, before any prompt gets one. Alone a
    # prompt gets 128 tokens a step, beside k streams 128 - 8k: sixteen prompts of 8K take 1,024 x (1 + 1/2 + ... +
    # 1/16) = 3,462 steps, 3.4 times what they take one by one, and answers are long enough (4,096 / 1.11 steps) that
    # none ends before. With more than 16 streams the first 16 leave nothing to the others until they end.
    chunk_tokens=128,
    acceptance=0.1,
)
KV_CLAIM = _trouble(
    "kv-claim",
    "a KV claim that is contradicted: 2.2 times what the pool holds, so 8K x 32 is planned and never runs whole",
    # A published machine claimed 1,515,055 tokens, and 9.7 requests of 64,591 tokens made 93% of its pool: 2.2 times.
    kv_tokens=204_800,
    kv_claim_tokens=450_560,
)
SLOW_RAMP = _trouble(
    "slow-ramp",
    "a slow ramp: one request a second is taken in, so readiness comes late, and with 128 streams never",
    intake_request_ns=SECOND_NS,
)
RUNNING_LIMIT = _trouble("running-limit", "at most 12 requests run at once, more wait", running_limit=12)
NO_CACHE = _trouble(
    "no-cache", "no prefix cache: a stream that starts again prefills inside the window", prefix_cache=False
)
TRAFFIC = structs.replace(
    MATRIX,
    name="matrix-traffic",
    about="extra traffic: 15 s after every 8th request somebody else's runs for some 10 s",
    # At some 40 tok/s 400 tokens take ten seconds, a third of a window.
    neighbour=Neighbour(every=8, delay_ns=15 * SECOND_NS, prompt_tokens=2_048, output_tokens=400),
)
LOOP = structs.replace(
    MATRIX,
    name="matrix-loop",
    about="looping text: every answer repeats the same five words",
    faults=("loop",),
)
LOOP_SOME = structs.replace(
    MATRIX,
    name="matrix-loop-some",
    about="looping text in every eighth answer",
    faults=("loop@every 8",),
)
LOOP_FEW = structs.replace(
    MATRIX,
    name="matrix-loop-few",
    about="looping text in every 40th answer: few enough of 32 or more streams, too many of 16",
    faults=("loop@every 40",),
)

TROUBLES = (
    SMALL_KV, PREEMPT, THRASH, STARVED, KV_CLAIM, SLOW_RAMP, RUNNING_LIMIT, NO_CACHE,
    TRAFFIC, LOOP, LOOP_SOME, LOOP_FEW,
)  # fmt: skip
