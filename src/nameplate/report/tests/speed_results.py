"""Build speed results for tests: one of an H200 with every status, and small ones to order."""

from __future__ import annotations

from typing import Any

from msgspec import structs

from nameplate.contract.contract import Contract
from nameplate.contract.identity import Fact, Identity
from nameplate.contract.limits import ServerLimits
from nameplate.contract.matrix import Kind, Matrix, MixedRule, label
from nameplate.contract.sampling import Sampling
from nameplate.contract.target import Target
from nameplate.hosts.description import HostDescription
from nameplate.hosts.diagnostic import Diagnostic
from nameplate.hosts.gpu import Gpu
from nameplate.hosts.machine import Cpu, Memory, System
from nameplate.hosts.p2p import of_texts
from nameplate.hosts.place import Place
from nameplate.measure.mixed import Mixed, Part
from nameplate.measure.prefill import Prefill, PrefillSample
from nameplate.measure.server_side import Gauge
from nameplate.measure.speed_result import CellRow, CellValues, Method, Origin, SpeedResult
from nameplate.measure.windows import Window
from nameplate.statistics.percentile import Distribution, summarise
from nameplate.verdict.cell import CellStatus
from nameplate.verdict.facts import PromptRange

MS, S = 1_000_000, 1_000_000_000
KI = 1024
POOL = 2_100_000
CONTEXTS = (8 * KI, 16 * KI, 32 * KI, 64 * KI, 128 * KI, 251 * KI)
LEVELS = (1, 2, 4, 8, 16, 32, 64, 128)
HOSTILE = "\x1b[31m[bold]owned[/bold]\u202e\n\x07"


def spread(middle: float, n: int, unit: str = "ns") -> Distribution:
    """Return a distribution of n values around a middle one."""
    return summarise([middle * (1 + 0.02 * (at - (n - 1) / 2) / max(1, n)) for at in range(n)], unit)


def decode_values(total: float, streams: int, ttft_ms: float, **more: Any) -> CellValues:
    """Return a decode cell's numbers: what every stream reads follows from the total."""
    each = total / streams * 1.005
    values: dict[str, Any] = {
        "tokens_per_s": total,
        "window_s": 30.0,
        "output_tokens": total * 30,
        "requests": streams,
        "completed": 0,
        "ttft": spread(ttft_ms * MS, streams),
        "warmth": "cold",
        "second_output": spread((ttft_ms + 1e3 / each) * MS, streams),
        "itl": spread(1e9 / each, streams),
        "chunk_gaps": spread(1e9 / each, 100),
        "per_user": spread(each, streams, "1/s"),
        "in_flight": float(streams),
        "running": Gauge(60, float(streams), float(streams)),
        "queue_share": 0.0,
        "samples": 60,
    }
    return CellValues(**{**values, **more})


def prefill_values(rate: float, tokens: int, n: int = 3, **more: Any) -> CellValues:
    """Return a prefill cell's numbers from n samples, 1% apart, and a server whose own time is 4% shorter."""
    ttft = tokens / rate * 1e9
    samples = tuple(PrefillSample(tokens, 0, round(ttft * (1 + 0.01 * (at - n // 2)))) for at in range(n))
    rates = sorted(sample.rate for sample in samples)
    prefill = Prefill(
        samples=samples,
        n=n,
        median=rates[n // 2],
        low=rates[0],
        high=rates[-1],
        spread=(rates[-1] - rates[0]) / rates[n // 2],
        ttft_median_ns=ttft,
        server_s=ttft / 1.04e9,
        server_rate=rate * 1.04,
        server_difference=0.04,
        computed_tokens=tokens * n,
        counted_tokens=tokens * n,
    )
    return CellValues(**{"tokens_per_s": prefill.median, "prefill": prefill, "completed": n, **more})


def row(
    kind: Kind,
    context: int,
    concurrency: int = 1,
    values: CellValues | None = None,
    status: CellStatus = CellStatus.valid,
    reason: str = "",
    **more: Any,
) -> CellRow:
    """Return one planned cell."""
    counted = round(context * 1.001)
    told: dict[str, Any] = {
        "kind": kind,
        "label": label(context),
        "context_tokens": context,
        "concurrency": concurrency,
        "output_tokens": 4096,
        "status": status,
        "reason": reason or f"{concurrency} streams over the whole window",
        "prompt_tokens": PromptRange(counted, counted, concurrency) if values is not None else None,
        "ready_s": 4.2 if values is not None and kind == "decode" else None,
        "ready_deadline_s": 90.0,
        "trials": (f"{kind}.{label(context)}.c{concurrency}",),
        "values": values,
    }
    return CellRow(**{**told, **more})


def mixed_values() -> CellValues:
    """Return eight streams that a prompt of 64K slows down for two seconds."""
    timeline = (1040.0, 1052.0, 1044.0, 1048.0) * 5 + (260.0, 296.0, 312.0, 300.0) * 2 + (1036.0, 1048.0) * 10
    at = 20 * 250 * MS

    def part(name: str, begin: int, end: int, rate: float) -> Part:
        return Part(name, Window(begin, end, "", ""), rate * (end - begin) / 1e9, rate)

    mixed = Mixed(
        arrival_prompt_tokens=65_601,
        arrival_cached_tokens=0,
        ttft_ns=2 * S + 74 * MS,
        before=part("before", 0, at, 1046.0),
        during=part("during", at, at + 2 * S, 292.0),
        after=part("after", at + 2 * S, at + 7 * S, 1042.0),
        timeline=timeline,
    )
    return CellValues(tokens_per_s=1046.0, mixed=mixed, alone_ttft_ns=1.6 * S, slowdown=1.296)


VALID = {
    (8, 1): (162.0, 515),
    (16, 1): (160.0, 1057),
    (16, 128): (4790.4, 66_300),
    (32, 1): (156.7, 1538),
    (32, 64): (2755.9, 52_100),
    (64, 2): (276.5, 2890),
    (64, 4): (495.0, 5450),
    (128, 16): (763.7, 49_800),
}
OTHER = {
    (64, 1): (CellStatus.not_ready, "not ready within 90 s: 0 of 1 streams had produced output"),
    (64, 8): (CellStatus.extra_traffic, "9 running of 8 ours, in 60 of 60 samples"),
    (64, 16): (CellStatus.underfilled, "fewer than 16 running in 13 of 60 samples"),
    (128, 1): (CellStatus.server_error, "1 requests failed, the first: reset, connection reset by peer"),
    (128, 2): (CellStatus.client_limited, "send lag p99 12.1 ms, allowed 5 ms"),
    (251, 4): (CellStatus.skipped, "the time budget of 40 min ended before it"),
    (251, 8): (CellStatus.interrupted, "the trial was interrupted before its window was over"),
}


def decode_rows() -> list[CellRow]:
    """Return the matrix of a published report, with one cell of every status."""
    rows = []
    for context in CONTEXTS:
        for streams in LEVELS:
            key = context // KI, streams
            if key in VALID:
                total, ttft = VALID[key]
                rows.append(row("decode", context, streams, decode_values(total, streams, ttft)))
            elif key in OTHER:
                status, reason = OTHER[key]
                lost = decode_values(4.83, streams, 180_000) if status is CellStatus.not_ready else None
                rows.append(row("decode", context, streams, None, status, reason, discarded=lost))
            elif context * streams > POOL:
                need = (
                    f"0 shared + {streams} x {context:,} unique = {streams * context:,} prompt tokens, "
                    f"{streams * (context + 4096):,} with outputs, KV pool {POOL:,}"
                )
                rows.append(row("decode", context, streams, None, CellStatus.over_capacity, need))
            else:
                reason = f"{streams} of {streams} streams repeated themselves, 5% may"
                lost = decode_values(150.0 * streams**0.7, streams, 80.0 * streams)
                rows.append(row("decode", context, streams, None, CellStatus.looped, reason, discarded=lost))
    noted = {(16, 128): ("prefill inside: streams that started again within the window were not cached",)}
    return [
        structs.replace(one, notes=noted.get((one.context_tokens // KI, one.concurrency), ())) for one in rows
    ]


def prefill_rows() -> list[CellRow]:
    """Return the published prefill rates, and the length that the server refused."""
    rates = {8: 15_900, 16: 15_400, 32: 21_000, 64: 25_000, 128: 22_800, 251: 17_500}
    rows = [
        row("prefill", context * KI, 1, prefill_values(rate, round(context * KI * 1.001)))
        for context, rate in rates.items()
    ]
    refused = "262,144 prompt tokens and an answer, and the server's context holds 262,144"
    return [*rows, row("prefill", 256 * KI, 1, None, CellStatus.over_limit, refused)]


def burst_rows() -> list[CellRow]:
    """Return a burst of two contexts by two levels, one of them without a number."""
    rows = []
    for context, streams, total in ((8 * KI, 8, 820.0), (8 * KI, 32, 1520.0), (16 * KI, 8, 640.0)):
        e2e = spread(streams * 4096 / total * S, streams * 5)
        values = decode_values(total, streams, 900.0, e2e=e2e, requests=streams * 5, completed=streams * 5)
        rows.append(row("burst", context, streams, values))
    rows.append(
        row("burst", 16 * KI, 32, None, CellStatus.server_error, "3 requests failed, the first: timeout")
    )
    return rows


# Words of its own, so that goldens do not change with those of the methodology.
METHODS = (
    Method("prefill rate", "tokens/s", "(prompt tokens - cached tokens) / TTFT", "several cold samples"),
    Method("total rate", "tokens/s", "output tokens that arrived in the window / its length"),
    Method("burst rate", "tokens/s", "output tokens / (first request sent to last request ended)"),
    Method("energy a token", "J", "energy in the window / output tokens in it"),
)


def host(which: str = "server", *, said: str = "the target is a loopback address") -> HostDescription:
    """Return a machine with two GPUs and a tool that did not run."""
    gpus = tuple(
        Gpu(
            index=index,
            vendor="nvidia",
            name="NVIDIA H200 NVL",
            memory_total_bytes=141 << 30,
            driver_version="580.82.07",
            power_limit_w=600.0,
            pcie_generation_max=5,
            pcie_width_max=16,
            pcie_width=16,
        )
        for index in range(2)
    )
    return HostDescription(
        place=Place(which, said),  # type: ignore[arg-type]
        cpu=Cpu(model="AMD EPYC 9575F", sockets=2, cores=128, threads=256),
        memory=Memory(total_bytes=1511 << 30),
        system=System(hostname="h200", name="Ubuntu 24.04.2 LTS", kernel="6.8.0-60-generic"),
        gpus=gpus,
        gpus_source="nvml",
        p2p=of_texts(None, None),
        diagnostics=(
            Diagnostic(name="topology", command=("nvidia-smi", "topo", "-m"), returncode=0, stdout="x"),
            Diagnostic(name="numactl", command=("numactl", "-H"), did_not_run="numactl is not installed"),
        ),
    )


def study_contract(matrix: Matrix | None = None) -> Contract:
    """Return the contract of the made-up study."""
    matrix = matrix or Matrix(
        prefill_contexts=(*CONTEXTS, 256 * KI),
        decode_contexts=CONTEXTS,
        concurrencies=LEVELS,
        burst=True,
        mixed=MixedRule(64 * KI),
    )
    return Contract(
        target=Target.parse("http://127.0.0.1:8000"),
        shapes=(),
        slos=(),
        nonce="n0",
        sampling=Sampling(temperature=None),
        speed=matrix,
    )


def speed_result(**changes: Any) -> SpeedResult:
    """Return the made-up result: an H200 whose model likes to loop, with every status and every phase."""
    facts = {
        "engine": Fact("vllm", "test"),
        "version": Fact("0.30.0", "test"),
        "model": Fact("mimo-v2.6-distill-qwen-9b", "test"),
        "quantisation": Fact("BF16", "test"),
    }
    told: dict[str, Any] = {
        "tool": "nameplate 0.2.0",
        "contract": study_contract(),
        "target": "http://127.0.0.1:8000",
        "model": "mimo-v2.6-distill-qwen-9b",
        "limits": ServerLimits(context_tokens=262_144, running=256, kv_tokens=POOL, block_tokens=16),
        "identity": Identity(facts),
        "hosts": (host(),),
        "launch_command": "vllm serve XiaomiMiMo/MiMo-V2.6-Distill-Qwen-9B --api-key <redacted>",
        "rows": (*prefill_rows(), *decode_rows(), *burst_rows(), row("mixed", 64 * KI, 8, mixed_values())),
        "methodology": METHODS,
        "finished": True,
        "exit_code": 0,
        "spent_s": 5420.0,
    }
    return SpeedResult(**{**told, **changes})


def imported_result(**changes: Any) -> SpeedResult:
    """Return a result that another tool measured, with that tool's definitions."""
    origin = Origin(
        tool="llm-inference-bench",
        version="0.4.30",
        file="results.json",
        sha256="ab" * 32,
        definitions={
            **{f"field_{at}": "Something that only the file tells." for at in range(8)},
            "inter_token_latency": "(Last chunk - first) / (output tokens - 1) of each request, warm-up included.",
            "ttft": "Start of a request, connecting included, to its first non-empty content or reasoning.",
        },
    )
    rows = tuple(
        structs.replace(one, trials=(), ready_deadline_s=None)
        for one in decode_rows()
        if one.concurrency <= 16
    )
    return speed_result(
        **{"origin": origin, "contract": None, "rows": rows, "hosts": (), "spent_s": 0.0, **changes}
    )
