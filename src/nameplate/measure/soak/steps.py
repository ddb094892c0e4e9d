"""The time axis of a segment, cut into steps: what began, ended and arrived in each, in memory that no request adds to.

Everything here is a sum, a smallest or a largest over integers, so it does not depend on the order in which it came.
Tokens are kept in millionths: where they are spread evenly over events, the parts still add up to the whole exactly.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import accumulate

from nameplate.evidence.timeline import Timeline
from nameplate.measure.soak.window import Spread

MICRO = 1_000_000
_NEVER = -1


class Steps:
    """Count by steps of `step_ns` from `begin_ns` on; at most `most` of them, since a forged time must cost nothing."""

    def __init__(self, begin_ns: int, step_ns: int, most: int) -> None:
        self.begin_ns, self.step_ns, self.most = begin_ns, step_ns, most
        self.beyond = 0
        self.sent = array("q")
        self.ended = array("q")
        self.ok = array("q")
        self.failed = array("q")
        # Sum over requests of how long each was in flight in the step that it began in, less what it was not in the
        # step that it ended in.
        self.area_ns = array("q")
        self.micro_tokens = array("q")
        self.estimated = array("b")
        self.first_ok_ns = array("q")
        self.last_ok_ns = array("q")
        self.first_failed_ns = array("q")
        self.first_output_ns = array("q")

    def __len__(self) -> int:
        return len(self.sent)

    def at(self, t_ns: int) -> int:
        """Return a moment's step, making room for it; one before the first counts there, one beyond all in the last."""
        step = max(0, (t_ns - self.begin_ns) // self.step_ns)
        if step >= self.most:
            self.beyond += 1
            step = max(0, len(self) - 1)
        missing = step + 1 - len(self.sent)
        if missing > 0:
            missing = min(max(missing, 1024), self.most - len(self.sent))
            zeros, never = array("q", bytes(8 * missing)), array("q", [_NEVER]) * missing
            for counts in (self.sent, self.ended, self.ok, self.failed, self.area_ns, self.micro_tokens):
                counts.extend(zeros)
            for times in (self.first_ok_ns, self.last_ok_ns, self.first_failed_ns, self.first_output_ns):
                times.extend(never)
            self.estimated.frombytes(bytes(missing))
        return step

    def place(self, t_ns: int) -> int:
        """Return a moment's step within what there is."""
        return min(len(self), max(0, (t_ns - self.begin_ns) // self.step_ns))

    @property
    def horizon_ns(self) -> int:
        """Return the moment that nothing true lies beyond."""
        return self.edge_ns(self.most)

    def edge_ns(self, step: int) -> int:
        return self.begin_ns + step * self.step_ns

    def begin(self, t_ns: int) -> None:
        """Count a request that was sent."""
        step = self.at(t_ns)
        self.sent[step] += 1
        self.area_ns[step] += self.edge_ns(step + 1) - t_ns

    def end(self, t_ns: int, *, ok: bool, failed: bool, was_sent: bool) -> None:
        """Count a request's end."""
        step = self.at(t_ns)
        if was_sent:
            self.ended[step] += 1
            self.area_ns[step] -= self.edge_ns(step + 1) - t_ns
        if ok:
            self.ok[step] += 1
            _earliest(self.first_ok_ns, step, t_ns)
            if t_ns > self.last_ok_ns[step]:
                self.last_ok_ns[step] = t_ns
        elif failed:
            self.failed[step] += 1
            _earliest(self.first_failed_ns, step, t_ns)

    def output(self, t_ns: int) -> None:
        """Note a request's first output."""
        _earliest(self.first_output_ns, self.at(t_ns), t_ns)

    def events_of(self, timeline: Timeline) -> list[tuple[int, int, int]]:
        """Return (step, first event, event after the last) for each step that a request's events lie in."""
        times, begin_ns, step_ns = timeline.times_ns, self.begin_ns, self.step_ns
        found = []
        first, count = 0, len(times)
        size = len(self)
        while first < count:
            step = (times[first] - begin_ns) // step_ns
            if not 0 <= step < size:
                step = self.at(times[first])
                size = len(self)
            # A stamp that goes back by a little stays where it is, and so does one that lies beyond all steps.
            after = bisect_left(times, begin_ns + (step + 1) * step_ns, first + 1)
            found.append((step, first, after))
            first = after
        return found

    def count_tokens(self, spans: Sequence[tuple[int, int, int]], tokens: Sequence[int]) -> None:
        """Add tokens that the server counted along."""
        for step, first, after in spans:
            self._add_tokens(step, MICRO * sum(tokens[first:after]))

    def spread_tokens(self, spans: Sequence[tuple[int, int, int]], tokens: int | None) -> None:
        """Add a request's tokens spread evenly over its events; unknown ones are one an event."""
        events = spans[-1][2] if spans else 0
        whole = MICRO * (events if tokens is None else tokens)
        for step, first, after in spans:
            self._add_tokens(step, whole * after // events - whole * first // events)
            self.estimated[step] = 1

    def _add_tokens(self, step: int, micro: int) -> None:
        try:
            self.micro_tokens[step] += micro
        except OverflowError:
            # More than nine million million tokens in a step: whoever counted them made them up.
            self.beyond += 1

    def levels(self, steps: int) -> Iterator[int]:
        """Yield how many requests were in flight at the beginning of each of the first steps, then after the last."""
        changes = (s - e for s, e in zip(self.sent[:steps], self.ended[:steps], strict=True))
        yield from accumulate(changes, initial=0)

    def earliest(self, times: array[int], from_ns: int) -> int | None:
        """Return the first moment at or after `from_ns` of a column of first moments; None where there is none."""
        for step in range(max(0, (from_ns - self.begin_ns) // self.step_ns), len(times)):
            if times[step] >= from_ns:
                return times[step]
        return None

    def latest_ok(self, until_ns: int) -> int | None:
        """Return the last success at or before a moment, from the last step that ended by then, or of its own."""
        for step in range(min(len(self) - 1, (until_ns - self.begin_ns) // self.step_ns), -1, -1):
            for t_ns in (self.last_ok_ns[step], self.first_ok_ns[step]):
                if t_ns != _NEVER and t_ns <= until_ns:
                    return t_ns
        return None


def outstanding_in(
    steps: Steps, levels: Sequence[int], first: int, after: int, length_ns: int
) -> Spread | None:
    """Return the requests in flight over steps [first, after): mean over time, extremes at the steps' ends.

    `levels` holds one more value than there are steps: those at their beginnings, and after the last one. `length_ns`
    is how much of it was observed: after that nobody knows, and nothing is counted.
    """
    if after <= first or length_ns <= 0:
        return None
    area = 0
    for step in range(first, after):
        inside = min(steps.step_ns, steps.edge_ns(first) + length_ns - steps.edge_ns(step))
        over = steps.step_ns - inside
        # What began within the step was counted to its end, which lies `over` beyond what was observed.
        changed = steps.sent[step] - steps.ended[step] if over > 0 and step < len(steps) else 0
        area += levels[step] * inside + (steps.area_ns[step] if step < len(steps) else 0) - changed * over
    seen = levels[first + 1 : after + 1]
    return Spread(n=len(seen), mean=area / length_ns, min=float(min(seen)), max=float(max(seen)))


def _earliest(times: array[int], step: int, t_ns: int) -> None:
    if times[step] == _NEVER or t_ns < times[step]:
        times[step] = t_ns
