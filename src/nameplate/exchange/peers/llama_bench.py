"""llama-bench's JSON or JSONL: a test an entry, of a model in the same process: no server, no requests."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from nameplate.contract.errors import CallerError
from nameplate.exchange.loose import Fields
from nameplate.exchange.opening import decoded
from nameplate.exchange.peers.building import harmless, measure_of
from nameplate.exchange.peers.further import LLAMA_BENCH, further_definitions
from nameplate.exchange.peers.run import Check, Load, Measure, Run

_SMALL_BYTES = 1 << 20
# It prints rates with six digits, and nanoseconds whole.
_ROUNDING = 1e-4


def read_test(top: Mapping[str, msgspec.Raw], place: str) -> Run:
    """Read one test; CallerError, with its place, where a value is not what it should be."""
    small = {
        name: decoded(raw, Any, name) for name, raw in top.items() if memoryview(raw).nbytes <= _SMALL_BYTES
    }
    fields = Fields(small, place)
    prompt, output, depth = (fields.count(name, True) or 0 for name in ("n_prompt", "n_gen", "n_depth"))
    name = "total_rate" if prompt and output else "decode_rate" if output else "prefill_rate"
    samples_ns, samples_ts = (_samples(fields, name) for name in ("samples_ns", "samples_ts"))
    measures = tuple(_measures(fields, name, samples_ns, samples_ts))
    if not measures:
        raise CallerError(f"{place} holds no rate: the test did not come to an end.")
    build = fields.number("build_number", True)
    return Run(
        tool=LLAMA_BENCH,
        version=f"b{build:.0f}" if build is not None else None,
        label=_label(prompt, output, depth),
        model=harmless(fields.text("model_type", True) or fields.text("model_filename", True)) or None,
        engine=harmless(
            f"llama.cpp {fields.text('build_commit', True)} {fields.text('backends', True)}"
        ).strip(),
        started_at=fields.text("test_time", True) or None,
        load=Load(
            concurrency=1,
            input_tokens=prompt or None,
            output_tokens=output or None,
        ),
        measures=measures,
        definitions=further_definitions(LLAMA_BENCH, {measure.name for measure in measures}),
        checks=tuple(_checks(fields, prompt + output, samples_ns, samples_ts)),
        notes=("A model in the tool's own process: no server, no tokenization, no sampling.",),
    )


def _label(prompt: int, output: int, depth: int) -> str:
    said = "+".join(f"{kind}{n}" for kind, n in (("pp", prompt), ("tg", output)) if n) or "nothing"
    return said + (f" @ d{depth}" if depth else "")


def _samples(fields: Fields, name: str) -> list[float]:
    listed = fields.raw().get(name)
    if listed is None:
        return []
    if not isinstance(listed, list):
        raise CallerError(f"{fields.place}.{name} is no list.", hint="The file is damaged.")
    whole = Fields({str(at): value for at, value in enumerate(listed)}, f"{fields.place}.{name}")
    found = (whole.number(str(at)) for at in range(len(listed)))
    return [value for value in found if value is not None]


def _measures(
    fields: Fields, name: str, samples_ns: list[float], samples_ts: list[float]
) -> Iterator[Measure]:
    for ours, field, samples, unit in (
        (name, "avg_ts", samples_ts, "1/s"),
        ("repetition", "avg_ns", samples_ns, "ns"),
    ):
        told = {
            "mean": fields.positive(field, True),
            "std": fields.number(field.replace("avg", "stddev"), True),
        }
        if told["mean"] is None:
            continue
        if samples:
            told |= {"min": min(samples), "max": max(samples)}
        measure = measure_of(ours, field, "1/s" if unit == "1/s" else "ns", 1.0, told, len(samples) or None)
        if measure is not None:
            yield measure


def _checks(fields: Fields, tokens: int, samples_ns: list[float], samples_ts: list[float]) -> Iterator[Check]:
    for field, samples in (("avg_ns", samples_ns), ("avg_ts", samples_ts)):
        told = fields.number(field, True)
        if told is not None and samples:
            mean = math.fsum(samples) / len(samples)
            off = abs(mean - told) > _ROUNDING * max(mean, told) + 1
            said = f"{field} is {told:,.6g}, the mean of its {len(samples)} samples {mean:,.6g}"
            yield Check(field, "contradicted" if off else "holds", said)
    if tokens and samples_ns and len(samples_ns) == len(samples_ts):
        wrong = sum(
            abs(tokens * 1e9 / ns - rate) > 0.01 * rate if ns > 0 else True
            for ns, rate in zip(samples_ns, samples_ts, strict=True)
        )
        said = f"{tokens:,} tokens by the time of each repetition: {wrong} of {len(samples_ns)} rates differ"
        yield Check("rates", "contradicted" if wrong else "holds", said)
