"""One window of a soak: what was sent, what came, and what server and client said meanwhile."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from nameplate.statistics.percentile import Distribution


class Spread(Struct, frozen=True):
    """Hold mean, smallest and largest of n samples."""

    n: int
    mean: float
    min: float
    max: float


class ServerWindow(Struct, frozen=True, kw_only=True):
    """Hold the server's own view of a window; what it does not tell is null.

    Gauges are over the samples within the window. Counters are the growth between consecutive readings of one server
    process, each counted where the later reading lies; what a restart hides is not counted. Mean times are of the
    requests that the server *finished* in the window, since that is when it observes them, over `timed` requests.
    `cache_hits` are prompt tokens from its cache.
    """

    scrapes: int
    scrape_failures: int
    running: Spread | None = None
    waiting: Spread | None = None
    kv_usage: Spread | None = None
    preemptions: int | None = None
    requests: int | None = None
    prompt_tokens: int | None = None
    output_tokens: int | None = None
    cache_hits: int | None = None
    timed: int | None = None
    queue_mean_s: float | None = None
    prefill_mean_s: float | None = None


class ClientWindow(Struct, frozen=True, kw_only=True):
    """Hold the client's own state in a window: the sum over its processes at each moment, null where not known.

    `backlog` are pieces of answers that waited to be parsed, `queued_blocks` evidence that waited for the disk.
    """

    samples: int
    memory_bytes: Spread | None = None
    descriptors: Spread | None = None
    backlog: Spread | None = None
    queued_blocks: Spread | None = None


class WindowResult(Struct, frozen=True, kw_only=True):
    """Hold one window, [begin, end) of its segment's monotonic time; `begin_wall_ns` ties it to wall time.

    What puts a request into a window: `sent`, `send_lag` its send; `ttft` and `ttft_from_schedule` and `input_tokens`
    its first output; `itl`, `e2e`, `completed`, `failed`, `cancelled` its end. `output_tokens` are those that arrived
    in the window, whichever request they belong to, and what became of it later; `estimated` where some were spread
    evenly over their events. Distributions are of what happened: a request that is still open is in none of them.

    `outstanding` is the client's own count, rebuilt from rows: sent and not ended, at the end of each step, with its
    mean over time. `observed_ns` is how much of the window was observed, and what rates divide by. `partial` says that
    this is not all of it, `notes` why, and what else makes it incomparable; `part` is the server's part that it lies
    in, null where it touches several or a time without server.
    """

    number: int
    begin_ns: int
    end_ns: int
    observed_ns: int
    begin_wall_ns: int
    load: Literal["submission", "drain", "both"]
    part: int | None
    partial: bool
    notes: tuple[str, ...]
    sent: int
    completed: int
    failed: dict[str, int]
    cancelled: int
    output_tokens: float
    estimated: bool
    output_tokens_per_s: float | None
    input_tokens: int
    input_tokens_per_s: float | None
    requests_per_s: float | None
    ttft: Distribution
    ttft_from_schedule: Distribution
    itl: Distribution
    e2e: Distribution
    send_lag: Distribution
    outstanding: Spread | None
    server: ServerWindow
    client: ClientWindow
