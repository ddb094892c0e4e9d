"""The golden files, one a format, written by hand from the formats' specifications; and ways to alter them.

All of them tell of the same five requests of a server with two slots, one of which is refused: TTFT 50, 60, 40 and
55 ms, gaps (10, 10, 10), (10, 12, 14), (10, 10, 10) and (20, 10, 30) ms.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from nameplate.contract.slo import Slo
from nameplate.exchange.opening import open_result
from nameplate.exchange.peers.importing import import_runs
from nameplate.exchange.peers.run import Imported, Run
from nameplate.report.imported_run import imported_summary

HERE = Path(__file__).parent / "golden"
SUMMARY, RECORDS, RAW = "aiperf_summary.json", "aiperf_records.jsonl", "aiperf_raw.jsonl"
GUIDELLM, VLLM, DETAILED, SGLANG = "guidellm.json", "vllm.json", "vllm_detailed.json", "sglang.jsonl"
GENAI_PERF, INFERENCE_PERF, LLMD = "genai_perf.json", "inference_perf.json", "llmd.json"
LLMPERF, RESPONSES, LLAMA_BENCH = "llmperf_summary.json", "llmperf_responses.json", "llama_bench.json"
FURTHER = (GENAI_PERF, INFERENCE_PERF, LLMPERF, RESPONSES, LLAMA_BENCH, LLMD)
ALL = (SUMMARY, RECORDS, RAW, GUIDELLM, VLLM, DETAILED, SGLANG, *FURTHER)
MS = 1_000_000


def golden(name: str) -> bytes:
    return (HERE / name).read_bytes()


def document(name: str) -> dict[str, Any]:
    """Return a file that is one object."""
    value: dict[str, Any] = json.loads(golden(name))
    return value


def lines(name: str) -> list[dict[str, Any]]:
    """Return the objects of a file that has one a line."""
    return [json.loads(line) for line in golden(name).splitlines()]


def put(directory: Path, value: object, name: str = "given.bin") -> Path:
    """Write an object, a list of objects as lines, or bytes; the name says nothing of the content."""
    path = directory / name
    if isinstance(value, bytes):
        path.write_bytes(value)
    elif isinstance(value, list):
        path.write_text("".join(json.dumps(entry) + "\n" for entry in value))
    else:
        path.write_text(json.dumps(value))
    return path


def imported(path: Path, *slos: str, summary: Path | None = None) -> Imported:
    return import_runs(open_result(path), tuple(map(Slo.parse, slos)), summary)


def only(path: Path, *slos: str, summary: Path | None = None) -> Run:
    """Return the one run of a file."""
    (run,) = imported(path, *slos, summary=summary).runs
    return run


def changed(directory: Path, name: str, change: Callable[[Any], object]) -> Run:
    """Return the run of a golden file that was altered in place."""
    value = document(name) if name not in (RECORDS, RAW, SGLANG) else lines(name)
    change(value)
    return only(put(directory, value))


def contradicted(run: Run) -> list[str]:
    return [check.name for check in run.contradictions]


def shown(found: Imported, width: int = 140) -> str:
    """Return what a person sees."""
    console = Console(width=width, markup=False, emoji=False, highlight=False, color_system=None)
    with console.capture() as capture:
        console.print(imported_summary(found, "got", everything=True))
    return capture.get()


def gates(run: Run) -> dict[str, str]:
    """Return the status of each gate."""
    assert run.judged is not None
    return {gate.gate.value: gate.status for gate in run.judged.gates}


def raw_requests(entries: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the records of a raw export that are measured and were answered."""
    return [
        entry
        for entry in entries
        if entry["metadata"]["benchmark_phase"] == "profiling" and entry["responses"]
    ]
