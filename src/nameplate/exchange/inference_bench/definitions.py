"""What the fields of that tool's files mean there, one sentence each: the labels of an imported result.

From its source (versions 0.4.29 to 0.6.2). `FIELDS` also says where each goes in our result; `docs/exchange.md` is held
against it.
"""

from __future__ import annotations

from msgspec import Struct

from nameplate.exchange.inference_bench.foreign import Document


class Definition(Struct, frozen=True):
    """Hold one field there, what it means there, and which field of a row's values (or of the row) it becomes."""

    field: str
    meaning: str
    ours: str


FIELDS = (
    Definition(
        "aggregate_tps",
        "Output tokens that arrived in the window / the time from readiness to the last of them, in tokens/s; "
        "-1, -2 and -3 stand for over capacity, skipped and looped.",
        "tokens_per_s",
    ),
    Definition(
        "measurement_wall_seconds",
        "Length of the window from readiness to the look that ended it; before 0.4.17 only measurement_seconds, "
        "the time to the last token.",
        "window_s",
    ),
    Definition("client_output_tokens", "Output tokens that the client saw in the window.", "output_tokens"),
    Definition(
        "aggregate_source",
        "Whether tokens are the server's counts in the stream, one a chunk, or the server's metrics page.",
        "estimated",
    ),
    Definition(
        "request_count", "Requests of the cell that got at least one token, warm-up included.", "requests"
    ),
    Definition("completed_request_count", "Requests that ended with [DONE].", "completed"),
    Definition(
        "ttft",
        "Start of a request, connecting included, to its first non-empty content or reasoning; requests start in the "
        "warm-up, so that it is the ramp's; requests without a token are left out.",
        "ttft",
    ),
    Definition(
        "time_to_second_token",
        "Second text chunk - first, not from the start of the request.",
        "second_output",
    ),
    Definition(
        "inter_token_latency",
        "(Last chunk - first) / (output tokens - 1) of each request, warm-up included.",
        "itl",
    ),
    Definition(
        "chunk_inter_token_latency",
        "Mean gap between the chunks of a request; the percentiles are of requests, not of gaps.",
        "chunk_gaps",
    ),
    Definition("output_tps_per_user", "1 / inter_token_latency of each request.", "per_user"),
    Definition("request_latency", "Start to end of completed requests; 0 there is absent.", "e2e"),
    Definition(
        "e2e_output_tps_per_user",
        "Output tokens / request_latency of completed requests; 0 is absent.",
        "e2e_per_user",
    ),
    Definition(
        "server_output_tokens",
        "Growth of the server's token counter over its own, slightly longer window, which is this / "
        "server_gen_throughput; whoever the tokens were for.",
        "counter",
    ),
    Definition(
        "server_spec_accept_rate",
        "Accepted / drafted tokens of the last second of the window, not of all of it.",
        "",
    ),
    Definition(
        "server_utilization",
        "Use of the KV pool at one scrape after the window, not a mean over it.",
        "kv",
    ),
    Definition(
        "max_total_tokens",
        "Size of the KV pool in tokens: from the server, from blocks x block size, or given by hand.",
        "kv",
    ),
    Definition(
        "avg_running_reqs",
        "Mean of the server's running gauge in the window, one sample a second, rounded to a tenth; 0 also where the "
        "gauge was not seen.",
        "running",
    ),
    Definition("max_running_reqs", "Largest sample of the running gauge.", "running"),
    Definition(
        "avg_queue_reqs", "Mean of the server's waiting gauge in the window, rounded to a tenth.", "waiting"
    ),
    Definition("max_queue_reqs", "Largest sample of the waiting gauge.", "waiting"),
    Definition("queue_fraction", "Share of samples in which a request was waiting.", "queue_share"),
    Definition(
        "warmup_duration",
        "Start of the cell to readiness, the request that warms the shared part included.",
        "ready_s",
    ),
    Definition(
        "input_tokens", "The server's prompt tokens of a request, in request_samples.", "prompt_tokens"
    ),
    Definition(
        "prefill.tok_per_sec",
        "Prompt tokens / time to first token, cached tokens not taken off; rounded to whole tokens/s.",
        "prefill",
    ),
    Definition(
        "prefill.ttft_seconds", "Time to first token of the prefill request, rounded to ms.", "prefill"
    ),
    Definition(
        "prefill.server_validation",
        "The server's prompt tokens and prefill time by its counters, where nothing else ran.",
        "prefill",
    ),
    Definition(
        "ttft_alone_s",
        "Time to first token of the long prompt with nothing else running, one request.",
        "alone_ttft_ns",
    ),
    Definition(
        "ttft_under_load_s", "Time to first token of another such prompt beside decoding streams.", "mixed"
    ),
    Definition("slowdown", "ttft_under_load_s / ttft_alone_s.", "slowdown"),
    Definition(
        "bg_tok_s_before", "The streams' output tokens/s before the long prompt arrives.", "tokens_per_s"
    ),
)


_PREFILL = {"prefill"}
_MIXED = {"alone_ttft_ns", "mixed", "slowdown"}
# Summaries that only some runs have: nothing of a window of half a minute need complete.
_COMPLETED = {"e2e", "e2e_per_user"}


def definitions(document: Document) -> dict[str, str]:
    """Return what each field that was used of this file means there."""
    absent: set[str] = set()
    if not document.prefill:
        absent |= _PREFILL
    if not document.mixed:
        absent |= _MIXED
    if not any(cell.latency.known for cell in document.cells):
        absent |= _COMPLETED
    return {
        entry.field: entry.meaning
        for entry in FIELDS
        if entry.ours not in absent and (document.mixed or not entry.field.startswith("bg_"))
    }
