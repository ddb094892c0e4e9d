"""From the bytes of a result file of llm-inference-bench to typed values, any version from 0.4 on."""

from __future__ import annotations

import re
from typing import Any, get_args

import msgspec

from nameplate.contract.errors import CallerError
from nameplate.contract.matrix import KI, Kind
from nameplate.exchange.inference_bench.foreign import (
    LOOPED,
    TOOL,
    Cell,
    Document,
    Hardware,
    MixedEntry,
    PrefillEntry,
    Sample,
    Setup,
    Stats,
    Stretch,
    Told,
)
from nameplate.exchange.loose import Fields, decode_object
from nameplate.verdict.cell import CellStatus

OLDEST = (0, 4)
_VERSION = re.compile(r"v?(\d{1,4})\.(\d{1,4})(?:\.\d{1,6})?(?:[-+.][0-9A-Za-z.+-]{1,60})?")
_LENGTH = re.compile(r"(\d{1,9})(k?)", re.IGNORECASE)
# More rows than any matrix has, and more planned cells: what goes over them must end.
CELLS_LIMIT = 2_000
SAMPLES_LIMIT = 200_000
METADATA_LIMIT_BYTES = 1 << 20
# Fields that came in later versions or that only some cells have: their absence is no gap.
_LATER = {"measurement_wall_seconds"}


def read_document(data: bytes, name: str) -> Document:
    """Read a result file; CallerError, in words, where it is none or of a version before 0.4."""
    top = Fields(decode_object(data, name), "")
    setup, metadata = _setup(top, name)
    rows = top.objects("results")
    bursts = top.objects("burst_results", optional=True)
    if not rows and not bursts and not top.has("prefill") and not top.has("mixed_prefill"):
        raise CallerError(
            f"{name} holds no result: results, burst_results, prefill and mixed_prefill are all absent.",
            hint=f"Give a result file of {TOOL}.",
        )
    planned = max(1, len(setup.contexts)) * max(1, len(setup.concurrencies))
    phases = [top.inner(phase, optional=True).raw() for phase in ("prefill", "mixed_prefill")]
    written = len(rows) + len(bursts) + sum(map(len, phases))
    if max(planned, written) > CELLS_LIMIT:
        raise CallerError(
            f"{name} has {written:,} rows and plans {planned:,} cells; {CELLS_LIMIT:,} can be read.",
            hint="The file is damaged, or was not written by the tool.",
        )
    samples = sum(_length(row.raw().get("request_samples")) for row in (*rows, *bursts))
    if samples > SAMPLES_LIMIT:
        raise CallerError(f"{name} has {samples:,} request samples; {SAMPLES_LIMIT:,} can be read.")
    missing: set[str] = set()
    cells = [_cell(row, setup.counted, missing) for row in rows]
    cells += [_cell(row, True, missing) for row in bursts]
    missing |= {f"metadata.{field}" for field in metadata.missing}
    return Document(
        setup=setup,
        cells=tuple(cells),
        prefill=tuple(_prefill(context, row) for context, row in top.by_context("prefill", True)),
        mixed=tuple(_mixed(context, row) for context, row in top.by_context("mixed_prefill", True)),
        events=top.texts("event_log", optional=True),
        hardware=_hardware(top),
        told=_told(top),
        metadata=metadata.raw(),
        missing=tuple(sorted(missing)),
    )


def _length(value: Any) -> int:
    return len(value) if isinstance(value, list) else 0


def context_of(text: str) -> int | None:
    """Read a context as that tool writes it: `64k` is 65,536."""
    match = _LENGTH.fullmatch(text.strip())
    return None if match is None else int(match[1]) * (KI if match[2] else 1)


def _setup(top: Fields, name: str) -> tuple[Setup, Fields]:
    metadata = top.inner("metadata")
    if not metadata.raw():
        found = ", ".join(sorted(map(str, top.raw()))[:8]) or "nothing"
        raise CallerError(
            f"{name} is no result file of {TOOL}: it has no metadata.",
            why=f"At its top it has: {found}.",
            hint="A directory of our own is shown as it is; other tools' files cannot be imported yet.",
        )
    if len(msgspec.json.encode(metadata.raw())) > METADATA_LIMIT_BYTES:
        raise CallerError(
            f"{name}: its metadata is larger than {METADATA_LIMIT_BYTES >> 20} MiB; no run's is."
        )
    version = metadata.text("version")
    match = _VERSION.fullmatch(version)
    if match is None:
        raise CallerError(
            f"{name}: metadata.version is {version!r}, which is no version of {TOOL}.",
            why="What its fields mean depends on the version.",
        )
    if (int(match[1]), int(match[2])) < OLDEST:
        raise CallerError(
            f"{name} was written by {TOOL} {version}; this program reads 0.4 and later.",
            why="Before that, fields of the same name meant other things.",
            hint="Measure again with a newer version, or with nameplate speed.",
        )
    mode = metadata.text("decode_mode", optional=True)
    layer = metadata.text("primary_decode_layer", optional=True)
    arguments = top.inner("startup_diagnostics", optional=True).inner("args", optional=True)
    mixed = metadata.inner("mixed_prefill", optional=True)
    prefill = metadata.text("prefill_mode", optional=True)
    if metadata.flag("skip_prefill", optional=True):
        prefill = "skipped"
    lengths = (context_of(part) for part in arguments.text("prefill_contexts", optional=True).split(","))
    setup = Setup(
        version=version,
        generator=metadata.text("generator", optional=True),
        engine=metadata.text("engine"),
        model=metadata.text("model"),
        server=metadata.text("server", optional=True),
        contexts=metadata.counts("context_lengths"),
        concurrencies=metadata.counts("concurrency_levels"),
        duration_s=metadata.positive("duration_per_test"),
        max_tokens=metadata.count("max_tokens"),
        pool_tokens=metadata.count("max_total_tokens") or None,
        unique_percent=metadata.number("unique_context_percent", optional=True),
        metrics=metadata.flag("metrics_available", optional=True),
        counted=mode == "request-count" or layer == "burst_e2e_decode",
        run_burst=bool(metadata.flag("run_burst", optional=True)),
        prefill=prefill,
        prefill_contexts=tuple(length for length in lengths if length),
        mixed_contexts=mixed.counts("contexts") if mixed.raw() else (),
        mixed_streams=mixed.count("decode_streams", optional=True) or 0,
    )
    if setup.unique_percent is not None and not 0 <= setup.unique_percent <= 100:
        raise CallerError(
            f"{name}: metadata.unique_context_percent is {setup.unique_percent:g}, no percentage."
        )
    return setup, metadata


def _cell(row: Fields, counted: bool, missing: set[str]) -> Cell:
    context, concurrency = row.count("context_tokens"), row.count("concurrency")
    if context is None or not concurrency:
        raise CallerError(f"{row.place} does not say which cell it is: context_tokens and concurrency.")
    mode = row.text("benchmark_mode", optional=True)
    findings = row.objects("loop_diagnostics", optional=True)
    streams = {f.count("stream_index", True) for f in findings if f.text("status", True) == "confirmed"}
    cell = Cell(
        burst=mode == "request-count" or (counted and not mode),
        context=context,
        concurrency=concurrency,
        target_requests=row.count("request_count_target", optional=True) or None,
        rate=row.number("aggregate_tps"),
        measured_s=row.positive("measurement_seconds"),
        wall_s=row.positive("measurement_wall_seconds", optional=True),
        client_tokens=row.count("client_output_tokens"),
        total_tokens=row.count("total_tokens", optional=True),
        server_tokens=row.count("server_output_tokens", optional=True) or None,
        source=row.text("aggregate_source", optional=True),
        ttft=_stats(row, "ttft"),
        second_gap=_stats(row, "time_to_second_token"),
        latency=_stats(row, "request_latency"),
        itl=_stats(row, "inter_token_latency"),
        per_user=_stats(row, "output_tps_per_user"),
        e2e_per_user=_stats(row, "e2e_output_tps_per_user"),
        chunk_gap=_stats(row, "chunk_inter_token_latency"),
        requests=row.count("request_count", optional=True),
        completed=row.count("completed_request_count", optional=True),
        samples=tuple(_sample(sample) for sample in row.objects("request_samples", optional=True)),
        errors=row.count("num_errors"),
        failure=row.text("failure_reason", True) or row.text("error", True),
        state=row.text("status", optional=True).lower(),
        server_rate=row.positive("server_gen_throughput", optional=True),
        utilisation=row.positive("server_utilization", optional=True),
        accept_rate=row.positive("server_spec_accept_rate", optional=True),
        running_mean=row.number("avg_running_reqs", optional=True),
        running_max=row.number("max_running_reqs", optional=True),
        waiting_mean=row.number("avg_queue_reqs", optional=True),
        waiting_max=row.number("max_queue_reqs", optional=True),
        queue_share=row.number("queue_fraction", optional=True),
        underfilled=bool(row.flag("underfilled", optional=True)),
        timed_out=bool(row.flag("warmup_timed_out", optional=True)),
        warmup_s=row.positive("warmup_duration", optional=True),
        ready=row.text("ready_reason", optional=True),
        timeout=row.text("timeout_reason", optional=True),
        capacity_limited=bool(row.flag("capacity_limited", optional=True)),
        looped=bool(row.flag("loop_detected", optional=True)),
        looped_streams=len(streams) or None,
    )
    # A cell that did not run has nothing that could be missing.
    if cell.rate is None or cell.rate >= 0 or cell.rate < LOOPED:
        missing.update(f"results.{field}" for field in row.missing if field not in _LATER)
    return cell


def _stats(row: Fields, name: str) -> Stats:
    values = [row.positive(f"{name}_{part}", optional=True) for part in ("avg", "p50", "p90", "p99")]
    if not any(row.has(f"{name}_{part}") for part in ("avg", "p50")):
        row.missing.append(f"{name}_*")
    return Stats(*values)


def _sample(row: Fields) -> Sample:
    return Sample(
        ttft_s=row.positive("ttft"),
        second_gap_s=row.positive("time_to_second_token", optional=True),
        latency_s=row.positive("latency", optional=True),
        itl_s=row.positive("inter_token_latency_avg", optional=True),
        chunk_gap_s=row.positive("chunk_inter_token_latency_avg", optional=True),
        input_tokens=row.count("input_tokens", optional=True) or None,
        output_tokens=row.count("output_tokens", optional=True) or None,
        per_user=row.positive("output_tps_per_user", optional=True),
        e2e_per_user=row.positive("e2e_output_tps_per_user", optional=True),
        completed=bool(row.flag("completed", optional=True)),
    )


def _prefill(context: int, row: Fields) -> PrefillEntry:
    server = row.inner("server_validation", optional=True)
    return PrefillEntry(
        context=context,
        ttft_s=row.positive("ttft_seconds") or row.positive("client_ttft_seconds", optional=True),
        rate=row.positive("tok_per_sec"),
        prompt_tokens=row.count("prompt_tokens", optional=True) or None,
        samples=row.count("samples", optional=True),
        method=row.text("method", optional=True),
        server_rate=server.positive("tok_per_sec", optional=True),
        server_s=server.positive("prefill_seconds", optional=True),
        cached_tokens=server.count("cached_tokens", optional=True),
        invalid=server.text("invalid_reason", optional=True),
    )


def _mixed(context: int, row: Fields) -> MixedEntry:
    background = row.inner("background", optional=True)
    windows = row.inner("windows", optional=True)
    timeline = row.inner("timeline", optional=True)
    rates = Fields(dict(enumerate_texts(timeline.raw().get("tok_s"))), f"{timeline.place}.tok_s")
    return MixedEntry(
        context=context,
        state=row.text("status").lower() or "ok",
        reason=row.text("reason", optional=True),
        streams=background.count("streams", optional=True) or 0,
        alone_s=row.positive("ttft_alone_s"),
        loaded_s=row.positive("ttft_under_load_s"),
        slowdown=row.positive("slowdown", optional=True),
        prompt_tokens=row.count("prompt_tokens_under_load", optional=True) or None,
        cached_tokens=row.count("cached_tokens_under_load", optional=True),
        before_rate=row.positive("bg_tok_s_before", optional=True),
        before=_stretch(windows.inner("before", optional=True)),
        during=_stretch(windows.inner("during", optional=True)),
        after=_stretch(windows.inner("after", optional=True)),
        slice_s=timeline.positive("bin_seconds", optional=True),
        timeline=tuple(rates.number(name) or 0.0 for name in rates.raw()),
        estimated=background.text("token_source", optional=True) not in ("", "usage"),
        looped=bool(row.flag("loop_detected", optional=True)),
        errors=row.texts("errors", optional=True),
        warnings=row.texts("warnings", optional=True),
    )


def enumerate_texts(values: Any) -> list[tuple[str, Any]]:
    """Return a list's entries by their position; nothing for what is no list."""
    return [(str(index), value) for index, value in enumerate(values)] if isinstance(values, list) else []


def _stretch(row: Fields) -> Stretch | None:
    start, end = row.number("start_s", True), row.number("end_s", True)
    tokens, rate = row.number("tokens", True), row.number("tok_s", True)
    if start is None or end is None or tokens is None or rate is None or end <= start:
        return None
    return Stretch(start, end, tokens, rate)


def _hardware(top: Fields) -> Hardware | None:
    startup = top.inner("startup_diagnostics", optional=True)
    p2p = top.inner("nvidia_p2p_override", optional=True).raw()
    if not startup.raw() and not p2p:
        return None
    return Hardware(
        hostname=startup.text("hostname", optional=True),
        uname=startup.text("uname", optional=True),
        gpu_query=_command(startup.inner("nvidia_smi_query", optional=True)),
        topology=_command(startup.inner("nvidia_smi_topo", optional=True)),
        p2p=p2p,
        described=startup.text("described_host", optional=True),
    )


def _command(row: Fields) -> tuple[tuple[str, ...], int | None, str, str] | None:
    if not row.raw():
        return None
    code = row.number("returncode", optional=True)
    said = (row.raw().get("stdout"), row.raw().get("stderr"))
    out, error = (value if isinstance(value, str) else "" for value in said)
    return row.texts("cmd", optional=True), None if code is None else int(code), out, error


def _told(top: Fields) -> tuple[Told, ...]:
    """Read the statuses that we wrote beside that tool's fields; kinds and statuses unknown here are left out."""
    own = top.raw().get("nameplate")
    found = []
    rows = Fields(own, "nameplate").objects("cells", True) if isinstance(own, dict) else []
    for row in rows[:CELLS_LIMIT]:
        kind, status = row.text("kind"), row.text("status")
        context, concurrency = row.count("context_tokens"), row.count("concurrency")
        if kind not in get_args(Kind) or status not in list(CellStatus) or context is None or not concurrency:
            continue
        notes = row.texts("notes", optional=True)
        told = Told(kind, context, concurrency, CellStatus(status), row.text("reason"), notes)  # type: ignore[arg-type]
        found.append(told)
    return tuple(found)
