"""Runs as a table (CSV) and as OpenMetrics text: a line a measure with its definition, nothing for what is absent."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Sequence

from msgspec import structs

from nameplate.exchange.loose import plain
from nameplate.exchange.peers.building import percent_of
from nameplate.exchange.peers.run import Measure, Run

_COLUMNS = (
    "run", "tool", "version", "model", "endpoint", "concurrency", "rate_per_s", "requests", "completed", "failed",
    "verdict", "measure", "unit", "n", "mean", "std", "min", "max", "p50", "p90", "p95", "p99", "unsupported",
    "definition",
)  # fmt: skip
_SHOWN = ("p50", "p90", "p95", "p99")
# A cell that begins with one of these is a formula in a spreadsheet.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_COUNTS = ("requests", "completed", "failed", "cancelled", "unfinished")
# OpenMetrics wants base units: seconds, and a name that ends in its unit.
_FAMILIES = {
    "ns": ("_seconds", "seconds", 1e9),
    "1/s": ("_per_second", "", 1.0),
    "tokens": ("", "", 1.0),
    "requests": ("", "", 1.0),
}


def csv_of(runs: Sequence[Run]) -> bytes:
    """Return a table with a row a measure; times in nanoseconds, `inf` for never, empty for what is absent."""
    text = io.StringIO(newline="")
    table = csv.writer(text, lineterminator="\n")
    table.writerow(_COLUMNS)
    for run in runs:
        for measure in run.measures:
            table.writerow(map(_cell, _row(run, measure)))
    return text.getvalue().encode()


def _row(run: Run, measure: Measure) -> Iterator[object]:
    load, counts = run.load, run.counts
    yield from (run.label, run.tool, run.version, run.model, run.endpoint, load.concurrency, load.rate_per_s)
    yield from (counts.requests, counts.completed, counts.failed)
    yield run.judged.verdict.status if run.judged is not None else None
    yield from (measure.name, measure.unit, measure.n, measure.mean, measure.std, measure.min, measure.max)
    for key in _SHOWN:
        yield math.inf if key in measure.infinite else measure.percentiles.get(key)
    yield " ".join(measure.unsupported)
    definition = run.definitions.get(measure.name)
    yield definition.meaning if definition is not None else None


def _cell(value: object) -> str:
    """Write a cell; a text that a spreadsheet would run is made a text."""
    if value is None:
        return ""
    if isinstance(value, str):
        said = plain(value)
        return f"'{said}" if said.startswith(_FORMULA) else said
    return repr(value) if isinstance(value, float) else str(value)


def openmetrics_of(runs: Sequence[Run]) -> bytes:
    """Return OpenMetrics text: a gauge a measure, its statistics told apart by the label `statistic`.

    What is not known has no sample; a percentile that is infinite has `+Inf`.
    """
    runs = _told_apart(runs)
    lines: list[str] = []
    names = list(dict.fromkeys((measure.name, measure.unit) for run in runs for measure in run.measures))
    for name, unit in names:
        suffix, base, factor = _FAMILIES[unit]
        family = f"nameplate_{name.removesuffix('_rate')}{suffix}"
        meaning = next((run.definitions[name].meaning for run in runs if name in run.definitions), name)
        lines.append(f"# TYPE {family} gauge")
        if base:
            lines.append(f"# UNIT {family} {base}")
        lines.append(f"# HELP {family} {_escaped(meaning)}")
        for run in runs:
            measure = run.measure(name)
            if measure is not None:
                lines += (
                    f"{family}{{{_labels(run)},statistic={_quoted(key)}}} {_number(value / factor)}"
                    for key, value in _statistics(measure)
                )
    lines += _count_lines(runs)
    return ("\n".join([*lines, "# EOF"]) + "\n").encode()


def _statistics(measure: Measure) -> Iterator[tuple[str, float]]:
    for key in ("mean", "std", "min", "max"):
        value = getattr(measure, key)
        if value is not None:
            yield key, value
    for key in sorted(measure.percentiles, key=lambda name: percent_of(name) or 0.0):
        yield key, measure.percentiles[key]
    for key in measure.infinite:
        yield key, math.inf


def _number(value: float) -> str:
    return "+Inf" if math.isinf(value) else repr(value)


def _told_apart(runs: Sequence[Run]) -> list[Run]:
    """Give runs labels that differ, without which their samples would be one."""
    labels: set[str] = set()
    found = []
    for at, run in enumerate(runs):
        label = run.label if run.label and run.label not in labels else f"{run.label} #{at + 1}".strip()
        labels.add(label)
        found.append(structs.replace(run, label=label))
    return found


def _count_lines(runs: Sequence[Run]) -> Iterator[str]:
    yield "# TYPE nameplate_run_requests gauge"
    yield "# HELP nameplate_run_requests Requests of a run by what became of them; requests is all of them."
    for run in runs:
        for key in _COUNTS:
            value = getattr(run.counts, key)
            if value is not None:
                yield f"nameplate_run_requests{{{_labels(run)},fate={_quoted(key)}}} {value}"


def _labels(run: Run) -> str:
    told = (("run", run.label), ("tool", run.tool), ("model", run.model or ""))
    return ",".join(f"{name}={_quoted(plain(value))}" for name, value in told)


def _quoted(value: str) -> str:
    return f'"{_escaped(value)}"'


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
