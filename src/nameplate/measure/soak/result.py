"""The result of a soak: a pure function of its segments' results, which are pure functions of files.

A JSON object with

`schema`        `nameplate.soak/1`
`segments`      each segment's own result (`segment.SegmentResult`): counts, rates, windows, courses, parts, outages,
                unfinished requests, clock steps; nothing in it is joined with another segment's
`gaps`          times between segments in which nothing was submitted or seen: reported, never bridged
`counts`        the segments' counts added up
`tokens`        likewise
`rates`         over all segments: numerators and denominators added, gaps left out of both; the events are named
`latencies`     percentiles over the soak: completed only, beside best and worst case with the unfinished
`misleading`    what the completed ones alone hide, in words
`slos`          exact counts against each SLO's limit
`warm_up`       which first windows the drift verdict leaves out, and why
`drift`         the verdict over windows, with methods and thresholds
`parts`         every server's life in order, changes against the one before
`verdict`       SLOs and gates: status, reasons, exit code

Times of a segment are its own monotonic nanoseconds; across segments `*_s` are seconds since the first submission by
the wall clock. Null is absent; a percentile that is infinite is null.

Version history: 1 - first.
"""

from __future__ import annotations

import msgspec
from msgspec import Struct

from nameplate.contract.errors import EvidenceError
from nameplate.measure.rates import Rate
from nameplate.measure.soak.segment import Counts, Part, SegmentResult, Tokens
from nameplate.statistics.censoring import CensoredPercentile
from nameplate.verdict.drift import Drift
from nameplate.verdict.soak import SloCount, SoakVerdict

SOAK_SCHEMA = "nameplate.soak/1"


class Gap(Struct, frozen=True, kw_only=True):
    """Hold a time between two segments; `length_s` is null where the wall clock contradicts their order."""

    after: str
    before: str
    begin_wall_ns: int
    end_wall_ns: int
    length_s: float | None


class Latency(Struct, frozen=True, kw_only=True):
    """Hold one latency over the soak: mean of the completed, and its percentiles with bounds, in nanoseconds."""

    metric: str
    n: int
    completed: int
    open: int
    never: int
    mean_completed_ns: float | None
    percentiles: tuple[CensoredPercentile, ...]


class SoakRate(Struct, frozen=True, kw_only=True):
    """Hold one rate over all segments; `parts` are the segments' own, each with its window and the events at its edges.

    `seconds` is the sum of their lengths: gaps are in neither numerator nor denominator.
    """

    of: str
    begins: str
    ends: str
    per_s: float
    counted: float
    seconds: float
    estimated: bool
    parts: tuple[Rate, ...]


class WarmUp(Struct, frozen=True, kw_only=True):
    """Say which first windows are no part of the drift verdict: `windows` of them, `seconds` in all, and by what."""

    windows: int
    seconds: float
    method: str
    detail: str


class SoakResult(Struct, frozen=True, kw_only=True):
    """Hold a soak's measurement and verdict; the module's text is the format."""

    schema: str = SOAK_SCHEMA
    segments: tuple[SegmentResult, ...]
    gaps: tuple[Gap, ...]
    began_wall_ns: int
    submitted_s: float
    planned_s: float
    counts: Counts
    tokens: Tokens
    rates: tuple[SoakRate, ...]
    latencies: tuple[Latency, ...]
    misleading: tuple[str, ...]
    slos: tuple[SloCount, ...]
    parts: tuple[Part, ...]
    warm_up: WarmUp
    drift: Drift
    verdict: SoakVerdict


def encode_soak(result: SoakResult) -> bytes:
    """Encode as readable JSON with a final line feed."""
    return msgspec.json.format(msgspec.json.encode(result)) + b"\n"


def decode_soak(data: bytes) -> SoakResult:
    """Decode; EvidenceError where it is damaged or of a schema that this program does not know."""
    try:
        schema = msgspec.json.decode(data, type=_Schema).schema
        if schema == SOAK_SCHEMA:
            return msgspec.json.decode(data, type=SoakResult)
    except msgspec.MsgspecError as error:
        raise EvidenceError(f"The result of the soak cannot be read: {error}.") from error
    raise EvidenceError(
        f"The result has the schema {schema!r}; this program reads {SOAK_SCHEMA!r}.",
        hint="Use a newer nameplate.",
    )


class _Schema(Struct):
    schema: str
