"""AIPerf's summary, `profile_export_aiperf.json`: statistics by metric tag, what was configured, how it ended."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import structs

from nameplate.contract.errors import CallerError
from nameplate.exchange.loose import Fields
from nameplate.exchange.opening import decoded
from nameplate.exchange.peers.building import (
    NS_OF,
    first_number,
    harmless,
    measure_of,
    number_in,
    text_in,
    whole_number,
)
from nameplate.exchange.peers.further import GENAI_PERF, further_definitions
from nameplate.exchange.peers.run import Counts, Load, Measure, Run, Unit
from nameplate.exchange.peers.sources import AIPERF, OURS, SENT, STARTED, USAGE, definitions_of, replaced

# By tag: our name, and what it is in.
TAGS: Mapping[str, tuple[str, Unit]] = {
    "time_to_first_token": ("ttft", "ns"),
    "time_to_first_output_token": ("first_answer", "ns"),
    "time_to_second_token": ("second_output", "ns"),
    "inter_token_latency": ("itl", "ns"),
    "inter_chunk_latency": ("chunk_gaps", "ns"),
    "request_latency": ("e2e", "ns"),
    "output_token_throughput_per_user": ("per_user", "1/s"),
    "output_token_throughput": ("output_rate", "1/s"),
    "total_token_throughput": ("total_rate", "1/s"),
    "request_throughput": ("request_rate", "1/s"),
    "goodput": ("goodput", "1/s"),
    "output_sequence_length": ("output_tokens", "tokens"),
    "input_sequence_length": ("prompt_tokens", "tokens"),
    "total_osl": ("total_output_tokens", "tokens"),
    "total_isl": ("total_input_tokens", "tokens"),
}
_RATE = re.compile(r"(?:requests|tokens)/s(?:ec)?(?:/user)?")
# Of values that are no measure: what is larger than this is text that nobody reads.
_INNER_LIMIT_BYTES = 4 << 20


def read_genai_perf(top: Mapping[str, msgspec.Raw]) -> Run:
    """Read GenAI-Perf's summary, whose shape AIPerf took over: its definitions are its own, failures are not told."""
    run = read_summary(top)
    return structs.replace(
        run,
        tool=GENAI_PERF,
        counts=Counts(completed=run.counts.completed),
        notes=(
            "How many requests failed is not told; those with an empty answer count in requests/s alone.",
        ),
        definitions=further_definitions(GENAI_PERF, {measure.name for measure in run.measures}),
    )


def read_summary(top: Mapping[str, msgspec.Raw]) -> Run:
    """Read the one run of a summary; CallerError where a block is not what it should be."""
    config = _inner(top, "input_config")
    info = _inner(top, "run_info")
    records = _inner(top, "records")
    blocks = {name: _block(top, records, name) for name in (*TAGS, *_COUNTS)}
    fields = Fields({name: _text(top, name) for name in _TEXTS}, "")
    measures = tuple(
        measure
        for tag, (name, unit) in TAGS.items()
        if (block := blocks[tag]) is not None and (measure := _measure(name, tag, unit, block)) is not None
    )
    if not measures and blocks["request_count"] is None:
        raise CallerError(
            "AIPerf's summary holds no metric that is known here.",
            hint="Give the profile_export_aiperf.json of a run that ended.",
        )
    duration = blocks["benchmark_duration"]
    command = str(info.get("cli_command") or _inner(top, "input_config").get("cli_command") or "")
    definitions = definitions_of(AIPERF, {measure.name for measure in measures})
    notes = _notes(top, fields)
    if _counts_by_server(config, command):
        definitions = replaced(definitions, tokens=USAGE)
    version = fields.text("aiperf_version", True)
    if version.startswith(OURS):
        # What we wrote in its shape begins where ours does.
        begun = {name for name, held in definitions.items() if held.begins == STARTED}
        definitions |= replaced({name: definitions[name] for name in begun}, begins=SENT)
        notes += (
            "Written by nameplate in AIPerf's shape, by AIPerf's definitions but for the begin of a request.",
        )
    return Run(
        tool=AIPERF,
        version=version or None,
        label=harmless(str(info.get("run_label") or "")),
        model=_model(config, command),
        endpoint=text_in(config, "url", "urls"),
        started_at=fields.text("start_time", True) or None,
        window_s=_seconds(duration) if duration is not None else None,
        load=_load(config, command, measures),
        counts=_counts(blocks, fields),
        measures=measures,
        definitions=definitions,
        notes=notes,
    )


_COUNTS = ("request_count", "error_request_count", "benchmark_duration")
_TEXTS = ("aiperf_version", "start_time", "end_time", "incomplete_reason")


def _block(top: Mapping[str, msgspec.Raw], records: Mapping[str, Any], name: str) -> Fields | None:
    value = decoded(top.get(name), Any, name) if name in top else records.get(name)
    if value is None:
        return None
    if not isinstance(value, dict):
        raise CallerError(
            f"{name} is no block of statistics.", hint="The file is damaged, or was not written by the tool."
        )
    return Fields(value, name)


def _inner(top: Mapping[str, msgspec.Raw], name: str) -> dict[str, Any]:
    raw = top.get(name)
    if raw is None or memoryview(raw).nbytes > _INNER_LIMIT_BYTES:
        return {}
    value = decoded(raw, Any, name)
    return value if isinstance(value, dict) else {}


def _text(top: Mapping[str, msgspec.Raw], name: str) -> str | None:
    return decoded(top.get(name), str | None, name)  # type: ignore[no-any-return]


def _measure(name: str, tag: str, unit: Unit, block: Fields) -> Measure | None:
    factor = _factor(block.text("unit", True), unit)
    if factor is None:
        raise CallerError(
            f"{tag}.unit is {block.text('unit', True)!r}, which is no unit of {name} that is known here.",
            why="A number without its unit says nothing.",
        )
    told = {
        key: block.number(key, True)
        for key in ("std", "min", "max", "p1", "p5", "p10", "p25", "p50", "p75", "p90", "p95", "p99")
    }
    told["mean"] = block.number("avg", True)
    return measure_of(name, tag, unit, factor, told, block.count("count", True))


def _factor(said: str, unit: Unit) -> float | None:
    if unit == "ns":
        return NS_OF.get(said)
    if unit == "1/s":
        return 1.0 if _RATE.fullmatch(said) else None
    return 1.0 if said in (unit, "") else None


def _seconds(block: Fields) -> float | None:
    value, factor = block.number("avg", True), NS_OF.get(block.text("unit", True))
    return None if value is None or factor is None else value * factor / 1e9


def _counts(blocks: Mapping[str, Fields | None], fields: Fields) -> Counts:
    """Return the counts; AIPerf leaves a count of errors out where it is zero, and counts cancelled ones among them."""
    done, wrong = blocks["request_count"], blocks["error_request_count"]
    completed = whole_number(first_number(done, "avg")) if done is not None else None
    failed = whole_number(first_number(wrong, "avg")) if wrong is not None else None
    if completed is None:
        return Counts(failed=failed)
    del fields
    return Counts(requests=completed + (failed or 0), completed=completed, failed=failed or 0)


def _model(config: Mapping[str, Any], command: str) -> str | None:
    """Return the model: newer versions list objects with a name, older ones names; else the command line's."""
    models = config.get("models")
    listed = models.get("items") if isinstance(models, dict) else models
    if isinstance(listed, list):
        listed = [held.get("name") if isinstance(held, dict) else held for held in listed]
    found = text_in({"models": listed}, "models") or text_in(config, "model_names", "model_name", "model")
    said = re.search(r"--model(?:-names)?[ =]'?([^\s']{1,200})", command)
    return found or (harmless(said[1]) if said else None)


def _load(config: Mapping[str, Any], command: str, measures: Sequence[Measure]) -> Load:
    def number(option: str, *names: str) -> float | None:
        told = _option(command, option)
        return told if told is not None else number_in(config, *names)

    reached = {measure.name: measure.mean for measure in measures}
    rate = number("request-rate", "request_rate", "rate")
    concurrency = number("concurrency", "concurrency")
    return Load(
        concurrency=whole_number(concurrency),
        rate_per_s=rate,
        arrivals=_arrivals(config, command) if rate is not None else None,
        requests=whole_number(number("request-count", "request_count", "requests")),
        warmup_requests=whole_number(
            _option(command, "warmup-request-count") or number_in(config, "warmup_request_count")
        ),
        duration_s=number("benchmark-duration", "benchmark_duration", "duration"),
        # With a data set no length is asked for: what was reached stands for it.
        input_tokens=number("isl", "isl", "input_tokens")
        or number("synthetic-input-tokens-mean", "isl_mean")
        or reached.get("prompt_tokens"),
        output_tokens=number("osl", "osl", "output_tokens")
        or number("output-tokens-mean", "osl_mean")
        or reached.get("output_tokens"),
        dataset=text_in(config, "public_dataset", "custom_dataset_type", "dataset_type")
        or text_in(config.get("datasets"), "format", "path"),
    )


def _arrivals(config: Mapping[str, Any], command: str) -> str | None:
    found = re.search(r"--arrival-pattern[ =](\w{1,20})", command) or re.search(
        r"--request-rate-mode[ =](\w{1,20})", command
    )
    return found[1].lower() if found else text_in(config, "arrival_pattern", "request_rate_mode")


def _option(command: str, name: str) -> float | None:
    found = re.search(rf"--{name}[ =]['\"]?(\d{{1,12}}(?:\.\d{{1,6}})?)['\"]?(?:\s|$)", command)
    return float(found[1]) if found else None


def _counts_by_server(config: Mapping[str, Any], command: str) -> bool:
    """Tell whether tokens are the server's count, which has to be asked for."""
    if re.search(r"--use-server-token-counts?\b", command):
        return True
    endpoint = config.get("endpoint")
    return isinstance(endpoint, dict) and any(
        endpoint.get(name) is True for name in ("use_server_token_count", "use_server_token_counts")
    )


def _notes(top: Mapping[str, msgspec.Raw], fields: Fields) -> tuple[str, ...]:
    notes = []
    if decoded(top.get("was_cancelled"), bool | None, "was_cancelled"):
        notes.append("AIPerf says that the run was cancelled: it is not what was planned.")
    if decoded(top.get("is_complete"), bool | None, "is_complete") is False:
        why = fields.text("incomplete_reason", True)
        notes.append(f"AIPerf says that the run is not complete{f': {why}' if why else ''}.")
    errors = decoded(top.get("error_summary"), list[Any] | None, "error_summary") or []
    for entry in errors[:5]:
        if isinstance(entry, dict):
            details = entry.get("error_details")
            said = details if isinstance(details, dict) else entry
            words = " ".join(
                str(said[key]) for key in ("code", "type", "message") if said.get(key) is not None
            )
            notes.append(f"AIPerf counts {entry.get('count', '?')} x {words}")
    return tuple(map(harmless, notes))
