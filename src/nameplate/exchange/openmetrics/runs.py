"""Runs as metric families: a gauge a measure, its statistics told apart by the label `statistic`.

What is not known has no sample; a percentile that is infinite has `+Inf`. An invalid trial of ours has its verdict and
no number.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from msgspec import structs

from nameplate.exchange.openmetrics.family import Family, Sample
from nameplate.exchange.peers.building import percent_of
from nameplate.exchange.peers.run import Measure, Run
from nameplate.exchange.peers.sources import OURS

_FATES = ("completed", "failed", "cancelled", "unfinished")
# Of rates the name says what is counted; other measures are named as they are.
_RATES = {
    "output_rate": "output_tokens",
    "input_rate": "input_tokens",
    "total_rate": "tokens",
    "peak_output_rate": "peak_output_tokens",
    "request_rate": "requests",
    "goodput": "goodput_requests",
    "per_user": "user_output_tokens",
}


def families_of(runs: Sequence[Run]) -> Iterator[Family]:
    """Yield the families of runs, each run told apart by its label `run`."""
    runs = [_judged(run) for run in _told_apart(runs)]
    yield Family(
        "nameplate_run", "info", "", "A run, with its verdict where it has one.", tuple(map(_info, runs))
    )
    for name, unit in dict.fromkeys((measure.name, measure.unit) for run in runs for measure in run.measures):
        yield _measure(runs, name, unit)
    sent = [Sample(_labels(run), run.counts.requests) for run in runs if run.counts.requests is not None]
    yield Family("nameplate_requests_sent", "counter", "", "Requests of a run.", tuple(sent))
    yield Family(
        "nameplate_requests", "counter", "", "Requests of a run by what became of them.", tuple(_fates(runs))
    )


def _measure(runs: Sequence[Run], name: str, unit: str) -> Family:
    meaning = next((run.definitions[name].meaning for run in runs if name in run.definitions), name)
    if unit == "ns":
        family, base, factor = f"nameplate_{name}_seconds", "seconds", 1e9
    elif unit == "1/s":
        family, base, factor = f"nameplate_{_RATES.get(name, name)}_per_second", "", 1.0
    else:
        family, base, factor = f"nameplate_{name}", "", 1.0
    samples = [
        Sample({**_labels(run), "statistic": key}, value / factor)
        for run in runs
        if (measure := run.measure(name)) is not None
        for key, value in _statistics(measure)
    ]
    return Family(family, "gauge", base, meaning, tuple(samples))


def _statistics(measure: Measure) -> Iterator[tuple[str, float]]:
    for key in ("mean", "std", "min", "max"):
        value = getattr(measure, key)
        if value is not None:
            yield key, value
    for key in sorted(measure.percentiles, key=lambda name: percent_of(name) or 0.0):
        yield key, measure.percentiles[key]
    for key in measure.infinite:
        yield key, math.inf


def _fates(runs: Sequence[Run]) -> Iterator[Sample]:
    for run in runs:
        for key in _FATES:
            value = getattr(run.counts, key)
            if value is not None:
                yield Sample({**_labels(run), "fate": key}, value)


def _info(run: Run) -> Sample:
    verdict = {"verdict": run.judged.verdict.status} if run.judged is not None else {}
    return Sample({**_labels(run), "version": run.version or "", **verdict}, 1)


def _labels(run: Run) -> dict[str, str]:
    return {"run": run.label, "tool": run.tool, "model": run.model or ""}


def _judged(run: Run) -> Run:
    """Return a run without its numbers where they must not count."""
    invalid = run.tool == OURS and run.judged is not None and run.judged.verdict.status == "invalid"
    return structs.replace(run, measures=()) if invalid else run


def _told_apart(runs: Sequence[Run]) -> list[Run]:
    """Give runs labels that differ, without which their samples would be one."""
    labels: set[str] = set()
    found = []
    for at, run in enumerate(runs):
        label = run.label if run.label and run.label not in labels else f"{run.label} #{at + 1}".strip()
        labels.add(label)
        found.append(structs.replace(run, label=label))
    return found
