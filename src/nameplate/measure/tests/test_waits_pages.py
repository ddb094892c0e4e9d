"""Queue and prefill from the pages of three engines: what each observed of our requests, and of nothing else."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from msgspec import structs

from nameplate.engines.fakes import reply
from nameplate.engines.metrics import SGLANG, TENSORRT_LLM, VLLM, MetricsTable
from nameplate.engines.page import read_state
from nameplate.engines.state import Histograms, ServerSample, ServerState
from nameplate.engines.tests.helpers import golden
from nameplate.measure.from_disk import idle_detail
from nameplate.measure.tests.trials import MS, S, closed_loop, evidence
from nameplate.measure.waits import Part, Waits, measure_waits
from nameplate.statistics.percentile import percentile

REQUESTS = 66
QUEUE_S = [0.004 * n for n in range(REQUESTS)]
PREFILL_S = [0.08 + 0.001 * (n % 7) for n in range(REQUESTS)]
_LINE = re.compile(r"(?P<name>[^{ ]+)(?P<labels>\{[^}]*\})? (?P<value>\S+)")


def empty(name: str, edges: Sequence[float], labels: str = "") -> str:
    """Return the text of a histogram that has observed nothing."""
    joined = f"{labels}," if labels else ""
    told = [f'{name}_bucket{{{joined}le="{edge}"}} 0.0' for edge in (*edges, "+Inf")]
    return "\n".join([*told, f"{name}_sum{{{labels}}} 0.0", f"{name}_count{{{labels}}} 0.0"]) + "\n"


def observed(page: str, name: str, values: Sequence[float], *where: str) -> str:
    """Return the page after a histogram (the series with all of `where` in its labels) observed these values."""
    told = []
    for line in page.splitlines():
        found = _LINE.fullmatch(line)
        if found is None or not all(label in line for label in where):
            told.append(line)
            continue
        value = float(found["value"])
        if found["name"] == f"{name}_bucket":
            edge = float(line.partition('le="')[2].partition('"')[0])
            value += sum(one <= edge for one in values)
        elif found["name"] == f"{name}_sum":
            value += sum(values)
        elif found["name"] == f"{name}_count":
            value += len(values)
        told.append(f"{found['name']}{found['labels'] or ''} {value!r}")
    return "\n".join(told) + "\n"


# The edges of the engines' own sources.
SGLANG_QUEUE = (0.0, 0.001, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 3, 4, 5, 10, 15, 20, 30, 40, 50, 60)
SGLANG_STAGE = tuple(0.001 * 1.62**n for n in range(30))
TRTLLM_QUEUE = (
    0.3,
    0.5,
    0.8,
    1.0,
    1.5,
    2.0,
    2.5,
    5.0,
    10.0,
    15.0,
    20.0,
    30.0,
    40.0,
    50.0,
    60.0,
    120.0,
    240.0,
)
TRTLLM_PREFILL = (
    0.001,
    0.005,
    0.01,
    0.025,
    0.05,
    0.1,
    0.25,
    0.5,
    1.0,
    2.5,
    5.0,
    10.0,
    20.0,
    40.0,
    80.0,
    160.0,
)

VLLM_PAGE = golden("vllm-0.32-metrics.txt").body.decode()
SGLANG_PAGE = "sglang:num_running_reqs 0.0\nsglang:num_queue_reqs 0.0\n" + "".join(
    empty("sglang:queue_time_seconds", SGLANG_QUEUE, f'tp_rank="{rank}"')
    + "".join(
        empty("sglang:per_stage_req_latency_seconds", SGLANG_STAGE, f'tp_rank="{rank}",stage="{stage}"')
        for stage in ("request_process", "prefill_forward", "chunked_prefill")
    )
    for rank in (0, 1)
)
TRTLLM_PAGE = (
    "trtllm_num_requests_running 0.0\ntrtllm_num_requests_waiting 0.0\n"
    + empty("trtllm_request_queue_time_seconds", TRTLLM_QUEUE)
    + empty("trtllm_request_prefill_time_seconds", TRTLLM_PREFILL)
)


def vllm(page: str, queue: Sequence[float], prefill: Sequence[float]) -> str:
    return observed(
        observed(page, "vllm:request_queue_time_seconds", queue), "vllm:request_prefill_time_seconds", prefill
    )


def sglang(page: str, queue: Sequence[float], prefill: Sequence[float]) -> str:
    """Both tensor ranks observe the same requests, and pieces of a prompt are a stage of their own."""
    stage = "sglang:per_stage_req_latency_seconds"
    page = observed(page, stage, [*prefill, *prefill], 'stage="chunked_prefill"')
    return observed(
        observed(page, "sglang:queue_time_seconds", queue), stage, prefill, 'stage="prefill_forward"'
    )


def trtllm(page: str, queue: Sequence[float], prefill: Sequence[float]) -> str:
    return observed(
        observed(page, "trtllm_request_queue_time_seconds", queue),
        "trtllm_request_prefill_time_seconds",
        prefill,
    )


ENGINES = [
    pytest.param(VLLM, VLLM_PAGE, vllm, id="vllm"),
    pytest.param(SGLANG, SGLANG_PAGE, sglang, id="sglang"),
    pytest.param(TENSORRT_LLM, TRTLLM_PAGE, trtllm, id="tensorrt-llm"),
]


def waits_of(before: ServerState, after: ServerState, **more: Any) -> Waits:
    """Measure as from the journal: two readings of an idle server, through JSON and back."""
    case = evidence(closed_loop(4, 64, ttft=lambda _: 400 * MS))
    for moment, state in (("before", before), ("after", after)):
        detail = msgspec.json.decode(msgspec.json.encode(idle_detail(moment, state)))
        sample = msgspec.convert(detail["sample"], ServerSample)
        kept = msgspec.convert(detail["histograms"], Histograms)
        case = structs.replace(case, **{f"idle_{moment}": sample, f"histograms_{moment}": kept})
    waits = measure_waits(structs.replace(case, **more))
    assert waits is not None
    return waits


def holds(part: Part | None, values_s: Sequence[float]) -> None:
    """See that a part's mean is that of the values, and that its quantiles lie within."""
    assert part is not None
    assert part.mean_ns == pytest.approx(sum(values_s) / len(values_s) * S, abs=1000)
    for interval, percent in ((part.p50, 50), (part.p95, 95), (part.p99, 99)):
        assert interval is not None
        # Two of them are warm-up of unknown place: whichever two are taken out, the quantile is within.
        ordered = sorted(values_s)
        for left in (ordered[2:], ordered[:-2], ordered[1:-1]):
            truth = percentile(left, percent) * S
            assert interval.low <= truth * (1 + 1e-9)
            assert interval.high is None or truth <= interval.high * (1 + 1e-9)


@pytest.mark.parametrize(("table", "page", "observe"), ENGINES)
def test_each_engines_page_gives_the_parts(table: MetricsTable, page: str, observe: Any) -> None:
    """Old requests on the page are no part of it; ranks and stages are not counted twice."""
    old = observe(page, [9.0, 3.0], [2.0, 1.0])
    new = observe(old, QUEUE_S, PREFILL_S)
    waits = waits_of(*(read_state(reply(text), table, at) for at, text in enumerate((old, new))))
    assert (waits.source, waits.n, waits.reason) == ("server", REQUESTS, "")
    holds(waits.queue, QUEUE_S)
    holds(waits.prefill, PREFILL_S)
    assert waits.rest_mean_ns is not None


@pytest.mark.parametrize(("table", "page", "observe"), ENGINES)
def test_a_stranger_on_any_of_them_is_seen(table: MetricsTable, page: str, observe: Any) -> None:
    """One request more than ours: no parts."""
    new = observe(page, [*QUEUE_S, 0.1], [*PREFILL_S, 0.1])
    waits = waits_of(*(read_state(reply(text), table, at) for at, text in enumerate((page, new))))
    assert waits.source == "none" and "not all of that is ours" in waits.reason


def test_a_page_without_histograms_is_said() -> None:
    """llama.cpp tells totals only, and others only where metrics are enabled."""
    state = read_state(reply("vllm:num_requests_running 0\n"), VLLM, 0)
    assert "no histograms" in waits_of(state, state).reason
