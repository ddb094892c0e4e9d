"""The requests of a file as rows of ours, from which our rules compute their own numbers beside the file's."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate

from msgspec import Struct, structs

from nameplate.contract.errors import CallerError
from nameplate.evidence.rows import RequestRow
from nameplate.evidence.timeline import Timeline
from nameplate.exchange.peers.run import Recomputed, Run
from nameplate.exchange.peers.sources import BODY_END, USAGE, taken
from nameplate.measure.latency import Latencies, measure_latencies
from nameplate.schedule.stage import Phase
from nameplate.statistics.percentile import SHOWN, Distribution, percentile
from nameplate.wire.outcome import Outcome

NS = 1e9
# Some 500 bytes a row; more requests than any published file holds.
REQUESTS_LIMIT = 200_000
# Eight bytes each: 160 MB.
GAPS_LIMIT = 20_000_000
# A time that is no time: a thousand years are enough for a wall clock in nanoseconds, and fit into 64 bits.
TIME_LIMIT_NS = 1 << 62

_COMPARED = ("ttft", "first_answer", "itl", "tpot", "chunk_gaps", "e2e", "longest_gap", "per_user")


class Read(Struct, frozen=True):
    """Hold a run as it was read, with its request records; `timelines` is None where the file has no gaps, or too many.

    `raw` says that the rows were made from the events of the answers, so that their tokens are the server's count;
    else they are what the tool says, tokens too. `exact_lengths`: every request asked for exactly its length;
    `exact_ends`: when a request ended is in the file, and not a sum of gaps.
    """

    run: Run
    rows: tuple[RequestRow, ...] = ()
    timelines: tuple[Timeline, ...] | None = None
    raw: bool = False
    exact_lengths: bool = False
    exact_ends: bool = True

    @property
    def measured(self) -> list[RequestRow]:
        return [row for row in self.rows if row.measured]


def row_of(
    index: int,
    *,
    phase: Phase = "steady",
    sent_ns: int | None = None,
    first_ns: int | None = None,
    answer_ns: int | None = None,
    last_ns: int | None = None,
    end_ns: int | None = None,
    outcome: Outcome = Outcome.ok,
    http_status: int | None = None,
    error: str | None = None,
    asked: int | None = None,
    prompt_tokens: int | None = None,
    output_tokens: int | None = None,
    events: int = 0,
    longest_gap_ns: int | None = None,
) -> RequestRow:
    """Return a row from what a file tells; the first event is taken to hold one token."""
    return RequestRow(
        index=index,
        phase=phase,
        class_="imported",
        slot=None,
        scheduled_ns=sent_ns or 0,
        sent_ns=sent_ns,
        first_output_ns=first_ns,
        first_answer_ns=answer_ns,
        last_output_ns=last_ns,
        end_ns=end_ns if end_ns is not None else last_ns,
        outcome=outcome.value,
        http_status=http_status,
        error=error,
        asked_output_tokens=asked or 0,
        prompt_tokens=prompt_tokens,
        output_tokens=output_tokens,
        output_events=events,
        longest_gap_ns=longest_gap_ns,
        prompt_sha256="",
        prompt_head_sha256="",
    )


def ns_of(seconds: float | None) -> int | None:
    """Return seconds as whole nanoseconds; None for what is none, or no time."""
    if seconds is None or not abs(seconds) * NS < TIME_LIMIT_NS:
        return None
    return round(seconds * NS)


def timeline_of(index: int, first_ns: int, gaps_ns: Iterable[int]) -> Timeline:
    """Return when the outputs of a request came, from its first and the gaps after it; CallerError beyond 64 bits."""
    try:
        return Timeline(index, array("q", accumulate(gaps_ns, initial=first_ns)))
    except OverflowError:
        raise CallerError(
            f"The times of request {index:,} add up to more than any clock holds.",
            hint="The file is damaged, or was not written by the tool.",
        ) from None


def with_opening(rows: Iterable[RequestRow]) -> tuple[RequestRow, ...]:
    """Mark the opening wave: what was sent before the first measured request ended; no file tells slots."""
    ordered = sorted(rows, key=lambda row: (row.sent_ns is None, row.sent_ns or 0, row.index))
    ends = [row.end_ns for row in ordered if row.measured and row.end_ns is not None]
    first_end = min(ends, default=None)
    return tuple(
        structs.replace(row, phase="opening")
        if row.measured and row.sent_ns is not None and (first_end is None or row.sent_ns < first_end)
        else row
        for row in ordered
    )


def recomputed(read: Read, names: Sequence[str] = _COMPARED) -> tuple[Recomputed, ...]:
    """Compute by our rules what the rows carry; failed and cut requests count as never."""
    measured = read.measured
    if not measured:
        return ()
    own = {row.index for row in measured}
    timelines = [timeline for timeline in read.timelines or () if timeline.index in own]
    whole = measure_latencies(measured, timelines).whole
    tokens = USAGE if read.raw else _tokens(read.run)
    found = []
    for name in names:
        if name == "chunk_gaps" and not timelines:
            continue
        distribution: Distribution = _distribution(whole, name)
        if distribution.n > distribution.censored:
            found.append(_recomputed(name, distribution, taken(read.run.tool, name, tokens)))
    return tuple(found)


def by_its_own(read: Read, name: str) -> list[float] | None:
    """Return the values behind a measure by the file's own rule, successes alone, ascending; None where unknown."""
    ok = [row for row in read.measured if row.outcome == Outcome.ok]
    if name == "chunk_gaps":
        if read.timelines is None:
            return None
        fine = {row.index for row in ok}
        return sorted(
            float(later - earlier)
            for timeline in read.timelines
            if timeline.index in fine
            for earlier, later in zip(timeline.times_ns, timeline.times_ns[1:], strict=False)
        )
    values = {
        "ttft": (row.ttft_ns for row in ok),
        "e2e": (_end_to_end(row, read) for row in ok),
        "itl": (row.tpot_ns for row in ok),
        "tpot": (row.tpot_ns for row in ok),
    }.get(name)
    return None if values is None else sorted(float(value) for value in values if value is not None)


def _end_to_end(row: RequestRow, read: Read) -> int | None:
    definition = read.run.definitions.get("e2e")
    if definition is None or definition.ends != BODY_END:
        return row.e2e_ns
    return row.end_ns - row.sent_ns if row.end_ns is not None and row.sent_ns is not None else None


def linear(ordered: Sequence[float], percent: float) -> float:
    """Return a percentile, linear between closest ranks."""
    return percentile(ordered, percent)


def inverse_cdf(ordered: Sequence[float], percent: float) -> float:
    """Return the smallest value that reaches the share."""
    at = -(-len(ordered) * percent // 100)
    return ordered[max(0, min(len(ordered), int(at)) - 1)]


def _distribution(latencies: Latencies, name: str) -> Distribution:
    found: Distribution = getattr(latencies, name)
    return found


def _tokens(run: Run) -> str | None:
    """Return who counted the tokens of the records: who counts those of the measures that divide by them."""
    known = (run.definitions[name].tokens for name in ("itl", "tpot") if name in run.definitions)
    return next((tokens for tokens in known if tokens is not None), None)


def _recomputed(name: str, told: Distribution, differs: tuple[str, ...]) -> Recomputed:
    values: Mapping[str, float | None] = {f"p{at:g}": getattr(told, f"p{at:g}") for at in SHOWN}
    return Recomputed(
        name=name,
        unit="1/s" if told.unit == "1/s" else "ns",
        n=told.n,
        censored=told.censored,
        mean=told.mean,
        min=told.min,
        max=told.max,
        percentiles={key: value for key, value in values.items() if value is not None},
        infinite=tuple(key for key, value in values.items() if value is None),
        unsupported=told.unsupported,
        differs=differs,
    )
