"""A server's state at one moment, read from its metrics page; what it does not tell is None, never zero."""

from __future__ import annotations

from msgspec import Struct, structs


class Histogram(Struct, frozen=True):
    """Hold one latency histogram: `buckets` are (upper edge in seconds, cumulative count), ascending, finite."""

    sum_s: float
    count: int
    buckets: tuple[tuple[float, int], ...] = ()


class Histograms(Struct, frozen=True):
    """Hold the histograms of one reading, buckets included; None where the server has none of that meaning."""

    queue: Histogram | None = None
    prefill: Histogram | None = None
    decode: Histogram | None = None
    ttft: Histogram | None = None
    e2e: Histogram | None = None


class Reading(Struct, frozen=True):
    """Hold what a scrape and a line of `server.jsonl` have in common.

    Counters are cumulative since the server's start, tokens are tokens. `t_ns` is CLOCK_MONOTONIC when the page was
    whole. `kv_usage_*` run from 0 to 1. `cached_tokens_total` are prompt tokens answered from the prefix cache.
    `finished` counts requests by the server's own finish reason. With `error` everything else is unknown.
    """

    t_ns: int
    running: int | None = None
    waiting: int | None = None
    kv_usage_mean: float | None = None
    kv_usage_max: float | None = None
    preemptions_total: int | None = None
    prompt_tokens_total: int | None = None
    output_tokens_total: int | None = None
    cached_tokens_total: int | None = None
    cache_query_tokens_total: int | None = None
    cache_hit_tokens_total: int | None = None
    spec_drafts_total: int | None = None
    spec_draft_tokens_total: int | None = None
    spec_accepted_tokens_total: int | None = None
    spec_accept_length: float | None = None
    finished: tuple[tuple[str, int], ...] | None = None
    process_start_time_s: float | None = None
    error: str | None = None


class ServerState(Reading, frozen=True):
    """Hold what one scrape said; `missing` names the meanings that this page lacks."""

    kv_tokens: int | None = None
    block_size_tokens: int | None = None
    prefix_caching: bool | None = None
    queue: Histogram | None = None
    prefill: Histogram | None = None
    decode: Histogram | None = None
    ttft: Histogram | None = None
    e2e: Histogram | None = None
    missing: tuple[str, ...] = ()

    @property
    def idle(self) -> bool | None:
        """Say whether nothing runs or waits; None where the server does not tell."""
        if self.running is None:
            return None
        return self.running == 0 and not self.waiting

    @property
    def histograms(self) -> Histograms:
        return Histograms(self.queue, self.prefill, self.decode, self.ttft, self.e2e)

    @property
    def cache_hits(self) -> int | None:
        """Return the counter of prompt tokens that came from the cache, whichever this engine has."""
        return (
            self.cached_tokens_total if self.cached_tokens_total is not None else self.cache_hit_tokens_total
        )

    @property
    def finished_total(self) -> int | None:
        return None if self.finished is None else sum(count for _, count in self.finished)


class ServerSample(Reading, frozen=True):
    """Hold one line of `server.jsonl`: the state over time without the histograms' buckets.

    `queue_s`, ... are (sum in seconds, count) since the server's start. A failed scrape is a row with `error`.
    """

    queue_s: tuple[float, int] | None = None
    prefill_s: tuple[float, int] | None = None
    decode_s: tuple[float, int] | None = None
    ttft_s: tuple[float, int] | None = None
    e2e_s: tuple[float, int] | None = None
    scrape_ns: int | None = None

    @classmethod
    def of(cls, state: ServerState, scrape_ns: int | None = None) -> ServerSample:
        """Return one state's line; `scrape_ns` is how long the page took."""
        values = structs.asdict(state)
        sums = {
            f"{name}_s": None if (h := values[name]) is None else (h.sum_s, h.count)
            for name in ("queue", "prefill", "decode", "ttft", "e2e")
        }
        kept = {name: values[name] for name in cls.__struct_fields__ if name in values}
        return cls(**{**kept, **sums, "scrape_ns": scrape_ns})
