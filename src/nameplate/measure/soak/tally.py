"""The requests of a segment, counted one row after the other and then forgotten."""

from __future__ import annotations

from collections import Counter

from nameplate.contract.contract import Contract
from nameplate.contract.slo import Metric
from nameplate.evidence.header import TrialHeader
from nameplate.evidence.rows import RequestRow
from nameplate.measure.facts import wrong_finish, wrong_length
from nameplate.measure.samples import bounds_of, from_schedule
from nameplate.measure.soak.segment import Counts, Tokens
from nameplate.measure.soak.steps import Steps
from nameplate.statistics.sketch import Sketch
from nameplate.verdict.gate import Gate, gate_of_failure
from nameplate.verdict.soak import SloCount, counted
from nameplate.verdict.tolerances import cached_range, prompt_length
from nameplate.wire.outcome import Outcome

# Over the whole soak: each with best and worst case of the open ones.
METRICS: tuple[Metric, ...] = ("ttft", "itl", "tpot", "e2e", "longest_gap")
FROM_SCHEDULE = "ttft_from_schedule"
SEND_LAG = "send_lag"
# In each window: of what happened in it.
_IN_WINDOW = ("ttft", FROM_SCHEDULE, "itl", "e2e", SEND_LAG)

_PAGE_BITS = 16


class Indices:
    """Remember which indices were seen: a bit each, and for each 64 of them the earliest send."""

    def __init__(self) -> None:
        self._pages: dict[int, bytearray] = {}
        self._sent_ns: dict[int, int] = {}
        self.highest = -1
        self.count = 0
        self._whole = 0

    def add(self, index: int, sent_ns: int) -> bool:
        """Note an index; False where it was noted before."""
        page = self._pages.setdefault(index >> _PAGE_BITS, bytearray(1 << _PAGE_BITS - 3))
        at, bit = (index & (1 << _PAGE_BITS) - 1) >> 3, 1 << (index & 7)
        if page[at] & bit:
            return False
        page[at] |= bit
        self.count += 1
        self.highest = max(self.highest, index)
        block = index >> 6
        self._sent_ns[block] = min(sent_ns, self._sent_ns.get(block, sent_ns))
        return True

    def __contains__(self, index: int) -> bool:
        page = self._pages.get(index >> _PAGE_BITS)
        return page is not None and bool(page[(index & (1 << _PAGE_BITS) - 1) >> 3] & 1 << (index & 7))

    def missing_since_ns(self, first: int) -> int | None:
        """Return a moment before which every request that was sent has its row; None where nothing tells.

        Indices are given away in the order of sending, so it is the send of those before the first one missing.
        """
        at = max(self._whole, first)
        while at in self:
            at += 1
        self._whole = at
        before = (at >> 6) - 1
        return self._sent_ns.get(before)


class WindowTally:
    """Count what happened in one window."""

    __slots__ = ("cancelled", "completed", "failed", "input_tokens", "sent", "sketches")

    def __init__(self) -> None:
        self.sent = self.completed = self.cancelled = self.input_tokens = 0
        self.failed: dict[str, int] = {}
        self.sketches = {name: Sketch() for name in _IN_WINDOW}


class Tally:
    """Count measured requests: over the segment, by window and by step. Failures are named by their gate."""

    def __init__(self, header: TrialHeader, steps: Steps, steps_a_window: int) -> None:
        self.steps = steps
        self.windows: dict[int, WindowTally] = {}
        # Of members that are in no window's sketch; the others are added to these when asked for.
        self._beside = {name: Sketch() for name in (*METRICS, FROM_SCHEDULE, SEND_LAG)}
        self.slos = tuple(SloCount(slo=slo) for slo in header.contract.slos)
        self.outcomes: Counter[str] = Counter()
        self.failed_by: Counter[str] = Counter()
        self.broken: Counter[str] = Counter()
        self.failed_at: Counter[tuple[int, str]] = Counter()
        self.sent = self.ok = self.failed = self.cancelled = self.unfinished = self.recovered = 0
        self.input_ok = self.output_ok = self.output_partial = 0
        self.cached_ok: int | None = None
        self.estimated = False
        self.first_sent_ns: int | None = None
        self.last_ok_ns: int | None = None
        self.opening_ended_ns: int | None = None
        self.last_ns = steps.begin_ns
        self.unknown: list[str] = []
        self.steps_a_window = steps_a_window
        self._contract = header.contract
        self._shape = header.plan.shape
        self._open_loop = header.plan.arrivals is not None
        prefix = header.prompt_length.prefix_tokens or header.contract.cache.shared_prefix_tokens
        self._cached = cached_range(
            prefix, header.template_floor_tokens, header.identity.integer("block_size_tokens")
        )

    def window(self, t_ns: int) -> WindowTally:
        number = self.steps.at(t_ns) // self.steps_a_window
        found = self.windows.get(number)
        if found is None:
            found = self.windows[number] = WindowTally()
        return found

    def take(self, row: RequestRow, until_ns: int | None = None) -> None:
        """Count one measured request; one that is still open was watched until `until_ns`."""
        self.outcomes[row.outcome] += 1
        self.sent += 1
        self._begin(row)
        if row.first_output_ns is not None:
            self._output(row, row.first_output_ns)
        self._end(row)
        until = until_ns if until_ns is not None else self.last_ns
        self._bounds(row, until)
        judged = from_schedule([row])[0] if self._open_loop else row
        self.slos = tuple(self._counted(count, judged, until) for count in self.slos)

    def _begin(self, row: RequestRow) -> None:
        at_ns = row.sent_ns if row.sent_ns is not None else row.scheduled_ns
        window = self.window(at_ns)
        window.sent += 1
        if row.sent_ns is None:
            return
        self.steps.begin(row.sent_ns)
        if self.first_sent_ns is None or row.sent_ns < self.first_sent_ns:
            self.first_sent_ns = row.sent_ns
        window.sketches[SEND_LAG].add(max(0, row.sent_ns - row.scheduled_ns))

    def _output(self, row: RequestRow, t_ns: int) -> None:
        self.steps.output(t_ns)
        window = self.window(t_ns)
        window.input_tokens += row.prompt_tokens or 0
        if row.ttft_ns is not None:
            window.sketches["ttft"].add(max(0, row.ttft_ns))
        window.sketches[FROM_SCHEDULE].add(max(0, t_ns - row.scheduled_ns))

    def _end(self, row: RequestRow) -> None:
        tokens = row.output_tokens if row.output_tokens is not None else row.output_events
        if row.output_events and row.output_tokens_source != "usage":
            self.estimated = True
        if row.outcome == Outcome.ok:
            self.ok += 1
            self.output_ok += tokens
            self.input_ok += row.prompt_tokens or 0
            if row.cached_tokens is not None:
                self.cached_ok = (self.cached_ok or 0) + row.cached_tokens
            self._contract_held(row, self._contract)
        else:
            self.output_partial += tokens
            if row.outcome == Outcome.cancelled:
                self.cancelled += 1
            elif row.outcome == Outcome.unfinished:
                self.unfinished += 1
            else:
                self.failed += 1
        failure = self._failure(row)
        if row.end_ns is None:
            return
        ok, end_ns = row.outcome == Outcome.ok, row.end_ns
        if end_ns < self.steps.horizon_ns:
            self.last_ns = max(self.last_ns, end_ns)
        if row.phase == "opening":
            self.opening_ended_ns = max(end_ns, self.opening_ended_ns or end_ns)
        self.steps.end(end_ns, ok=ok, failed=failure is not None, was_sent=row.sent_ns is not None)
        window = self.window(end_ns)
        if ok:
            self.last_ok_ns = end_ns if self.last_ok_ns is None else max(self.last_ok_ns, end_ns)
            window.completed += 1
            if row.itl_ns is not None:
                window.sketches["itl"].add(max(0, row.itl_ns))
            if row.e2e_ns is not None:
                window.sketches["e2e"].add(max(0, row.e2e_ns))
        elif failure is not None:
            window.failed[failure] = window.failed.get(failure, 0) + 1
            self.failed_at[self.steps.at(end_ns), failure] += 1
        else:
            window.cancelled += 1

    def _failure(self, row: RequestRow) -> str | None:
        try:
            gate = gate_of_failure(row.outcome, row.http_status)
        except ValueError:
            if len(self.unknown) < 8:
                self.unknown.append(f"request {row.index} has the unknown outcome {row.outcome!r}")
            return "unknown"
        if gate is None:
            return None
        self.failed_by[gate.value] += 1
        return gate.value

    def _contract_held(self, row: RequestRow, contract: Contract) -> None:
        """Count what makes an ok answer one that was not asked for."""
        if wrong_length(row, contract):
            self.broken[Gate.output_length.value] += 1
        if wrong_finish(row, contract):
            self.broken[Gate.finish_reason.value] += 1
        if not row.output_events:
            self.broken[Gate.empty_output.value] += 1
        asked = self._shape.input_tokens
        told = row.prompt_tokens
        if not contract.dataset and told is not None and prompt_length(asked, told) == "wrong":
            self.broken[Gate.input_length.value] += 1
        low, high = self._cached
        if row.cached_tokens is not None and not low <= row.cached_tokens <= high:
            self.broken[Gate.cached_tokens.value] += 1

    def _bounds(self, row: RequestRow, until_ns: int) -> None:
        """Add what no window's sketch holds: values of other metrics, and members that did not come to a value."""
        ok = row.outcome == Outcome.ok
        if row.ttft_ns is None:
            _add(self._beside["ttft"], row, "ttft", until_ns)
        if row.first_output_ns is None:
            _add(self._beside[FROM_SCHEDULE], from_schedule([row])[0], "ttft", until_ns)
        for metric in METRICS[1:]:
            if not ok or metric not in _IN_WINDOW:
                _add(self._beside[metric], row, metric, until_ns)

    def sketches(self) -> dict[str, Sketch]:
        """Return the sketches of all measured requests, by metric."""
        found = {name: Sketch.of(sketch.state()) for name, sketch in self._beside.items()}
        for number in sorted(self.windows):
            for name, sketch in self.windows[number].sketches.items():
                found[name].merge(sketch)
        return found

    def _counted(self, count: SloCount, row: RequestRow, until_ns: int) -> SloCount:
        bounds = bounds_of(row, count.slo.metric, until_ns)
        return count if bounds is None else counted(count, bounds.best, bounds.worst)

    def counts(self, *, never_sent: int, duplicates: int, untraced: int) -> Counts:
        """Return the counts so far."""
        return Counts(
            sent=self.sent,
            ok=self.ok,
            failed=self.failed,
            cancelled=self.cancelled,
            unfinished=self.unfinished,
            failed_by=_sorted(self.failed_by),
            outcomes=_sorted(self.outcomes),
            recovered=self.recovered,
            never_sent=never_sent,
            duplicates=duplicates,
            untraced=untraced,
            broken=_sorted(self.broken),
        )

    def tokens(self) -> Tokens:
        """Return the sums of tokens so far."""
        return Tokens(
            input_ok=self.input_ok,
            output_ok=self.output_ok,
            output_partial=self.output_partial,
            cached_ok=self.cached_ok,
            estimated=self.estimated,
        )


def _add(sketch: Sketch, row: RequestRow, metric: Metric, until_ns: int) -> None:
    bounds = bounds_of(row, metric, until_ns)
    if bounds is None:
        return
    if bounds.best == float("inf"):
        sketch.add_never()
    elif bounds.worst == float("inf"):
        sketch.add_open(max(0.0, bounds.best))
    else:
        sketch.add(max(0.0, bounds.best))


def _sorted(counts: Counter[str]) -> dict[str, int]:
    return {name: counts[name] for name in sorted(counts)}
