"""Entries by the thousand, varied from one, for what must stay quick and small."""

from __future__ import annotations

import random

from msgspec import structs

from nameplate.pages.catalogue.entry import Catalogue, Certificate, Entry, Rating

GPUS = (
    "NVIDIA H200",
    "NVIDIA H100 80GB HBM3",
    "AMD Instinct MI300X",
    "Intel Arc Pro B70",
    "NVIDIA B200",
    None,
)
MODELS = tuple(
    f"{name}-{size}" for name in ("Qwen3", "Llama-4", "GLM-5") for size in ("8B", "27B", "397B-A17B")
)
ENGINES = (("vllm", "0.20.1"), ("vllm", "0.19.0"), ("sglang", "0.6.2"), ("llama.cpp", "b9120"))

ENTRY = Entry(
    slug="run-000000000000",
    name="run",
    kind="capacity",
    status="confirmed",
    answer="9 concurrent 512/64 requests hold ttft p95 < 250 ms; 10 do not (all 3 trials agree).",
    time="live",
    began="2026-01-01T08:00:00Z",
    hardware="4 x NVIDIA H200",
    gpu="NVIDIA H200",
    gpus=4,
    engine="vllm",
    engine_version="0.20.1",
    model="Qwen3-8B",
    quantisation="fp8",
    context_limit_tokens=131_072,
    terms=(
        ("promise", "ttft p95 < 250 ms"),
        ("shapes", "512/64"),
        ("load", "closed loop, burst"),
        ("rule", "3 confirmations"),
        ("cache", "cold, flush auto"),
        ("api", "chat"),
        ("sampling", "temperature 0, seed_per_request off, ignore_eos on"),
    ),
    ratings=(
        Rating(
            measure="capacity",
            of="512/64",
            promise="ttft p95 < 250 ms",
            under="cold, chat",
            value=9,
            unit="concurrent",
            status="confirmed",
            operate_at=8,
            certificate=Certificate(bound=0.0312, confidence=0.95, holds=True),
        ),
    ),
    digest="0" * 64,
    fingerprint="0" * 64,
    paths=("runs/night",),
    page="runs/run-000000000000/report.html",
    tool_version="0",
)


def matrix(draw: random.Random) -> tuple[Rating, ...]:
    """Return a speed matrix of five contexts by eight concurrencies."""
    return tuple(
        Rating(
            measure="output",
            of=f"{context}K context x {streams}",
            under="30 s windows, cold, chat",
            value=draw.uniform(20, 9000),
            unit="tok/s",
            status="valid",
        )
        for context in (8, 16, 32, 64, 128)
        for streams in (1, 2, 4, 8, 16, 32, 64, 128)
    )


def catalogue_of(count: int) -> Catalogue:
    """Return a catalogue of so many different entries; a third of them are matrices."""
    draw = random.Random(count)
    entries = []
    for place in range(count):
        engine, version = draw.choice(ENGINES)
        gpu, number = draw.choice(GPUS), draw.choice((1, 2, 4, 8))
        slug = f"night-{place:04d}-{place:012x}"
        speed = place % 3 == 0
        rated = structs.replace(ENTRY.ratings[0], value=float(draw.randint(1, 200)))
        entries.append(
            structs.replace(
                ENTRY,
                slug=slug,
                name=f"night-{place:04d}",
                kind="speed" if speed else "capacity",
                status=draw.choice(("confirmed", "noisy", "open_above")),
                time=draw.choice(("live", "simulated")),
                began=f"2026-{draw.randint(1, 12):02d}-{draw.randint(1, 28):02d}T08:00:00Z",
                hardware=f"{number} x {gpu}" if gpu else None,
                gpu=gpu,
                gpus=number if gpu else None,
                engine=engine,
                engine_version=version,
                model=draw.choice(MODELS),
                quantisation=draw.choice(("fp8", "bf16", "nvfp4", None)),
                ratings=matrix(draw) if speed else (rated,),
                digest=f"{place:064x}",
                fingerprint=f"{place:064x}",
                paths=(f"/srv/runs/2026/night-{place:04d}",),
                page=f"runs/{slug}/report.html",
            )
        )
    return Catalogue(title="Machines", entries=tuple(entries), unreadable=(), tool_version="0")
