"""The document of a comparison, `nameplate.compare/1`: what was compared, how, and what each measure came to.

A JSON object with

`schema`        `nameplate.compare/1`
`tool`          the program that wrote this
`answer`        `verdict` and the `sentence` that says it
`a`, `b`        each side: `path`, `results` (path, kind, tool, trials a result), trials left out, notes
`terms`         confidence, margin, least trials a side, how the intervals are made, what one sample is
`differences`   every term in which the sides differ: name, kind (refused, allowed, harmless, unknown), values
`cells`         each load that both have: its trials, and its measures with both sides, differences and verdict
`only_a`, `only_b`   loads that one side alone has
`rated`         each shape's rated number on both sides, with its verdict
`conditions`    what `--fail-if` asked, and what came of it
`notes`         sentences that belong to the whole
`exit_code`     0, 1 where a condition is broken, 3 where one is not known, or without any where nothing is

A measure has `a` and `b` (the trials' values, and their geometric mean as `typical`), `absolute` (b - a) and
`relative` (b / a - 1), each with `estimate`, `low`, `high`; without an interval these two are null. Times are
nanoseconds, rates a second, error rates shares of one, and differences likewise; null is absent, never zero, and a
value that is infinite is null and counted under `infinite`.

Version history: 1 - first.
"""

from __future__ import annotations

from typing import Literal

import msgspec
from msgspec import Struct

from nameplate.compare.measures import Better, Unit
from nameplate.compare.terms import Difference
from nameplate.contract.errors import EvidenceError
from nameplate.measure.study_record import check_schema

COMPARE_SCHEMA = "nameplate.compare/1"

Verdict = Literal["better", "worse", "equal", "not known"]
Overall = Literal["better", "worse", "mixed", "equal", "not known"]
SampleUnit = Literal["trial", "result"]


class Interval(Struct, frozen=True):
    """Hold a difference; without bounds it is what was seen, and nobody knows how far off."""

    estimate: float
    low: float | None = None
    high: float | None = None


class Sample(Struct, frozen=True, kw_only=True):
    """Hold one side of one measure: the values of its trials, and their geometric mean (of shares the mean).

    `requests` is how many the smallest trial has behind its value.
    """

    values: tuple[float | None, ...]
    typical: float | None
    infinite: int = 0
    requests: int | None = None

    @property
    def trials(self) -> int:
        return len(self.values)


class Compared(Struct, frozen=True, kw_only=True):
    """Hold one measure of one cell; `gated` ones are what the comparison is about, the others stand beside it.

    `p_value` is the chance of a difference at least as large between two sides that do not differ, `p_beyond` between
    two that differ by the margin at most; null where there is no interval. `repeated` says that each side holds as many
    results as a verdict needs trials: what changes from one to the next is then in the sample. `reason` says why the
    verdict is what it is.
    """

    statistic: str
    says: str
    unit: Unit
    better: Better
    gated: bool
    repeated: bool
    a: Sample
    b: Sample
    absolute: Interval | None
    relative: Interval | None
    p_value: float | None
    p_beyond: float | None
    unsupported: bool
    verdict: Verdict
    reason: str


class NotCompared(Struct, frozen=True):
    """Name a measure of both sides that must not be compared, and why."""

    statistic: str
    reasons: tuple[str, ...]


class CellCompared(Struct, frozen=True, kw_only=True):
    """Hold one load on both sides; `paired` where each trial has its partner with the same prompts."""

    cell: str
    group: str
    trials_a: tuple[str, ...]
    trials_b: tuple[str, ...]
    paired: bool
    unit: SampleUnit
    measures: tuple[Compared, ...]
    not_compared: tuple[NotCompared, ...] = ()
    notes: tuple[str, ...] = ()


class RatedSide(Struct, frozen=True):
    """Hold one side's rated number: `low` and `high` are where its levels leave it, null where that is open."""

    rated: float | None
    low: float | None
    high: float | None
    status: str
    levels: tuple[str, ...] = ()


class RatedCompared(Struct, frozen=True, kw_only=True):
    """Hold one shape's rated numbers: integers or rates that are verdicts themselves, so without an interval.

    `absolute` bounds b - a by the levels that passed and failed on each side.
    """

    shape: str
    unit: str
    a: RatedSide
    b: RatedSide
    absolute: Interval | None
    verdict: Verdict
    reason: str


class Condition(Struct, frozen=True, kw_only=True):
    """Hold one `--fail-if`: broken where the whole interval is beyond it, held where none of it is."""

    text: str
    outcome: Literal["broken", "held", "not known"]
    details: tuple[str, ...]


class ResultSide(Struct, frozen=True, kw_only=True):
    """Name one result of a side."""

    path: str
    kind: str
    tool: str
    cells: int
    trials: int


class SideDocument(Struct, frozen=True, kw_only=True):
    """Describe one side; `left_out` are trials that do not count, each with its reason."""

    path: str
    results: tuple[ResultSide, ...]
    sessions: int | None
    left_out: tuple[str, ...]
    notes: tuple[str, ...]


class Settings(Struct, frozen=True, kw_only=True):
    """State how differences are judged.

    `margin` is the share of A below which a difference does not matter; of an error rate it is a difference of shares.
    `family` bounds the chance that of two sides that do not differ anything is called different, once among the gated
    measures and once among the others. They stand by `p_beyond`: one result a side says nothing of what a restart
    changes, for which the margin is kept; and of many measures small differences that are true must not lend weight to
    a large one that is not. Gated ones of sides whose results are `repeated` stand by `p_value`.
    """

    confidence: float = 0.95
    margin: float = 0.02
    least_trials: int = 3
    family: float = 0.05
    methods: tuple[str, ...] = ()


class Answer(Struct, frozen=True):
    """Hold what the comparison came to, in one word and one sentence."""

    verdict: Overall
    sentence: str


class Comparison(Struct, frozen=True, kw_only=True):
    """Hold a comparison; the module's text is the format."""

    schema: str = COMPARE_SCHEMA
    tool: str
    answer: Answer
    a: SideDocument
    b: SideDocument
    terms: Settings
    differences: tuple[Difference, ...]
    cells: tuple[CellCompared, ...]
    only_a: tuple[str, ...]
    only_b: tuple[str, ...]
    rated: tuple[RatedCompared, ...]
    conditions: tuple[Condition, ...]
    notes: tuple[str, ...]
    exit_code: int


def encode_comparison(comparison: Comparison) -> bytes:
    """Encode as readable JSON with a final line feed."""
    return msgspec.json.format(msgspec.json.encode(comparison)) + b"\n"


def decode_comparison(data: bytes) -> Comparison:
    """Decode a comparison; EvidenceError where it is damaged or of a schema that this program does not know."""
    check_schema(data, COMPARE_SCHEMA, "the comparison")
    try:
        return msgspec.json.decode(data, type=Comparison)
    except msgspec.MsgspecError as error:
        raise EvidenceError(f"The comparison cannot be read: {error}.") from error
