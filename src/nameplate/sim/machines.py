"""Published machines as models. Every constant says what it was derived from."""

from nameplate.sim.parameters import EngineParameters
from nameplate.sim.preset import Preset

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

# What was published of another (one NVIDIA H200 NVL, vLLM 0.30.0, a distilled Qwen 9B in BF16): a matrix by contexts
# and simultaneous requests, most of whose cells were discarded. Eight gave a rate, seven contexts a prefill time:
#   decode: a step is the inverse of one request's tok/s where few run, else C / total tok/s, in ms:
#       context, C   8K, 1   16K, 1   32K, 1   64K, 2   64K, 4   128K, 16   32K, 64   16K, 128
#       published     6.15     6.22     6.35     7.15     8.00      20.95     23.22      26.72
#       model         6.18     6.23     6.34     7.06     8.05      20.89     23.37      26.63
#     the model is the least-squares fit (of relative errors) of a constant, a part for each sequence, and a part for
#     each token of resident KV, which is C x (prompt + output so far; the window's middle is some 20 s after the start)
#   KV pool: not published. 6.8 ns a token at the 4.8 TB/s that the card's maker states are 32.7 KB a token; 0.88 of
#     141 GB less 18 GB of weights (9 billion in BF16) are 106 GB, so at most 3.2 million tokens, and less what
#     activations and graphs take. The cells say between 2,621,440 (16K x 128 ran with its outputs and was not
#     preempted) and 4,112,384 (251K x 16 was over capacity): 3,000 x 1,024 lies well inside
#   prompts: TTFT x tok/s, both published, is the prompt: 8,188, 16,278, 32,298, 64,350, 128,729, 252,455, 257,850
#   taking in: with all prompts cached, the median first token came after 1.489 s (16K x 128), 1.180 s (32K x 64) and
#     1.632 s (128K x 16). Half of C prompts wait before it, 1.04 million tokens each time: 1.1 to 1.6 us a token, on
#     average 1.4, one after another: the API server's tokenizer
#   a prefill step: cached prompts alone took 66, 92 and 120 ms at 8K, 16K and 32K; less their taking in (11, 23 and
#     45 ms) that is 55, 69 and 75 ms, of which a decode step's constant is 6: 60 ms on average, whatever it holds
#   prefill: what is left of the TTFTs, as a part for each token and one for each token before it, by least squares
#     of relative errors. The published tok/s rise from 15.4K (16K) to 25K (64K) and fall to 17.5K (251K), which no sum
#     of such parts does: the residuals below are the price of two parameters
#       context        8K      16K     32K     64K    128K    251K    256K
#       published, s  0.515   1.057   1.538   2.574   5.646   14.43   14.41
#       model, s      0.401    0.800   1.594   3.201   6.490   13.03   13.35
#   chunks of 8,192 tokens and up to 1,024 sequences are vLLM's defaults on a card of this size; neither was published,
#     nor was the template: a head and the marks around one message are taken to be a dozen tokens
H200 = Preset(
    name="h200",
    about="one NVIDIA H200 with vLLM and a 9B model in BF16, from a published speed matrix",
    model="MiMo-V2.6-Distill-Qwen-9B",
    template_tokens=12,
    engine=EngineParameters(
        scheduler="mixed",
        chunk_tokens=8_192,
        intake_token_ns=1_400.0,
        step_ns=6_054_000,
        prefill_step_ns=60_000_000,
        prefill_token_ns=39_450.0,
        prefill_context_ns=0.0203,
        decode_sequence_ns=44_900.0,
        resident_token_ns=6.803,
        kv_tokens=3_000 * 1_024,
        block_tokens=16,
        running_limit_requested=1_024,
        running_limit=1_024,
        context_tokens=262_144,
    ),
)

# What was published of a third (vLLM, DeepSeek-V4-Flash with drafts; the file names a graphics card, but that is the
# client's machine): a matrix whose prompts were prefilled one after another until the deadline of 300 s passed.
#   decode: chunks of one request alone came every 60.6 ms and held 60.57 / 22.85 = 2.65 tokens; some 55% of drafts were
#     accepted, so 1.65 of three; p + p^2 + p^3 = 1.65 gives p = 0.73. At 8K 2, 4, 8 and 12 requests got a chunk every
#     78.8, 107.9, 164.8 and 215.5 ms: (215.5 - 60.6) / 11 = 14.1 ms for each further request, within 5% of the others
#   128K alone took 62.4 ms: (62.4 - 60.6) / 121,000 tokens more = 15 ns a token of KV
#   chunks: beside a prefill they came every 4.32 s (64K x 12) and 4.43 s (128K x 8 and x 12). A prompt's first token
#     came 17.2 s (32,374 tokens), 34.5 s (64,591) or 72.5 s (129,010) after the one before it: 7.9 chunks of 8,192 take
#     34.1 s. By least squares of relative errors 0.517 ms a token and 0.66 ns for each token before it: 17.1, 34.8
#     and 72.2 s
#   KV: 1,515,055 tokens claimed; 9.7 running requests of 64,591 were 92.6% of the pool, so it holds 676,000. Ten of
#     64K and five of 128K fit, as were seen running
# Not published, and of no matter here: context limit (above 128K and its output), running limit, template.
DSPARK = Preset(
    name="dspark",
    about="a published machine that was not ready at 64K x 12: slow prefill, and a KV claim over twice its pool",
    model="deepseek-v4-flash-dspark",
    template_tokens=12,
    engine=EngineParameters(
        scheduler="mixed",
        chunk_tokens=8_192,
        decode_step_ns=46_500_000,
        decode_sequence_ns=14_100_000.0,
        resident_token_ns=15.0,
        prefill_token_ns=517_000.0,
        prefill_context_ns=0.66,
        kv_tokens=676_000,
        kv_claim_tokens=1_515_055,
        block_tokens=16,
        context_tokens=163_840,
        draft_tokens=3,
        acceptance=0.73,
    ),
)
