"""The llm-d benchmark report, 0.1 and 0.2: what another harness measured, in one shape.

What its measures begin and end at is the harness's, and not in the report: such numbers are shown and not compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from nameplate.contract.errors import CallerError
from nameplate.exchange.loose import Fields
from nameplate.exchange.opening import decoded
from nameplate.exchange.peers.building import harmless, measure_of, text_in, whole_number
from nameplate.exchange.peers.further import LLMD, LLMD_OURS, further_definitions
from nameplate.exchange.peers.run import Counts, Load, Measure, Run, Unit
from nameplate.exchange.peers.sources import OURS

_MEASURES: Mapping[str, tuple[str, str, Unit]] = {
    "time_to_first_token": ("latency", "ttft", "ns"),
    "time_per_output_token": ("latency", "tpot", "ns"),
    "normalized_time_per_output_token": ("latency", "normalised_tpot", "ns"),
    "inter_token_latency": ("latency", "itl", "ns"),
    "request_latency": ("latency", "e2e", "ns"),
    "input_token_rate": ("throughput", "input_rate", "1/s"),
    "output_token_rate": ("throughput", "output_rate", "1/s"),
    "total_token_rate": ("throughput", "total_rate", "1/s"),
    "request_rate": ("throughput", "request_rate", "1/s"),
    "input_length": ("requests", "prompt_tokens", "tokens"),
    "output_length": ("requests", "output_tokens", "tokens"),
}
# Version 0.1 has rates as numbers, by these names.
_PLAIN = {
    "input_tokens_per_sec": "input_rate", "output_tokens_per_sec": "output_rate", "total_tokens_per_sec": "total_rate",
    "requests_per_sec": "request_rate",
}  # fmt: skip
_FACTORS: Mapping[str, tuple[Unit, float]] = {
    "s": ("ns", 1e9), "ms": ("ns", 1e6), "s/token": ("ns", 1e9), "ms/token": ("ns", 1e6), "tokens/s": ("1/s", 1.0),
    "queries/s": ("1/s", 1.0), "count": ("tokens", 1.0),
}  # fmt: skip
_PERCENTILES = {
    "p0p1": "p0.1", "p1": "p1", "p5": "p5", "p10": "p10", "p25": "p25", "p50": "p50", "p75": "p75", "p90": "p90",
    "p95": "p95", "p99": "p99", "p99p9": "p99.9",
}  # fmt: skip


def read_llmd(top: Mapping[str, msgspec.Raw]) -> Run:
    """Read a report; CallerError, with its place, where a value is not what it should be."""
    version = decoded(top.get("version"), str | float | None, "version")
    scenario, run = (_fields(top, name) for name in ("scenario", "run"))
    if "metrics" in top:
        told = _fields(top, "metrics")
        harness, harness_version = scenario.inner("load", True).text("name", True), ""
        load = Fields({}, "")
    else:
        told = _fields(top, "results").inner("request_performance", True).inner("aggregate", True)
        load = scenario.inner("load", True).inner("standardized", True)
        harness, harness_version = load.text("tool", True), load.text("tool_version", True)
    measures = tuple(_measures(told))
    if not measures:
        raise CallerError("The report holds no measure of requests that is known here.")
    requests = told.inner("requests", True)
    names = {measure.name for measure in measures}
    stack = scenario.raw().get("stack")
    return Run(
        tool=LLMD,
        version=harmless(f"{version}, by {harness} {harness_version}".strip())
        if harness
        else harmless(str(version)),
        label=harmless(run.text("description", True) or run.text("uid", True)),
        model=_model(stack) or text_in(scenario.raw().get("model"), "name"),
        engine=text_in(stack, "tool"),
        started_at=run.inner("time", True).text("start", True) or None,
        load=_load(load, {measure.name: measure.mean for measure in measures}),
        counts=_counts(requests),
        measures=measures,
        definitions=further_definitions(LLMD_OURS if harness == OURS else LLMD, names),
    )


def _fields(top: Mapping[str, msgspec.Raw], name: str) -> Fields:
    return Fields(decoded(top.get(name), dict[str, Any] | None, name) or {}, name)


def _measures(told: Fields) -> Iterator[Measure]:
    for field, (group, name, unit) in _MEASURES.items():
        held = told.inner(group, True).inner(field, True)
        if not held.raw():
            continue
        said = held.text("units", True)
        known, factor = _FACTORS.get(said, (None, 0.0))
        if known != unit:
            raise CallerError(
                f"{held.place}.units is {said!r}, which is no unit of {name} that is known here.",
                why="A number without its unit says nothing.",
            )
        values = {"mean": held.number("mean", True), "std": held.number("stddev", True)}
        values |= {key: held.number(key, True) for key in ("min", "max")}
        values |= {ours: held.number(theirs, True) for theirs, ours in _PERCENTILES.items()}
        if (measure := measure_of(name, field, unit, factor, values, None)) is not None:
            yield measure
    throughput = told.inner("throughput", True)
    for field, name in _PLAIN.items():
        value = {"mean": throughput.number(field, True)}
        if (measure := measure_of(name, field, "1/s", 1.0, value, None)) is not None:
            yield measure


def _counts(requests: Fields) -> Counts:
    total, failed, cut = (requests.count(name, True) for name in ("total", "failures", "incomplete"))
    known = total is not None and failed is not None and total >= failed + (cut or 0)
    completed = total - failed - (cut or 0) if known and total is not None and failed is not None else None
    return Counts(requests=total, completed=completed, failed=failed, unfinished=cut)


def _load(load: Fields, reached: Mapping[str, float | None]) -> Load:
    concurrency = load.raw().get("concurrency")
    lengths = {
        name: load.inner(f"{name}_seq_len", True).positive("value", True) for name in ("input", "output")
    }
    return Load(
        concurrency=whole_number(load.positive("concurrency", True))
        if not isinstance(concurrency, str)
        else None,
        rate_per_s=load.positive("rate_qps", True),
        input_tokens=lengths["input"] or reached.get("prompt_tokens"),
        output_tokens=lengths["output"] or reached.get("output_tokens"),
    )


def _model(stack: Any) -> str | None:
    """Return the model of the first component that serves one."""
    for component in stack if isinstance(stack, list) else ():
        held = component.get("standardized") if isinstance(component, dict) else None
        model = held.get("model") if isinstance(held, dict) else None
        if (found := text_in(model, "name")) is not None:
            return found
    return None
