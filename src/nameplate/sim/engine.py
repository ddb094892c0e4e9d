"""A pure model of a continuous-batching LLM server: no clock, no socket, integer nanoseconds.

The caller says when requests arrive and asks when the step in flight ends; what a step holds is decided when it
starts, and what came out of it appears when it ends. The same calls give the same emissions.
"""

import math
from collections import deque
from random import Random

from nameplate.sim.counters import Counters, EngineState, Histograms
from nameplate.sim.kv import BlockPool
from nameplate.sim.parameters import EngineParameters
from nameplate.sim.sequence import Emission, EngineRequest, Sequence


class Engine:
    """Simulate the engine; see `EngineParameters` for the cost model.

    A busy engine starts its next step the moment the last one ends: what arrives in that moment waits for it. An
    idle one starts when it is asked for `next_ns` or time moves on, with all that has arrived by then.
    Call `advance(now)` before `submit(.., now)` or `cancel(.., now)`, and never go back in time.
    """

    def __init__(self, parameters: EngineParameters) -> None:
        self.parameters = parameters
        self.counters = Counters()
        self.histograms = Histograms()
        self.pool = BlockPool(parameters)
        self._random = Random(parameters.seed)
        self._sequences: dict[int, Sequence] = {}
        self._intake: deque[Sequence] = deque()
        self._intake_free_ns = 0
        self._waiting: deque[Sequence] = deque()
        self._waiting_count = 0
        self._running: list[Sequence] = []
        self._resident = 0
        self._now_ns = 0
        self._end_ns: int | None = None
        self._prefills: list[tuple[Sequence, int]] = []
        self._decodes: list[Sequence] = []
        self._width = 1 + parameters.draft_tokens
        self.pace = 1.0  # how many times as long every step takes as it should

    @property
    def now_ns(self) -> int:
        """Return the time that the engine has come to."""
        return self._now_ns

    def submit(self, request: EngineRequest, now_ns: int) -> None:
        """Queue a request that arrived at `now_ns`; raise ValueError if it could never run."""
        parameters = self.parameters
        size = len(request.prompt) + request.output_tokens
        if not request.prompt or request.output_tokens < 1:
            raise ValueError("a request needs at least one prompt token and one output token")
        if size > parameters.context_tokens or self._blocks_for(size) > self.pool.total:
            raise ValueError(f"{size} tokens do not fit the context limit or the KV pool")
        if request.id in self._sequences:
            raise ValueError(f"request {request.id} is already here")
        self._touch(now_ns)
        sequence = Sequence(request, now_ns, parameters)
        self._sequences[request.id] = sequence
        self.counters.submitted += 1
        cost_ns = parameters.intake_request_ns + round(parameters.intake_token_ns * len(request.prompt))
        if cost_ns:
            self._intake_free_ns = max(self._intake_free_ns, now_ns) + cost_ns
            sequence.queued_ns = self._intake_free_ns
            self._intake.append(sequence)
        else:
            self._take(sequence)

    def cancel(self, request_id: int, now_ns: int) -> bool:
        """Drop a request at once; its share of the step in flight is still paid. False if it is not here."""
        self._touch(now_ns)
        sequence = self._sequences.pop(request_id, None)
        if sequence is None:
            return False
        sequence.gone = True
        self.counters.cancelled += 1
        if sequence in self._running:
            self._running.remove(sequence)
            self._release(sequence)
        elif sequence.taken_in:
            self._waiting_count -= 1
        return True

    def next_ns(self) -> int | None:
        """Return when the step in flight ends, starting one if there is work; else when work is taken in, or None."""
        if self._end_ns is None:
            if self._running or self._waiting_count:
                self._start(self._now_ns)
            elif (sequence := self._next_in()) is not None:
                return max(self._now_ns, sequence.queued_ns)
        return self._end_ns

    def advance(self, to_ns: int) -> list[Emission]:
        """Let time pass up to `to_ns` (steps that end then included) and return what came out, in order."""
        emissions: list[Emission] = []
        self._start_before(to_ns)
        while (end_ns := self._end_ns) is not None and end_ns <= to_ns:
            self._finish(end_ns, emissions)
            self._take_in(end_ns)
            if self._running or self._waiting_count:
                self._start(end_ns)
            else:
                self._start_before(to_ns)
        self._take_in(to_ns)
        self._now_ns = max(self._now_ns, to_ns)
        return emissions

    def state(self) -> EngineState:
        """Return the gauges of this moment."""
        used = self.pool.used
        return EngineState(
            running=len(self._running),
            waiting=self._waiting_count,
            kv_use=used / self.pool.total,
            kv_blocks_used=used,
        )

    def flush(self) -> bool:
        """Empty the prefix cache; False while any request holds blocks."""
        return self.pool.flush()

    def _touch(self, now_ns: int) -> None:
        if now_ns < self._now_ns:
            raise ValueError("time went backwards")
        # Work that waited for this moment would have started at its own arrival, so it starts before the clock moves.
        if now_ns > self._now_ns:
            next_ns = self.next_ns()
            if next_ns is not None and next_ns < now_ns:
                raise ValueError("advance the engine before submitting or cancelling")
        self._now_ns = now_ns

    def _start_before(self, to_ns: int) -> None:
        """Start an idle engine if it has work before `to_ns`: requests of one moment start together."""
        if self._end_ns is not None:
            return
        if not self._running and not self._waiting_count:
            sequence = self._next_in()
            if sequence is None or sequence.queued_ns >= to_ns:
                return
            self._now_ns = max(self._now_ns, sequence.queued_ns)
            self._take_in(self._now_ns)
        if self._now_ns < to_ns:
            self._start(self._now_ns)

    def _next_in(self) -> Sequence | None:
        """Return the next request that the API server will hand over."""
        intake = self._intake
        while intake and intake[0].gone:
            intake.popleft()
        return intake[0] if intake else None

    def _take_in(self, to_ns: int) -> None:
        while (sequence := self._next_in()) is not None and sequence.queued_ns <= to_ns:
            self._take(self._intake.popleft())

    def _take(self, sequence: Sequence) -> None:
        sequence.taken_in = True
        self._waiting.append(sequence)
        self._waiting_count += 1

    def _blocks_for(self, tokens: int) -> int:
        return -(-tokens // self.parameters.block_tokens)

    def _start(self, now_ns: int) -> None:
        """Decide what the next step does and when it ends."""
        self._prefills = []
        self._decodes = []
        budget = self.parameters.chunk_tokens
        if self.parameters.scheduler == "prefill_first":
            self._plan_prefills(budget, now_ns)
            if not self._prefills:
                # A prefill-first engine sizes decode batches by its running limit, not by the chunk.
                self._plan_decodes(self._width * max(1, len(self._running)))
        else:
            running = len(self._running)
            left = self._plan_decodes(budget)
            self._plan_prefills(left, now_ns, admit=len(self._running) == running)
        if not self._prefills and not self._decodes:
            raise RuntimeError("the engine has requests and cannot run any")  # submit() rules this out
        self._end_ns = now_ns + self._duration_ns()

    def _plan_decodes(self, budget: int) -> int:
        """Schedule one decode a sequence, oldest first; preempt the youngest when the pool is exhausted."""
        running, decodes, width = self._running, self._decodes, self._width
        index = 0
        while index < len(running) and budget >= width:
            sequence = running[index]
            index += 1
            if sequence.computed < sequence.target:
                continue
            wanted = sequence.target + min(width, sequence.limit - sequence.outputs)
            if wanted > sequence.capacity and not self._grow(sequence, wanted):
                break
            decodes.append(sequence)
            budget -= width
        self.counters.visits += index
        return budget

    def _grow(self, sequence: Sequence, tokens: int) -> bool:
        holding = sequence.holding
        while not self.pool.allocate(holding, self._blocks_for(tokens) - holding.blocks):
            victim = self._running.pop()
            self._release(victim)
            victim.computed = 0
            self._waiting.appendleft(victim)
            self._waiting_count += 1
            self.counters.preemptions += 1
            if victim is sequence:
                return False
        sequence.capacity = holding.blocks * self.parameters.block_tokens
        return True

    def _plan_prefills(self, budget: int, now_ns: int, *, admit: bool = True) -> None:
        """Continue the prompt that was cut, then admit waiting ones in order while budget and room last."""
        running, prefills = self._running, self._prefills
        # Only the youngest can be unfinished: none is admitted until the one before had all it wanted.
        if running and running[-1].computed < running[-1].target and budget > 0:
            sequence = running[-1]
            share = min(budget, sequence.target - sequence.computed)
            prefills.append((sequence, share))
            budget -= share
            self.counters.visits += 1
        while admit and budget > 0 and self._waiting and len(running) < self.parameters.running_limit:
            sequence = self._waiting[0]
            self.counters.visits += 1
            if sequence.gone:
                self._waiting.popleft()
                continue
            if not self._admit(sequence, now_ns):
                break
            share = min(budget, sequence.target - sequence.computed)
            prefills.append((sequence, share))
            budget -= share

    def _admit(self, sequence: Sequence, now_ns: int) -> bool:
        """Move the first waiting request into the batch, if the pool holds its prompt and one token."""
        pool, block_tokens = self.pool, self.parameters.block_tokens
        # At least one token is always computed: the one whose output is wanted.
        findable = sequence.hashes[: (sequence.target - 1) // block_tokens]
        matched = pool.admit(sequence.holding, findable, self._blocks_for(sequence.target + 1))
        if matched is None:
            return False
        self._waiting.popleft()
        self._waiting_count -= 1
        self._running.append(sequence)
        sequence.computed = matched * block_tokens
        sequence.capacity = sequence.holding.blocks * block_tokens
        self._resident += sequence.computed
        self.counters.prefix_queries += sequence.target
        self.counters.prefix_hits += sequence.computed
        if sequence.scheduled_ns < 0:
            sequence.scheduled_ns = now_ns
            sequence.cached = sequence.computed
        return True

    def _duration_ns(self) -> int:
        parameters, counters = self.parameters, self.counters
        duration = float(parameters.step_ns) + parameters.resident_token_ns * self._resident
        prefilled = 0
        if self._prefills:
            duration += parameters.prefill_step_ns
            for sequence, share in self._prefills:
                before = sequence.computed + (share - 1) / 2  # the mean context of the chunk's tokens
                duration += share * (parameters.prefill_token_ns + parameters.prefill_context_ns * before)
                prefilled += share
        batch = len(self._decodes)
        if batch:
            padded = next((size for size in parameters.decode_graph_sizes if size >= batch), batch)
            duration += parameters.decode_step_ns + parameters.decode_sequence_ns * padded
        duration *= self.pace * parameters.spell(self._now_ns)
        if parameters.noise:
            duration *= max(0.1, self._random.gauss(1.0, parameters.noise))
        counters.steps += 1
        counters.largest_prefill = max(counters.largest_prefill, prefilled)
        counters.largest_step = max(counters.largest_step, prefilled + batch * self._width)
        return max(1, round(duration))

    def _finish(self, end_ns: int, emissions: list[Emission]) -> None:
        """End the step in flight: book its prefill and tokens."""
        self._now_ns = end_ns
        self._end_ns = None
        ended = False
        block_tokens = self.parameters.block_tokens
        for sequence, share in self._prefills:
            if sequence.gone:
                continue
            first_block = sequence.computed // block_tokens
            sequence.computed += share
            self._resident += share
            self.pool.publish(
                sequence.holding, sequence.hashes[first_block : sequence.computed // block_tokens]
            )
            if sequence.computed == sequence.target:
                ended |= self._emit(sequence, end_ns, emissions)
        ended |= self._finish_decodes(end_ns, emissions)
        if ended:
            self._running = [sequence for sequence in self._running if not sequence.gone]
        self._prefills = []
        self._decodes = []

    def _finish_decodes(self, end_ns: int, emissions: list[Emission]) -> bool:
        """Book the tokens of all decodes of a step, and say whether any were a request's last.

        This runs for every token that is ever simulated, so what can be booked for all at once is.
        """
        drafting = self.parameters.draft_tokens > 0
        itl, append = self.histograms.itl, emissions.append
        produced = alike = gap_ns = 0
        last: list[Sequence] = []
        for sequence in self._decodes:
            if sequence.gone:
                continue
            tokens = self._drafted(sequence) if drafting else 1
            waited_ns = end_ns - sequence.last_ns
            if waited_ns != gap_ns:
                itl.observe_ns(gap_ns, alike)
                gap_ns, alike = waited_ns, 0
            alike += 1
            produced += tokens
            sequence.last_ns = end_ns
            sequence.computed += tokens
            sequence.target += tokens
            sequence.outputs = outputs = sequence.outputs + tokens
            if outputs < sequence.limit:
                append(Emission(sequence.id, end_ns, tokens, outputs, None, sequence.cached))
            else:
                append(Emission(sequence.id, end_ns, tokens, outputs, sequence.finish, sequence.cached))
                last.append(sequence)
        itl.observe_ns(gap_ns, alike)
        self._resident += produced
        self.counters.generation_tokens += produced
        for sequence in last:
            self._end(sequence, end_ns)
        return bool(last)

    def _drafted(self, sequence: Sequence) -> int:
        """Return what one decode gives: a token, and the drafts that were accepted before the first that was not."""
        drafts, counters = self.parameters.draft_tokens, self.counters
        tokens = 1
        if sequence.log_acceptance:
            # The length of a run of accepted drafts is geometric; 1 - u keeps the logarithm finite.
            run = int(math.log(1.0 - sequence.random.random()) / sequence.log_acceptance)
            tokens += min(run, drafts)
        counters.drafts += 1
        counters.draft_tokens += drafts
        counters.accepted_tokens += tokens - 1
        return min(tokens, sequence.limit - sequence.outputs)

    def _emit(self, sequence: Sequence, t_ns: int, emissions: list[Emission]) -> bool:
        """Book the token that a finished prefill gives; say whether it was the request's last."""
        if sequence.outputs:
            self.histograms.itl.observe_ns(t_ns - sequence.last_ns)
        else:
            sequence.first_ns = t_ns
            self.histograms.ttft.observe_ns(t_ns - sequence.arrival_ns)
            self.counters.prompt_tokens += sequence.prompt_tokens
            self.counters.cached_tokens += sequence.cached
        self._resident += 1
        sequence.computed += 1
        sequence.target += 1
        sequence.outputs += 1
        sequence.last_ns = t_ns
        self.counters.generation_tokens += 1
        last = sequence.outputs >= sequence.limit
        finish = sequence.finish if last else None
        emissions.append(Emission(sequence.id, t_ns, 1, sequence.outputs, finish, sequence.cached))
        if last:
            self._end(sequence, t_ns)
        return last

    def _end(self, sequence: Sequence, t_ns: int) -> None:
        self._observe_finish(sequence, t_ns)
        self._release(sequence)
        sequence.gone = True
        del self._sequences[sequence.id]

    def _observe_finish(self, sequence: Sequence, t_ns: int) -> None:
        if sequence.finish == "length":
            self.counters.finished_length += 1
        else:
            self.counters.finished_stop += 1
        histograms = self.histograms
        histograms.e2e.observe_ns(t_ns - sequence.arrival_ns)
        histograms.queue.observe_ns(sequence.scheduled_ns - sequence.queued_ns)
        histograms.prefill.observe_ns(sequence.first_ns - sequence.scheduled_ns)
        histograms.decode.observe_ns(t_ns - sequence.first_ns)
        histograms.inference.observe_ns(t_ns - sequence.scheduled_ns)

    def _release(self, sequence: Sequence) -> None:
        self._resident -= sequence.computed
        self.pool.release(sequence.holding)
        sequence.capacity = 0
