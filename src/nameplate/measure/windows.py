"""The windows of a counted trial, each named with the events that begin and end it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from msgspec import Struct

from nameplate.evidence.rows import RequestRow
from nameplate.evidence.timeline import Timeline


class Window(Struct, frozen=True):
    """Hold a stretch of monotonic time, [begin, end), and the events at its edges."""

    begin_ns: int
    end_ns: int
    begins: str
    ends: str

    @property
    def length_ns(self) -> int:
        return self.end_ns - self.begin_ns


def longest_without(window: Window, moments_ns: Iterable[int]) -> int:
    """Return the longest stretch of a window without any of these moments, its edges included."""
    inside = sorted(t_ns for t_ns in moments_ns if window.begin_ns <= t_ns < window.end_ns)
    edges = [window.begin_ns, *inside, window.end_ns]
    return max(later - earlier for earlier, later in pairwise(edges))


def whole_run(measured: Sequence[RequestRow]) -> Window | None:
    """Return first sent to last end of the measured requests; None where nothing was sent or ended."""
    sent = [row.sent_ns for row in measured if row.sent_ns is not None]
    ended = [row.end_ns for row in measured if row.end_ns is not None]
    if not sent or not ended or max(ended) <= min(sent):
        return None
    return Window(min(sent), max(ended), "first measured request sent", "last measured request ended")


def steady(measured: Sequence[RequestRow]) -> Window | None:
    """Return the end of the opening phase to the last start; None where that is empty.

    The opening phase ends when all of its requests have ended. After a handover there is none: the window begins
    with the first measured request.
    """
    sent = [row.sent_ns for row in measured if row.sent_ns is not None]
    if not sent:
        return None
    opening = [row for row in measured if row.phase == "opening"]
    if any(row.end_ns is None for row in opening):
        return None
    begin = max((row.end_ns for row in opening if row.end_ns is not None), default=min(sent))
    begins = "all opening requests ended" if opening else "first measured request sent"
    return Window(begin, max(sent), begins, "last request started") if max(sent) > begin else None


class TokenCount(Struct, frozen=True):
    """Hold tokens that arrived in a window; `estimated` where some were spread evenly over their events."""

    tokens: float
    estimated: bool


def tokens_inside(
    window: Window, timelines: Iterable[Timeline], tokens_of: dict[int, int | None]
) -> TokenCount:
    """Count the output tokens that arrived inside a window, whichever request they belong to.

    `tokens_of` maps the request indices that count to their output tokens. Where the server counted tokens an
    event, those are used; else a request's tokens are spread evenly over its output events.
    """
    total = 0.0
    estimated = False
    for timeline in timelines:
        if timeline.index not in tokens_of or not timeline.times_ns:
            continue
        times, counts = timeline.times_ns, timeline.tokens
        # Most requests lie wholly inside, and asking so first spares a look at each of a million events.
        if window.begin_ns <= min(times) and max(times) < window.end_ns:
            inside: Sequence[int] = range(len(times))
        else:
            inside = [at for at, t_ns in enumerate(times) if window.begin_ns <= t_ns < window.end_ns]
        if counts is not None:
            total += sum(counts) if len(inside) == len(times) else sum(counts[at] for at in inside)
            continue
        estimated = estimated or bool(inside)
        total += len(inside) * tokens_an_event(timeline, tokens_of[timeline.index])
    return TokenCount(total, estimated)


def tokens_an_event(timeline: Timeline, tokens: int | None) -> float:
    """Return how many tokens each event of a request stands for where the server did not count along; 1 if unknown."""
    return 1.0 if tokens is None or not timeline.times_ns else tokens / len(timeline.times_ns)
