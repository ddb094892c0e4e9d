"""Machines to simulate. Every constant says where it comes from."""

import msgspec

from nameplate.sim.parameters import EngineParameters


class Preset(msgspec.Struct, frozen=True, kw_only=True):
    """Name one simulated machine: what it serves and how fast it is.

    `template_tokens` is what the chat template adds to one user message.
    """

    name: str
    about: str
    model: str
    template_tokens: int
    engine: EngineParameters


DEMO = Preset(
    name="demo",
    about="a small fast server for demonstrations: its boundary is found live in about a minute",
    model="demo",
    # With blocks of 16 the head of 24 tokens (30 less the six around the message) fills one block that all prompts
    # share, as real templates do: the template floor is not zero.
    template_tokens=30,
    # Invented, so that 512/64 alone takes 0.2 s, and a p95 TTFT of 0.25 s lies midway between two levels, 9 and 10.
    # A step takes one such prompt and up to 48 decodes, and lasts some 40 ms with it: in an opening burst of C the
    # k-th first token comes after k x 40 ms, and of 64 requests the p95 is about that of k = C - 3.
    engine=EngineParameters(
        scheduler="mixed",
        step_ns=2_500_000,
        prefill_token_ns=67_500.0,
        decode_sequence_ns=100_000.0,
        resident_token_ns=20.0,
        chunk_tokens=560,
        kv_tokens=65_536,
        block_tokens=16,
        running_limit_requested=32,
        running_limit=32,
        context_tokens=8_192,
        noise=0.01,
    ),
)

# What was published of one machine (four Intel Arc Pro B70, SGLang, Qwen3.8-27B with its MTP head), and what follows:
#   alone, 8,245 prompt tokens: first token after 2.133 s
#   alone, prompt cached but for the last page's rest (53 tokens at 64 a page): 0.161 s
#     a prefill step of 53 tokens lasts 0.161 s; 8,245 tokens are chunks of 4,096, 4,096 and 53, so a full chunk lasts
#     (2.133 - 0.161) / 2 = 0.986 s; so a token costs (0.986 - 0.161) / (4,096 - 53) = 0.2041 ms, and a prefill step
#     0.161 - 53 x 0.0002041 = 0.1502 s whatever it holds (its graphs are disabled: every kernel is launched by hand)
#   65,536 output tokens came in 15,838 chunks: 4.138 tokens a step, the one a step always gives and 3.138 of the 7
#     drafted; runs of accepted drafts being geometric, sum(p^i, i = 1..7) = 3.138 gives p = 0.798 for all
#   texts are not alike: seven at a time, ITL p95 was 1.24 to 1.57 times its p50 over the requests (1.38 on average).
#     Waiting for others' prompts explains 1.16; p spread evenly by 0.12 around 0.802 (4.138 as before) gives 1.37
#   alone, 9.619 ms an output token: a decode step of one sequence lasts 4.138 x 9.619 = 39.80 ms
#   four at a time: 178.5 output tokens/s, so four answers of 1,024 in 22.95 s, of which four prefills take 8.53 s;
#     14.42 s for 1,024 / 4.138 = 247.5 steps are 58.3 ms a step of four: (58.3 - 39.8) / 3 = 6.16 ms a sequence
#     (each sequence is verified eight wide, so a batch is eight times as many tokens: this is why it costs so much)
#   three trials of one level agreed to 0.1% in a p95 that is the sum of some nine prefill steps: 0.3% a step
#   decode graphs are captured for 1, 2, 4 and 8 sequences: a batch runs as the next larger one
_B70_PREFILL_TOKEN_NS = (986_000_000 - 161_000_000) / (4_096 - 53)
_B70_DECODE_SEQUENCE_NS = 6_160_000.0

B70X4 = Preset(
    name="b70x4",
    about="four Intel Arc Pro B70 with SGLang and Qwen3.8-27B (MTP), from published single-user figures",
    model="Qwen3.8-27B",
    # 8,192 asked, 8,243 to 8,246 counted: 51 to 54, of which up to 3 are the client's own rounding.
    template_tokens=51,
    engine=EngineParameters(
        # SGLang without mixed chunks: a prompt that fits goes before all decodes, and the rest of a chunk of 4,096
        # is filled with the next prompt.
        scheduler="prefill_first",
        chunk_tokens=4_096,
        prefill_step_ns=round(161_000_000 - 53 * _B70_PREFILL_TOKEN_NS),
        prefill_token_ns=_B70_PREFILL_TOKEN_NS,
        decode_step_ns=round(39_800_000 - _B70_DECODE_SEQUENCE_NS),
        decode_sequence_ns=_B70_DECODE_SEQUENCE_NS,
        decode_graph_sizes=(1, 2, 4, 8),
        kv_tokens=262_144,
        block_tokens=64,
        running_limit_requested=64,
        running_limit=9,
        context_tokens=262_144,
        draft_tokens=7,
        acceptance=0.802,
        acceptance_spread=0.12,
        noise=0.003,
    ),
)

PRESETS: dict[str, Preset] = {preset.name: preset for preset in (DEMO, B70X4)}


def find_preset(name: str) -> Preset:
    """Return the preset of that name; raise ValueError naming those that exist."""
    try:
        return PRESETS[name]
    except KeyError:
        raise ValueError(f"unknown preset {name!r}: choose one of {', '.join(PRESETS)}") from None
