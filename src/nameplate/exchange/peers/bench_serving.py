"""Results of `vllm bench serve` and SGLang's `bench_serving`: one object a run, the same names for the same statistics.

Both write {mean, median, std, pNN}_{ttft, tpot, itl, ...}_ms, and with details a list a field with an entry a request.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from nameplate.contract.errors import CallerError
from nameplate.evidence.rows import RequestRow
from nameplate.evidence.timeline import Timeline
from nameplate.exchange.formats import SGLANG, VLLM, Format
from nameplate.exchange.loose import Fields
from nameplate.exchange.opening import decoded
from nameplate.exchange.peers.building import harmless, measure_of, text_in, whole_number
from nameplate.exchange.peers.records import (
    GAPS_LIMIT,
    REQUESTS_LIMIT,
    Read,
    ns_of,
    row_of,
    timeline_of,
    with_opening,
)
from nameplate.exchange.peers.run import Counts, Load, Measure, Run, Unit
from nameplate.exchange.peers.sources import (
    EVEN_TOKEN,
    definitions_of,
)
from nameplate.exchange.peers.sources import (
    SGLANG as SGLANG_TOOL,
)
from nameplate.exchange.peers.sources import (
    VLLM as VLLM_TOOL,
)
from nameplate.wire.outcome import Outcome

MS = 1e6
_LATENCIES = {
    "ttft": "ttft",
    "tpot": "tpot",
    "itl": "chunk_gaps",
    "e2el": "e2e",
    "e2e_latency": "e2e",
    "client_queue_time": "client_queue",
}
_VALUES: Mapping[str, tuple[str, Unit]] = {
    "output_throughput": ("output_rate", "1/s"),
    "input_throughput": ("input_rate", "1/s"),
    "total_token_throughput": ("total_rate", "1/s"),
    "total_throughput": ("total_rate", "1/s"),
    "max_output_tokens_per_s": ("peak_output_rate", "1/s"),
    "request_throughput": ("request_rate", "1/s"),
    "request_goodput": ("goodput", "1/s"),
    "concurrency": ("concurrency", "requests"),
    "total_input_tokens": ("total_input_tokens", "tokens"),
    "total_output_tokens": ("total_output_tokens", "tokens"),
    "total_output_tokens_retokenized": ("total_output_tokens_retokenized", "tokens"),
    "accept_length": ("accept_length", "tokens"),
}
_NAMES = "|".join(sorted(_LATENCIES, key=len, reverse=True))
_STATISTIC = re.compile(rf"(mean|median|std|max|min|p\d{{1,2}}(?:\.\d{{1,3}})?)_({_NAMES})_ms")
_LISTS = ("input_lens", "output_lens", "ttfts", "itls", "latencies", "start_times", "errors")
# Of a value that is no list of requests nothing larger is looked at.
_SMALL_BYTES = 1 << 16


def read_run(top: Mapping[str, msgspec.Raw], kind: Format, place: str) -> Read:
    """Read one run; CallerError, with its place, where a value is not what it should be."""
    fields = Fields(_small(top), place)
    tool = VLLM_TOOL if kind is VLLM else SGLANG_TOOL
    measures = (*_latencies(fields), *_values(fields))
    if not measures:
        raise CallerError(f"{place} holds no measure that is known here.")
    definitions = definitions_of(tool, {measure.name for measure in measures})
    backend = fields.text("backend", True)
    if (
        kind is SGLANG
        and backend.startswith("sglang")
        and "oai" not in backend
        and "chunk_gaps" in definitions
    ):
        # Its native interface spreads the gap before a chunk over the tokens that it brought.
        definitions["chunk_gaps"] = msgspec.structs.replace(definitions["chunk_gaps"], of=EVEN_TOKEN)
    rows, timelines, notes = _requests(top, place)
    server = fields.raw().get("server_info")
    run = Run(
        tool=tool,
        label=fields.text("tag", True) or fields.text("label", True),
        model=harmless(fields.text("model_id", True)) or text_in(server, "model_path", "served_model_name"),
        endpoint=harmless(fields.text("base_url", True) or fields.text("endpoint", True)) or None,
        engine=backend or None,
        started_at=fields.text("date", True) or None,
        window_s=fields.positive("duration", True),
        load=_load(fields, kind),
        counts=_counts(fields, rows),
        measures=measures,
        definitions=definitions,
        notes=notes,
    )
    # Without them the end of a request is its gaps added up, to which some versions add the usage chunk's.
    exact = kind is VLLM and "latencies" in top
    return Read(run, rows, timelines, exact_ends=exact)


def _small(top: Mapping[str, msgspec.Raw]) -> dict[str, Any]:
    """Decode what is not a list of requests."""
    return {
        name: decoded(raw, Any, name)
        for name, raw in top.items()
        if name not in _LISTS and memoryview(raw).nbytes <= _SMALL_BYTES
    }


def _latencies(fields: Fields) -> list[Measure]:
    told: dict[str, dict[str, float | None]] = {}
    for name in fields.raw():
        if (found := _STATISTIC.fullmatch(name)) is not None:
            statistic = {"median": "p50"}.get(found[1], found[1])
            known = told.setdefault(found[2], {})
            known[statistic] = fields.number(name, True) if known.get(statistic) is None else known[statistic]
    completed = fields.count("completed", True)
    measures = []
    for name, values in told.items():
        # One value a request, but for the gaps, whose number is nowhere told.
        n = None if _LATENCIES[name] == "chunk_gaps" else completed
        measure = measure_of(_LATENCIES[name], f"{name}_ms", "ns", MS, values, n)
        # All zero is how both write that there was nothing to measure.
        if measure is not None and any((measure.mean, measure.max, *measure.percentiles.values())):
            measures.append(measure)
    order = list(_LATENCIES.values())
    return sorted(measures, key=lambda measure: order.index(measure.name))


def _values(fields: Fields) -> list[Measure]:
    found = []
    for name, (ours, unit) in _VALUES.items():
        value = fields.number(name, True)
        measure = measure_of(ours, name, unit, 1.0, {"mean": value}, None)
        if measure is not None:
            found.append(measure)
    return found


def _load(fields: Fields, kind: Format) -> Load:
    said = fields.raw().get("request_rate")
    rate = fields.positive("request_rate", True) if not isinstance(said, str) else None
    endless = isinstance(said, str) and said.lower().lstrip("+").startswith("inf")
    burstiness = fields.positive("burstiness", True)
    arrivals = None
    if rate is not None:
        arrivals = "poisson" if (burstiness or 1.0) == 1.0 else f"gamma, burstiness {burstiness:g}"
    elif said == "trace":
        arrivals = "trace"
    asked_input = fields.positive("random_input_len", True) if kind is SGLANG else None
    asked_output = fields.positive("random_output_len", True) if kind is SGLANG else None
    completed, tokens_in, tokens_out = (
        fields.positive(name, True) for name in ("completed", "total_input_tokens", "total_output_tokens")
    )
    # Neither says what lengths were asked for with every data set: what was reached stands for it.
    return Load(
        concurrency=whole_number(fields.positive("max_concurrency", True)),
        rate_per_s=rate,
        rate_unbounded=endless,
        arrivals=arrivals,
        requests=whole_number(fields.positive("num_prompts", True)),
        input_tokens=asked_input or (tokens_in / completed if completed and tokens_in else None),
        output_tokens=asked_output or (tokens_out / completed if completed and tokens_out else None),
        dataset=fields.text("dataset_name", True) or None,
    )


def _counts(fields: Fields, rows: Sequence[RequestRow]) -> Counts:
    """Return the counts; older versions of both do not say how many failed."""
    completed, failed = fields.count("completed", True), fields.count("failed", True)
    planned = whole_number(fields.positive("num_prompts", True)) or (len(rows) or None)
    if failed is None and rows:
        failed = sum(row.outcome != Outcome.ok for row in rows)
    elif failed is None and planned is not None and completed is not None and planned >= completed:
        failed = planned - completed
    return Counts(requests=planned, completed=completed, failed=failed)


def _requests(
    top: Mapping[str, msgspec.Raw], place: str
) -> tuple[tuple[RequestRow, ...], tuple[Timeline, ...] | None, tuple[str, ...]]:
    """Return the requests of a detailed result as rows, with their gaps; nothing where it has no details."""
    ttfts = decoded(top.get("ttfts"), list[float | None] | None, f"{place}.ttfts")
    if not ttfts:
        return (), None, ()
    if len(ttfts) > REQUESTS_LIMIT:
        raise CallerError(f"{place} lists {len(ttfts):,} requests; {REQUESTS_LIMIT:,} can be read.")
    n = len(ttfts)
    notes: list[str] = []

    def listed(name: str, kind: Any) -> list[Any]:
        values = decoded(top.get(name), list[kind] | None, f"{place}.{name}")
        if values is None:
            return [None] * n
        if len(values) != n:
            notes.append(f"{name} has {len(values):,} entries for {n:,} requests: it is left out.")
            return [None] * n
        return list(values)

    outputs, inputs = listed("output_lens", float | None), listed("input_lens", float | None)
    errors, itls = listed("errors", str | None), listed("itls", list[float | None] | None)
    starts, latencies = listed("start_times", float | None), listed("latencies", float | None)
    gaps_in_all = sum(len(gaps) for gaps in itls if gaps)
    keep = 0 < gaps_in_all <= GAPS_LIMIT
    if gaps_in_all > GAPS_LIMIT:
        notes.append(f"It lists {gaps_in_all:,} gaps; more than {GAPS_LIMIT:,} are not looked at.")
    rows, timelines = [], []
    for index in range(n):
        gaps = [ns_of(gap) or 0 for gap in itls[index] or ()]
        row = _row(
            index,
            ttfts[index],
            gaps,
            starts[index],
            latencies[index],
            errors[index],
            outputs[index],
            inputs[index],
        )
        rows.append(row)
        if keep and gaps and row.first_output_ns is not None:
            timelines.append(timeline_of(index, row.first_output_ns, gaps))
    # Without starts there is no opening wave to be told apart.
    known = any(start is not None for start in starts)
    return (with_opening(rows) if known else tuple(rows)), tuple(timelines) if keep else None, tuple(notes)


def _row(
    index: int,
    ttft: float | None,
    gaps: list[int],
    start: float | None,
    latency: float | None,
    error: str | None,
    output: float | None,
    prompt: float | None,
) -> RequestRow:
    sent = ns_of(start) or 0
    # Zero is how both write that no token came.
    first = ns_of(ttft) if ttft and ttft > 0 else None
    failed = bool(error) or (first is None and not output)
    last = None
    if first is not None:
        whole = ns_of(latency)
        last = sent + (whole if whole is not None and not failed else first + sum(gaps))
    return row_of(
        index,
        sent_ns=sent,
        first_ns=None if first is None else sent + first,
        last_ns=last,
        outcome=Outcome.stream_error if failed else Outcome.ok,
        error=harmless(error)[:200] if error else None,
        prompt_tokens=whole_number(prompt),
        output_tokens=whole_number(output) if output and not failed else None,
        events=len(gaps) + 1 if first is not None else 0,
        longest_gap_ns=max(gaps, default=None),
    )
