"""One run as a tool recorded it, whichever tool that was: load, counts, measures with their definitions, checks.

The document of an import (`nameplate.import/1`) holds the runs of one file. Times are nanoseconds, rates are per
second, tokens and requests are counts; null is not known, never zero. Numbers are the source's own; what we computed
from its request records stands beside them in `recomputed`, and nothing of it replaces them.

Version history: 1 - first.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec
from msgspec import Struct

from nameplate.contract.errors import EvidenceError
from nameplate.verdict.gate import GateResult
from nameplate.verdict.trial import TrialVerdict

SCHEMA: Literal["nameplate.import/1"] = "nameplate.import/1"

# The check of a file's lines, and what an import answers where some of them are lost.
LINES = "lines"
PARTLY_LOST = 3

Unit = Literal["ns", "1/s", "tokens", "requests"]
CheckStatus = Literal["holds", "contradicted", "unverified"]


class Definition(Struct, frozen=True, kw_only=True):
    """Say what a measure means in its source: in words, and by the properties that decide what it compares with.

    `begins` and `ends` are events of a request, `of` what has one value, `tokens` who counted them, `failures` what
    becomes of requests that failed, `percentiles` the method, `denominator` what a rate is divided by. None is: not
    known, or not a property of this measure; `properties` names those that are.
    """

    meaning: str
    documented: str
    begins: str | None = None
    ends: str | None = None
    of: str | None = None
    tokens: str | None = None
    failures: str | None = None
    percentiles: str | None = None
    denominator: str | None = None
    properties: tuple[str, ...] = ()


class Measure(Struct, frozen=True, kw_only=True):
    """Hold one measure: `field` is its name there, `n` how many values carry it, percentiles by their percent.

    `infinite` names the percentiles that reach requests which count as never; other tools have none.
    """

    name: str
    field: str
    unit: Unit
    n: int | None = None
    mean: float | None = None
    std: float | None = None
    min: float | None = None
    max: float | None = None
    percentiles: Mapping[str, float] = {}
    infinite: tuple[str, ...] = ()
    unsupported: tuple[str, ...] = ()


class Load(Struct, frozen=True, kw_only=True):
    """Hold what load was asked for; `rate_unbounded` is an open loop that sends everything at once."""

    concurrency: int | None = None
    rate_per_s: float | None = None
    rate_unbounded: bool = False
    arrivals: str | None = None
    requests: int | None = None
    warmup_requests: int | None = None
    duration_s: float | None = None
    input_tokens: float | None = None
    output_tokens: float | None = None
    dataset: str | None = None


class Counts(Struct, frozen=True, kw_only=True):
    """Hold what became of the requests; `left_out` were started, and are not among them (warm-up, drain)."""

    requests: int | None = None
    completed: int | None = None
    failed: int | None = None
    cancelled: int | None = None
    unfinished: int | None = None
    left_out: int | None = None


class Check(Struct, frozen=True):
    """Hold one check of the file by its own numbers."""

    name: str
    status: CheckStatus
    detail: str


class Recomputed(Struct, frozen=True, kw_only=True):
    """Hold a measure computed by our rules from the file's request records; `differs`: events that are not ours.

    Of its `n` members `censored` failed or were cut: they stand at infinity, so a percentile that reaches them is
    absent from `percentiles` and named in `infinite`.
    """

    name: str
    unit: Unit
    n: int
    censored: int = 0
    mean: float | None = None
    min: float | None = None
    max: float | None = None
    percentiles: Mapping[str, float] = {}
    infinite: tuple[str, ...] = ()
    unsupported: tuple[str, ...] = ()
    differs: tuple[str, ...] = ()


class Judged(Struct, frozen=True):
    """Hold our verdict from the file's evidence, with all gates: what it cannot prove is unverified."""

    verdict: TrialVerdict
    gates: tuple[GateResult, ...]
    unproven: tuple[str, ...] = ()


class Run(Struct, frozen=True, kw_only=True):
    """Hold one run; `label` tells it from others of its file, `window_s` is what its rates are divided by."""

    tool: str
    version: str | None = None
    label: str = ""
    model: str | None = None
    endpoint: str | None = None
    engine: str | None = None
    started_at: str | None = None
    window_s: float | None = None
    load: Load = Load()
    counts: Counts = Counts()
    measures: tuple[Measure, ...] = ()
    definitions: Mapping[str, Definition] = {}
    recomputed: tuple[Recomputed, ...] = ()
    checks: tuple[Check, ...] = ()
    judged: Judged | None = None
    notes: tuple[str, ...] = ()

    def measure(self, name: str) -> Measure | None:
        """Return a measure by our name for it."""
        return next((measure for measure in self.measures if measure.name == name), None)

    @property
    def contradictions(self) -> tuple[Check, ...]:
        return tuple(check for check in self.checks if check.status == "contradicted")


class Imported(Struct, frozen=True, kw_only=True):
    """Hold all runs of one file: `format` is what it was recognised as, `file` and `sha256` what was read.

    `summary` is AIPerf's own summary where one was set beside its records; it is kept as well. `checks` are of the file
    as a whole, beside those of each run.
    """

    schema: Literal["nameplate.import/1"] = SCHEMA
    tool: str
    format: str
    file: str
    sha256: str
    bytes: int
    summary: str | None = None
    summary_sha256: str | None = None
    runs: tuple[Run, ...]
    checks: tuple[Check, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """Return 4 where a run contradicts itself, else 3 where a part of the file is lost, else 0.

        That a file does not tell enough to check all of it is how most files are, and no fault.
        """
        checks = [*self.checks, *(check for run in self.runs for check in run.checks)]
        if any(check.status == "contradicted" for check in checks):
            return EvidenceError.exit_code
        lost = any(check.name == LINES and check.status == "unverified" for check in checks)
        return PARTLY_LOST if lost else 0


def encode(document: Imported) -> bytes:
    """Encode as readable JSON with a final line feed."""
    return msgspec.json.format(msgspec.json.encode(document)) + b"\n"


def decode(data: bytes) -> Imported:
    """Decode an import; EvidenceError where it is damaged or of another schema."""
    try:
        return msgspec.json.decode(data, type=Imported)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise EvidenceError(f"An imported result cannot be read: {error}.") from error
