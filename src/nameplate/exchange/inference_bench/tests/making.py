"""Made-up files of the other tool, and made-up results of ours."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from nameplate.contract.matrix import Kind, label
from nameplate.evidence.rows import RequestRow
from nameplate.exchange.inference_bench.foreign import Document
from nameplate.exchange.inference_bench.imported import imported
from nameplate.exchange.inference_bench.reading import read_document
from nameplate.measure.cell import CounterView
from nameplate.measure.mixed import Mixed, Part
from nameplate.measure.prefill import Prefill
from nameplate.measure.server_side import Gauge
from nameplate.measure.speed_result import CellRow, CellValues, SpeedResult
from nameplate.measure.windows import Window
from nameplate.statistics.percentile import summarise
from nameplate.verdict.cell import CellStatus
from nameplate.verdict.facts import PromptRange

HERE = Path(__file__).parent
PUBLISHED = (HERE / "published.json").read_bytes()
NS = 10**9


def cell(context: int = 8192, concurrency: int = 4, **changes: Any) -> dict[str, Any]:
    """Return a row that is valid unless it is changed."""
    told = {
        "concurrency": concurrency,
        "context_tokens": context,
        "benchmark_mode": "duration",
        "measurement_seconds": 29.98,
        "measurement_wall_seconds": 30.0,
        "client_output_tokens": 3000,
        "total_tokens": 3000,
        "server_output_tokens": 3001,
        "server_gen_throughput": 100.0,
        "aggregate_source": "openai_continuous_usage",
        "aggregate_tps": 3000 / 29.98,
        "request_count": concurrency,
        "completed_request_count": 0,
        "num_errors": 0,
        "avg_running_reqs": float(concurrency),
        "max_running_reqs": concurrency,
        "avg_queue_reqs": 0.0,
        "max_queue_reqs": 0,
        "queue_fraction": 0.0,
        "underfilled": False,
        "warmup_timed_out": False,
        "warmup_duration": 9.0,
        "ready_reason": f"running_reqs={concurrency}/{concurrency}, queue_reqs=0, stable=3.0s",
        "timeout_reason": "",
        "capacity_limited": False,
    }
    for name in ("ttft", "time_to_second_token", "inter_token_latency", "output_tps_per_user"):
        told |= {f"{name}_{part}": 0.5 for part in ("avg", "p50", "p90", "p99")}
    for name in ("request_latency", "e2e_output_tps_per_user", "chunk_inter_token_latency"):
        told |= {f"{name}_{part}": 0.0 for part in ("avg", "p50", "p90", "p99")}
    return told | changes


def file(*cells: dict[str, Any], top: dict[str, Any] | None = None, **metadata: Any) -> bytes:
    """Return a whole file with these rows; its grid is that of the rows unless it is given."""
    told = {
        "version": "0.4.30",
        "engine": "vllm",
        "model": "model",
        "decode_mode": "duration",
        "duration_per_test": 30.0,
        "max_tokens": 2048,
        "max_total_tokens": 1_000_000,
        "unique_context_percent": 100.0,
        "skip_prefill": True,
        "concurrency_levels": sorted({row["concurrency"] for row in cells}),
        "context_lengths": sorted({row["context_tokens"] for row in cells}),
    }
    return json.dumps({"metadata": told | metadata, "results": list(cells), **(top or {})}).encode()


def read(*cells: dict[str, Any], top: dict[str, Any] | None = None, **metadata: Any) -> Document:
    return read_document(file(*cells, top=top, **metadata), "made.json")


def result_of(*cells: dict[str, Any], top: dict[str, Any] | None = None, **metadata: Any) -> SpeedResult:
    return imported(read(*cells, top=top, **metadata), "made.json", "0" * 64, "nameplate test")


def ours(kind: Kind, context: int, concurrency: int, status: CellStatus, **changes: Any) -> CellRow:
    """Return a row of ours with numbers, which are discarded unless it is valid."""
    values = CellValues(
        tokens_per_s=100.0,
        window_s=30.0,
        output_tokens=3000.0,
        requests=concurrency,
        completed=0,
        ttft=summarise([NS // 2] * concurrency),
        itl=summarise([NS // 50] * concurrency),
        per_user=summarise([50.0] * concurrency, "1/s"),
        running=Gauge(30, float(concurrency), float(concurrency)),
        waiting=Gauge(30, 0.0, 0.0),
        queue_share=0.0,
        counter=CounterView(0, 30 * NS, 3001, 3000.0),
        prefill=Prefill(
            samples=(), n=3, median=8000.0, ttft_median_ns=1.0 * NS, server_s=0.9, server_rate=9000.0
        )
        if kind == "prefill"
        else None,
        mixed=_mixed() if kind == "mixed" else None,
        alone_ttft_ns=1.0 * NS if kind == "mixed" else None,
        slowdown=2.0 if kind == "mixed" else None,
    )
    valid = status is CellStatus.valid
    told: dict[str, Any] = {
        "kind": kind,
        "label": label(context),
        "context_tokens": context,
        "concurrency": concurrency,
        "status": status,
        "reason": f"made to be {status}",
        "prompt_tokens": PromptRange(context - 2, context + 2, concurrency),
        "ready_s": 9.0,
        "values": values if valid else None,
        "discarded": None if valid else values,
    }
    return CellRow(**(told | changes))


def request(index: int, ttft_s: float = 0.5, tokens: int = 101, outcome: str = "ok") -> RequestRow:
    """Return the evidence of one request: a token each 20 ms after the first."""
    first = round(ttft_s * NS)
    return RequestRow(
        index=index,
        phase="opening",
        class_="8k/2k",
        slot=index,
        scheduled_ns=0,
        sent_ns=0,
        first_output_ns=first,
        second_output_ns=first + NS // 50,
        last_output_ns=first + (tokens - 1) * NS // 50,
        end_ns=first + tokens * NS // 50,
        outcome=outcome,
        asked_output_tokens=tokens,
        prompt_tokens=8200,
        output_tokens=tokens,
        output_tokens_source="usage",
        output_events=tokens,
        prompt_sha256="0" * 64,
        prompt_head_sha256="0" * 64,
    )


def _mixed() -> Mixed:
    def part(name: str, begin_s: int, end_s: int, rate: float) -> Part:
        return Part(name, Window(begin_s * NS, end_s * NS, "", ""), rate * (end_s - begin_s), rate)

    return Mixed(
        arrival_prompt_tokens=32_768,
        ttft_ns=2 * NS,
        before=part("before", 5, 10, 100.0),
        during=part("during", 10, 12, 40.0),
        after=part("after", 12, 17, 90.0),
        slice_ns=NS,
        timeline=(100.0, 40.0, 90.0),
    )
