"""What each number means, in the words of the project's definitions, beside the numbers that use it."""

from __future__ import annotations

from collections.abc import Iterable

import htpy as h

DEFINITIONS: dict[str, str] = {
    "TTFT": "Time to first token: from just before the first byte of the request is written on an open "
    "connection to the "
    "first event that carries output (content, reasoning or tool-call text). An empty or role-only event "
    "is not output.",
    "TTFT from schedule": "Time to first token counted from when the load plan wanted the request to "
    "start: the headline of "
    "an open loop, where a late send is the client's own waiting.",
    "ITL": "Inter-token latency of a request: (last output - first output) / (output tokens - tokens of "
    "the first event). "
    "One value a request.",
    "TPOT": "Time per output token, the common definition: (E2E - TTFT) / (output tokens - 1).",
    "E2E": "End-to-end latency: from sending to the last output.",
    "chunk gap": "Time between consecutive events that carry output. Chunks are not tokens.",
    "longest gap": "The largest chunk gap of a request: the stall that a reader sees.",
    "output tok/s": "Output tokens that the server counted, whole run: all output tokens / first sent to "
    "last end. Of the "
    "whole server, never of one user.",
    "total tok/s": "Of decode: output tokens of all streams that arrived in the fixed window / its length. Of a burst: "
    "all output tokens / first sent to last ended. Of a prefill: computed prompt tokens / TTFT.",
    "tok/s per user": "1 / ITL of a request; never the aggregate divided by a configured concurrency.",
    "req/s": "Requests of the whole run / first sent to last end.",
    "send lag": "Sent - scheduled: the client's own lateness.",
    "prefill tok/s": "(Prompt tokens - cached tokens) / TTFT at concurrency one, from cold prompts. The "
    "nominal rate is the "
    "asked input length / median TTFT, and is labelled.",
    "goodput": "Requests that met every SLO, a second.",
    "opening": "The first request of every slot: in a closed loop a burst of C prompts that arrive together.",
    "steady": "Every measured request after the first of its slot.",
    "pNN": "Percentile, linear between closest ranks, rank p(n-1), with its n. Below n = 1/(1-p) it is "
    "marked unsupported. A "
    "request that never came to a value counts as infinite; it is not left out.",
    "certified": "One-sided binomial upper bound on the share of requests over the limit, at the "
    "confidence that is stated. "
    "Three passing trials are an operational rule; this is what the sample carries in statistics.",
    "rated": "The highest level at which every confirmation trial passed, with every level above it "
    "failing. Noise is never "
    "rounded upwards.",
    "operate at": "A policy, by default one step below the rated level. It never stands in its place.",
    "effective concurrency": "Time average of the requests really in flight, rebuilt from the records.",
    "running, waiting": "The server's own gauges: how many requests it works on, and how many it holds back.",
    "KV": "Share of the server's pool for key-value cache that is in use.",
    "cold": "Every prompt is unique from its first token, or the prefix cache was flushed with proof.",
    "knee": "Where doubling the load adds less than 10% output: from there on clients mainly wait.",
    "drift": "A trend or step of the windows' medians, tested with allowance for dependence between windows.",
}


def term(name: str, said: str | None = None) -> h.Element:
    """Return a term with its meaning on hover and for screen readers; KeyError for one that is not defined."""
    return h.abbr(title=DEFINITIONS[name])[said or name]


def glossary(names: Iterable[str]) -> h.Element:
    """Return the meanings of these terms as a list, each once."""
    entries = [(h.dt[name], h.dd[DEFINITIONS[name]]) for name in dict.fromkeys(names)]
    return h.section(aria_label="Definitions")[
        h.h2(id="definitions")["What each number means"], h.dl(".facts")[entries]
    ]
