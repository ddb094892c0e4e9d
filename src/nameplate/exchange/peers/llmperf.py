"""LLMPerf's summary, a flat object, and its responses, a list with an object a request."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec

from nameplate.contract.errors import CallerError
from nameplate.evidence.rows import RequestRow
from nameplate.exchange.formats import LLMPERF_RESPONSES
from nameplate.exchange.loose import Fields
from nameplate.exchange.opening import Line, decoded
from nameplate.exchange.peers.building import harmless, measure_of, whole_number
from nameplate.exchange.peers.further import further_definitions
from nameplate.exchange.peers.lines import Lines
from nameplate.exchange.peers.records import REQUESTS_LIMIT, Read, ns_of, row_of
from nameplate.exchange.peers.run import Counts, Load, Measure, Run, Unit
from nameplate.exchange.peers.sources import LLMPERF
from nameplate.wire.outcome import Outcome

# Of values that are no list of ours nothing larger is looked at.
_SMALL_BYTES = 1 << 16
_STATISTICS: Mapping[str, tuple[str, Unit, float]] = {
    "ttft_s": ("ttft", "ns", 1e9),
    "inter_token_latency_s": ("tpot", "ns", 1e9),
    "end_to_end_latency_s": ("e2e", "ns", 1e9),
    "request_output_throughput_token_per_s": ("e2e_per_user", "1/s", 1.0),
    "number_output_tokens": ("output_tokens", "tokens", 1.0),
    "number_input_tokens": ("prompt_tokens", "tokens", 1.0),
}


def read_llmperf(top: Mapping[str, msgspec.Raw]) -> Run:
    """Read a summary; CallerError, with its place, where a value is not what it should be."""
    small = {name: raw for name, raw in top.items() if memoryview(raw).nbytes <= _SMALL_BYTES}
    fields = Fields({name: decoded(raw, Any, name) for name, raw in small.items()}, "")
    measures = tuple(_measures(fields))
    if not measures:
        raise CallerError(
            "The summary holds no measure that is known here: no request of the run ended well."
        )
    requests, failed = (
        fields.count(f"results_{name}", True) for name in ("num_requests_started", "number_errors")
    )
    return Run(
        tool=LLMPERF,
        version=fields.text("version", True) or None,
        label=harmless(fields.text("name", True)),
        model=harmless(fields.text("model", True)) or None,
        started_at=_when(fields),
        load=Load(
            concurrency=whole_number(fields.positive("num_concurrent_requests", True)),
            input_tokens=fields.positive("mean_input_tokens", True),
            output_tokens=fields.positive("mean_output_tokens", True),
        ),
        counts=Counts(
            requests=requests, completed=fields.count("results_num_completed_requests", True), failed=failed
        ),
        measures=measures,
        definitions=further_definitions(LLMPERF, {measure.name for measure in measures}),
    )


def _measures(fields: Fields) -> Iterator[Measure]:
    n = fields.count("results_num_completed_requests", True)
    for field, (name, unit, factor) in _STATISTICS.items():
        place = f"results_{field}"
        told = {key: fields.number(f"{place}_{key}", True) for key in ("mean", "min", "max")}
        told["std"] = fields.number(f"{place}_stddev", True)
        told |= {f"p{at}": fields.number(f"{place}_quantiles_p{at}", True) for at in (25, 50, 75, 90, 95, 99)}
        if (measure := measure_of(name, field, unit, factor, told, n)) is not None:
            yield measure
    for field, name, factor in (
        ("mean_output_throughput_token_per_s", "output_rate", 1.0),
        ("num_completed_requests_per_min", "request_rate", 1 / 60),
    ):
        value = {"mean": fields.number(f"results_{field}", True)}
        if (measure := measure_of(name, field, "1/s", factor, value, None)) is not None:
            yield measure


def _when(fields: Fields) -> str | None:
    at = fields.positive("timestamp", True)
    return None if at is None or at > 1e11 else datetime.fromtimestamp(at, UTC).isoformat()


class _Response(msgspec.Struct):
    ttft_s: float | None = None
    inter_token_latency_s: float | None = None
    end_to_end_latency_s: float | None = None
    number_input_tokens: float | None = None
    number_output_tokens: float | None = None
    error_code: int | str | None = None
    error_msg: str | None = None


def read_responses(items: Iterable[Line]) -> Read:
    """Read the responses; when each was sent is not in the file, so that there is no opening wave and no rate."""
    lines = Lines(LLMPERF_RESPONSES)
    rows: list[RequestRow] = []
    for line in items:
        if not lines.take(line):
            continue
        assert line.value is not None
        if len(rows) >= REQUESTS_LIMIT:
            raise CallerError(f"The file lists more than {REQUESTS_LIMIT:,} requests; no more can be read.")
        place = f"entry {line.number}"
        known = {name: raw for name, raw in line.value.items() if name in _Response.__struct_fields__}
        told = _Response(
            **{name: decoded(raw, _TYPES[name], f"{place}.{name}") for name, raw in known.items()}
        )
        rows.append(_row(len(rows), told))
    lines.close(len(rows))
    ok = sum(row.outcome == Outcome.ok for row in rows)
    run = Run(
        tool=LLMPERF,
        counts=Counts(requests=len(rows), completed=ok, failed=len(rows) - ok),
        definitions=further_definitions(LLMPERF, {"tpot"}),
        checks=lines.checks(),
        notes=("It lists requests alone: the tool's own statistics are in its *_summary.json.",),
    )
    return Read(run, tuple(rows), exact_ends=False)


_TYPES = {field.name: field.type for field in msgspec.structs.fields(_Response)}


def _row(index: int, told: _Response) -> RequestRow:
    tokens = whole_number(told.number_output_tokens)
    failed = told.error_code is not None
    first = ns_of(told.ttft_s) if told.ttft_s and told.ttft_s > 0 and not failed else None
    last = None
    if first is not None and tokens and told.inter_token_latency_s:
        # All gaps and the first token's wait, divided by the tokens: together the time to the last content.
        last = ns_of(told.inter_token_latency_s * tokens)
    return row_of(
        index,
        sent_ns=0,
        first_ns=first,
        last_ns=max(first, last) if first is not None and last is not None else first,
        end_ns=ns_of(told.end_to_end_latency_s) if not failed else None,
        outcome=Outcome.stream_error if failed else Outcome.ok,
        error=harmless(told.error_msg)[:200] if told.error_msg else None,
        prompt_tokens=whole_number(told.number_input_tokens),
        output_tokens=tokens if tokens and not failed else None,
        events=1 if first is not None else 0,
    )
