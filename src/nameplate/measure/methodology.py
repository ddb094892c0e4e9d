"""What each measure of a speed result is: the text that goes with the numbers."""

from __future__ import annotations

from nameplate.contract.matrix import LIMIT_MARGIN_TOKENS, READY_MARGIN_FACTOR, READY_MARGIN_NS, Matrix
from nameplate.measure.speed_result import Method


def methods(matrix: Matrix) -> tuple[Method, ...]:
    """Return the methodology of a study of this matrix."""
    window, stable = f"{matrix.window_ns / 1e9:g} s", f"{matrix.stable_ns / 1e9:g} s"
    rule = matrix.prefill
    return (
        Method(
            "prefill rate",
            "tokens/s",
            "(prompt tokens - cached tokens) / TTFT of one cold request alone",
            f"median, range and n of {rule.least} to {rule.most} requests with different prompts; sampling ends when "
            f"(max - min) / median is at most {rule.spread:.0%}, or after {rule.budget_ns / 1e9:g} s",
        ),
        Method(
            "total rate",
            "tokens/s",
            f"output tokens that arrived in the window / {window}",
            "tokens of every stream, whether its request ended or not, by the server's continuous usage; where it does "
            "not count along, the number is estimated: as many tokens a chunk as in answers that ended, else as the "
            "server's own counter grew, else one",
        ),
        Method(
            "window",
            "s",
            f"a fixed {window} after readiness",
            f"ready: for {stable} on end the server runs exactly the streams, none waits, and every stream has "
            "produced output; where the server does not tell, every stream's output alone",
        ),
        Method(
            "ready deadline",
            "s",
            f"C x cold TTFT x unique share x {READY_MARGIN_FACTOR:g} + {READY_MARGIN_NS / 1e9:g} s",
            "with the TTFT measured alone at this context, or as --ready-timeout says",
        ),
        Method(
            "ITL",
            "ns",
            "(last - first chunk in the window) / tokens after the first chunk",
            "one value for each request's part in the window, to which a silence at the window's edge belongs where it "
            "is longer than every gap in it; per-user rate is 1 / ITL",
        ),
        Method(
            "chunk gap",
            "ns",
            "time between consecutive chunks with output, the second in the window",
            "a silence that outlasts the window, longer than every gap of its request in it, stands at its worst",
        ),
        Method(
            "TTFT of the ramp",
            "ns",
            "first output - sent, of each stream's first request",
            "cold or warm by the server's cached-token counts; in a ramp of C prompts it holds the wait for the others",
        ),
        Method("time to second token", "ns", "second output event - sent, of each stream's first request"),
        Method(
            "E2E rate per user",
            "tokens/s",
            "output tokens / (last output - sent), of requests ended in it",
        ),
        Method(
            "queue share",
            "share",
            "samples of the server's gauges in the window with waiting requests / all samples",
            "at least two samples a second are asked for; a failed scrape is no sample",
        ),
        Method(
            "speculative acceptance",
            "share",
            "accepted / drafted tokens",
            "growth of the server's counters between the first and the last sample in the window",
        ),
        Method(
            "KV claim",
            "tokens",
            "shared prefix once + each running request's own prompt and output so far in whole blocks",
            "mean over the server's samples in the window; held: its mean KV use at these x pool, by its own count",
        ),
        Method(
            "looped",
            "share",
            "streams whose text ends in at least four whole cycles and 4,096 characters of repetition / streams",
            f"periods up to 32,768 characters; more than {matrix.loop_limit:.0%} void the cell",
        ),
        Method(
            "burst rate",
            "tokens/s",
            "output tokens / (first request sent to last request ended)",
            "one wave with admission, queueing and cache behaviour included",
        ),
        Method(
            "mixed prefill slowdown",
            "ratio",
            "TTFT of one cold prompt while streams decode / its TTFT alone",
            "before, during and after are the streams' rates around it",
        ),
        Method(
            "longest context",
            "tokens",
            f"context limit - output - {LIMIT_MARGIN_TOKENS:,}",
            "in multiples of 1,024; k is 1,024 everywhere",
        ),
        Method(
            "energy a token", "J", "energy of all of the server's GPUs in the window / output tokens in it"
        ),
    )
