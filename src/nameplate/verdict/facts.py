"""The facts of one trial that its gates look at."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct, field

from nameplate.contract.identity import IdentityChange
from nameplate.verdict.sustained import QueueFacts


class PromptRange(Struct, frozen=True):
    """Hold the smallest and largest count the server gave, and how many requests it gave one for."""

    low: int
    high: int
    known: int


class CounterCheck(Struct, frozen=True):
    """Hold one server counter's growth from idle to idle beside our own count; None where it is unknown."""

    name: Literal["requests", "output_tokens", "prompt_tokens"]
    server: int | None
    ours: int | None


class LoopCount(Struct, frozen=True):
    """Count the ok answers that are long enough to be judged, those of them that end in a loop, and those unknown."""

    judged: int
    looped: int
    unknown: int


class TrialFacts(Struct, frozen=True, kw_only=True):
    """Hold what the gates judge, as counted from evidence.

    Counts are of measured requests unless they say otherwise; None is unknown, never zero. `ok`, `failed`,
    `cancelled` and `unfinished` add up to `sent` in sound evidence, and `planned` is what the plan asked for; with
    `cut_as_planned` the load is bounded by time or by what was seen, and a request that was cut then is no fault.

    `load_failures` counts by gate name what the load broke (`gate.LOAD`), `bad_requests` answers that say the
    request itself is wrong. `wrong_output_length`, `wrong_finish`, `empty_outputs` are of ok requests;
    `output_length_unknown` and `finish_unknown` are those that the server did not tell. `prompt_warned` were
    beyond max(8, 0.5%) of the asked length and `prompt_wrong` beyond 2%; each request has its own where
    `prompt_asked_range` says from which to which. `cached` is by usage, else
    `cached_by_counter` is the counter's growth from idle to idle, over `counter_requests`, warm-up included.
    `outputs_must_differ` is true where the baseline's outputs were unique, `outputs_must_not_loop` where none of
    them looped; `loop_limit` is the share of the judged that may. `extra_requests_seen` is how many
    more requests the server held than we ever had in flight around that moment. Lateness is p99, in nanoseconds.
    `outstanding_limit` is set where so many requests of an open loop were unanswered that the load ended, each of its
    `workers` having an equal share of it, and `not_delivered` says which part of its arrivals was not delivered as
    planned; `queue` is set in a rate study.
    Of a recorded trace `trace_shared_tokens` are those that its requests share, as it has them, with earlier ones, and
    `trace_cached_tokens` how many the server told it had cached, of the same requests.
    `below_share` is the share of time below the planned concurrency between the last opening send and the last
    start, `underfilled_share` the same without a slot's handovers of up to 2 ms from one request to the next.
    """

    clock: Literal["live", "virtual"]
    planned: int
    cut_as_planned: bool = False
    sent: int
    ok: int
    failed: int
    cancelled: int
    unfinished: int
    load_failures: dict[str, int] = field(default_factory=dict)
    bad_requests: int = 0
    warmup_failed: int = 0
    outcomes: dict[str, int] = field(default_factory=dict)
    http_statuses: dict[str, int] = field(default_factory=dict)
    wrong_output_length: int = 0
    output_length_unknown: int = 0
    wrong_finish: int = 0
    finish_unknown: int = 0
    empty_outputs: int = 0
    prompt_asked: int
    prompt: PromptRange | None = None
    prompt_asked_range: PromptRange | None = None
    prompt_warned: int = 0
    prompt_wrong: int = 0
    cached: PromptRange | None = None
    cached_by_counter: int | None = None
    counter_requests: int = 0
    template_floor_tokens: int | None = None
    block_size_tokens: int | None = None
    shared_prefix_tokens: int = 0
    trace_shared_tokens: int | None = None
    trace_cached_tokens: int | None = None
    cached_beyond: int = 0
    duplicate_prompts: int = 0
    duplicate_outputs: int = 0
    outputs_must_differ: bool = False
    loops: LoopCount | None = None
    loop_limit: float = 0.05
    outputs_must_not_loop: bool = False
    extra_requests_seen: int | None = None
    identity_changes: tuple[IdentityChange, ...] = ()
    identity_known: bool = True
    counters_fell: tuple[str, ...] = ()
    counters: tuple[CounterCheck, ...] = ()
    preemptions: int | None = None
    arrival_doubt_p99_ns: float | None = None
    send_lag_p99_ns: float | None = None
    send_lag_share: float | None = None
    lateness_budget_ns: int
    concurrency: int
    concurrency_max: int | None = None
    below_share: float | None = None
    underfilled_share: float | None = None
    outstanding_limit: int | None = None
    workers: int = 1
    not_delivered: str = ""
    open_loop: bool = False
    queue: QueueFacts | None = None
    damage: tuple[str, ...] = ()

    @property
    def broken_by_load(self) -> int:
        return sum(self.load_failures.values())

    @property
    def not_ended(self) -> int:
        """Count the planned requests that did not come to an end of their own: cancelled, unfinished, not started."""
        return max(0, self.planned - self.ok - self.failed)
