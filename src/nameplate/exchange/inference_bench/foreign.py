"""What a result file of llm-inference-bench says, as typed values: seconds and tokens as there, absent is None.

Facts about the format: that tool's source, versions 0.4.5 to 0.6.2, and published files.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from msgspec import Struct

from nameplate.verdict.cell import CellStatus

TOOL = "llm-inference-bench"

# What that tool writes in the place of a rate.
OVER_CAPACITY, SKIPPED, LOOPED = -1.0, -2.0, -3.0


class Stats(Struct, frozen=True):
    """Hold one summary there: mean and linear percentiles of the values above zero."""

    avg: float | None = None
    p50: float | None = None
    p90: float | None = None
    p99: float | None = None

    @property
    def known(self) -> bool:
        return any(value is not None for value in (self.avg, self.p50, self.p90, self.p99))


class Sample(Struct, frozen=True, kw_only=True):
    """Hold one request there; `second_gap_s` is second chunk - first, `latency_s` only of completed ones."""

    ttft_s: float | None = None
    second_gap_s: float | None = None
    latency_s: float | None = None
    itl_s: float | None = None
    chunk_gap_s: float | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    per_user: float | None = None
    e2e_per_user: float | None = None
    completed: bool = False


class Cell(Struct, frozen=True, kw_only=True):
    """Hold one row of `results` or `burst_results`."""

    burst: bool
    context: int
    concurrency: int
    target_requests: int | None = None
    rate: float | None = None
    measured_s: float | None = None
    wall_s: float | None = None
    client_tokens: int | None = None
    total_tokens: int | None = None
    server_tokens: int | None = None
    source: str = ""
    ttft: Stats = Stats()
    second_gap: Stats = Stats()
    latency: Stats = Stats()
    itl: Stats = Stats()
    per_user: Stats = Stats()
    e2e_per_user: Stats = Stats()
    chunk_gap: Stats = Stats()
    requests: int | None = None
    completed: int | None = None
    samples: tuple[Sample, ...] = ()
    errors: int | None = None
    failure: str = ""
    state: str = ""
    server_rate: float | None = None
    utilisation: float | None = None
    accept_rate: float | None = None
    running_mean: float | None = None
    running_max: float | None = None
    waiting_mean: float | None = None
    waiting_max: float | None = None
    queue_share: float | None = None
    underfilled: bool = False
    timed_out: bool = False
    warmup_s: float | None = None
    ready: str = ""
    timeout: str = ""
    capacity_limited: bool = False
    looped: bool = False
    looped_streams: int | None = None

    @property
    def first_tokens(self) -> tuple[float, ...]:
        """Return the first-token times of its requests, in order."""
        return tuple(sorted(sample.ttft_s for sample in self.samples if sample.ttft_s is not None))

    @property
    def gauged(self) -> bool:
        """Say whether the server's gauges were seen: that tool writes 0 where they were not."""
        return bool(self.running_max or self.waiting_max)


class PrefillEntry(Struct, frozen=True, kw_only=True):
    """Hold one entry of `prefill`."""

    context: int
    ttft_s: float | None = None
    rate: float | None = None
    prompt_tokens: int | None = None
    samples: int | None = None
    method: str = ""
    server_rate: float | None = None
    server_s: float | None = None
    cached_tokens: int | None = None
    invalid: str = ""


class Stretch(Struct, frozen=True):
    """Hold a mixed-prefill window there; times are relative to the long prompt's arrival."""

    start_s: float
    end_s: float
    tokens: float
    rate: float


class MixedEntry(Struct, frozen=True, kw_only=True):
    """Hold one entry of `mixed_prefill`."""

    context: int
    state: str
    reason: str = ""
    streams: int = 0
    alone_s: float | None = None
    loaded_s: float | None = None
    slowdown: float | None = None
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    before_rate: float | None = None
    before: Stretch | None = None
    during: Stretch | None = None
    after: Stretch | None = None
    slice_s: float | None = None
    timeline: tuple[float, ...] = ()
    estimated: bool = False
    looped: bool = False
    errors: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


class Told(Struct, frozen=True):
    """Hold the status that we gave a cell when we wrote the file ourselves."""

    kind: Literal["prefill", "decode", "burst", "mixed"]
    context_tokens: int
    concurrency: int
    status: CellStatus
    reason: str
    notes: tuple[str, ...] = ()


class Setup(Struct, frozen=True, kw_only=True):
    """Hold what `metadata` says of the run; `unique_percent` is None in versions that do not say."""

    version: str
    generator: str = ""
    engine: str = ""
    model: str = ""
    server: str = ""
    contexts: tuple[int, ...] = ()
    concurrencies: tuple[int, ...] = ()
    duration_s: float | None = None
    max_tokens: int | None = None
    pool_tokens: int | None = None
    unique_percent: float | None = None
    metrics: bool | None = None
    counted: bool = False
    run_burst: bool = False
    prefill: str = ""
    prefill_contexts: tuple[int, ...] = ()
    mixed_contexts: tuple[int, ...] = ()
    mixed_streams: int = 0


class Hardware(Struct, frozen=True, kw_only=True):
    """Hold what the tool saw of the machine that it ran on, which need not be the server's.

    `described` is what a file of ours says of whose machine it is.
    """

    hostname: str = ""
    uname: str = ""
    gpu_query: tuple[tuple[str, ...], int | None, str, str] | None = None
    topology: tuple[tuple[str, ...], int | None, str, str] | None = None
    p2p: Mapping[str, Any] = {}
    described: str = ""


class Document(Struct, frozen=True, kw_only=True):
    """Hold a whole result file; `missing` are the places of fields that its version should have and it lacks."""

    setup: Setup
    cells: tuple[Cell, ...] = ()
    prefill: tuple[PrefillEntry, ...] = ()
    mixed: tuple[MixedEntry, ...] = ()
    events: tuple[str, ...] = ()
    hardware: Hardware | None = None
    told: tuple[Told, ...] = ()
    metadata: Mapping[str, Any] = {}
    missing: tuple[str, ...] = ()
