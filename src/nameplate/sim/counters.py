"""What an engine tells of itself: counters, gauges, and the durations that vLLM observes."""

import msgspec

from nameplate.sim.histogram import ITL_EDGES_S, REQUEST_EDGES_S, TTFT_EDGES_S, Histogram


class Counters(msgspec.Struct):
    """Count what the engine did since it started."""

    submitted: int = 0
    finished_length: int = 0
    finished_stop: int = 0
    cancelled: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    generation_tokens: int = 0
    preemptions: int = 0
    prefix_queries: int = 0
    prefix_hits: int = 0
    drafts: int = 0
    draft_tokens: int = 0
    accepted_tokens: int = 0
    steps: int = 0
    largest_prefill: int = 0  # tokens prefilled by any one step
    largest_step: int = 0  # tokens scheduled in any one step, drafts included
    visits: int = 0  # sequences looked at by the scheduler: the scaling test's measure of work

    def finished(self) -> dict[str, int]:
        """Count the requests that ended, by the reason that vLLM would give."""
        return {"stop": self.finished_stop, "length": self.finished_length, "abort": self.cancelled}


class EngineState(msgspec.Struct, frozen=True):
    """Show the engine as its metrics page would."""

    running: int
    waiting: int
    kv_use: float
    kv_blocks_used: int


class Histograms:
    """Hold the durations that vLLM observes, at first token, at each later output, and at the finish."""

    __slots__ = ("decode", "e2e", "inference", "itl", "prefill", "queue", "ttft")

    def __init__(self) -> None:
        self.ttft = Histogram(TTFT_EDGES_S)
        self.itl = Histogram(ITL_EDGES_S)
        self.e2e = Histogram(REQUEST_EDGES_S)
        self.queue = Histogram(REQUEST_EDGES_S)
        self.prefill = Histogram(REQUEST_EDGES_S)
        self.decode = Histogram(REQUEST_EDGES_S)
        self.inference = Histogram(REQUEST_EDGES_S)
