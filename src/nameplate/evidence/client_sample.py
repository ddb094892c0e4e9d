"""The client watched over time: what `client.jsonl` holds, a line each sample."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct


class ClientSample(Struct, frozen=True, kw_only=True):
    """Hold what one process of the client was at a moment; None is not known, or not this process's to know.

    `process` is `load` (with its `worker` number) or `parent`. `t_ns` is monotonic and `wall_ns` the wall clock read
    beside it, so that a step of the wall clock shows; None in simulated time. `cpu_s` is all processor time since the
    process began. Of the load: `started` and `ended` requests of the running stage, `in_flight`, and of those
    sent since the last sample how many (`sent`) and how late (`send_lag_max_ns`, `send_lag_mean_ns`); `unparsed`
    pieces of answers and `queued_blocks` of evidence wait for their turn. Of the parent: `prompts_ahead` are written
    and not yet started. `reads_bytes` is how large the compressed raw reads are.
    """

    t_ns: int
    wall_ns: int | None = None
    process: Literal["load", "parent"]
    worker: int | None = None
    rss_bytes: int | None = None
    descriptors: int | None = None
    cpu_s: float | None = None
    in_flight: int | None = None
    started: int | None = None
    ended: int | None = None
    sent: int | None = None
    send_lag_max_ns: int | None = None
    send_lag_mean_ns: float | None = None
    unparsed: int | None = None
    queued_blocks: int | None = None
    reads_bytes: int | None = None
    prompts_ahead: int | None = None
    disk_free_bytes: int | None = None
