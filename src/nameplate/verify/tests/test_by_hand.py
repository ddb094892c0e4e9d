"""The published latencies again by hand: the format's documentation, the standard library, and a zstd decoder."""

from __future__ import annotations

import json
import math
import struct
from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest

from nameplate.zstd import decompress

# As `reads.zst` is documented: kind, request, t_ns, delay_ns, since_empty_ns, size; kind 2 is sent, 4 is a read.
HEADER = struct.Struct("<BIqqqI")
SENT, READ = 2, 4


def wire(directory: Path) -> tuple[dict[int, int], dict[int, list[tuple[int, bytes]]]]:
    """Return when each request was sent, and its reads as (arrival, bytes)."""
    data = decompress((directory / "reads.zst").read_bytes())
    sent: dict[int, int] = {}
    reads: dict[int, list[tuple[int, bytes]]] = defaultdict(list)
    at = 0
    while at < len(data):
        kind, request, t_ns, delay_ns, _, size = HEADER.unpack_from(data, at)
        payload = data[at + HEADER.size : at + HEADER.size + size]
        at += HEADER.size + size
        if kind == SENT:
            sent[request] = t_ns
        elif kind == READ:
            reads[request].append((t_ns - delay_ns if delay_ns > 0 else t_ns, payload))
    return sent, reads


def events(reads: list[tuple[int, bytes]]) -> list[tuple[int, str]]:
    """Return the `data:` lines of a chunked answer, each with the arrival of the read that completed it."""
    raw, ends = b"", []
    for arrival, payload in reads:
        raw += payload
        ends.append((len(raw), arrival))
    at = raw.index(b"\r\n\r\n") + 4
    body: list[tuple[int, int]] = []
    while True:
        line = raw.index(b"\r\n", at)
        size = int(raw[at:line].split(b";")[0], 16)
        if not size:
            break
        body += [(raw[line + 2 + k], line + 2 + k) for k in range(size)]
        at = line + 2 + size + 2
    found, text = [], bytearray()
    for byte, position in body:
        text.append(byte)
        if text.endswith(b"\n\n"):
            arrival = next(t for end, t in ends if position < end)
            found.append((arrival, text.decode().strip().removeprefix("data: ")))
            text.clear()
    return found


def percentile(values: Sequence[float], p: float) -> float:
    """Return a percentile, linear between closest ranks."""
    ordered = sorted(values)
    rank = p / 100 * (len(ordered) - 1)
    low, high = ordered[math.floor(rank)], ordered[math.ceil(rank)]
    return low + (high - low) * (rank - math.floor(rank))


def test_latencies_by_hand_are_the_published_ones(sealed: Path) -> None:
    """TTFT, ITL and E2E with all their percentiles follow from reads.zst by nothing but the documented format."""
    plan = json.loads((sealed / "trial.json").read_text())["plan"]
    published = json.loads((sealed / "result.json").read_text())["measurement"]["latencies"]["whole"]
    sent, reads = wire(sealed)
    ttfts: list[float] = []
    itls: list[float] = []
    e2es: list[float] = []
    gaps: list[float] = []
    for index in range(plan["warmup"], plan["warmup"] + plan["requests"]):
        outputs, counts, usage = [], [], 0
        for arrival, data in events(reads[index]):
            if data == "[DONE]":
                continue
            chunk = json.loads(data)
            if chunk.get("usage"):
                usage = chunk["usage"]["completion_tokens"]
            if any(choice["delta"].get("content") for choice in chunk["choices"]):
                outputs.append(arrival)
                counts.append(usage)
        ttfts.append(outputs[0] - sent[index])
        itls.append((outputs[-1] - outputs[0]) / (usage - max(1, counts[0])))
        e2es.append(outputs[-1] - sent[index])
        gaps += [later - earlier for earlier, later in pairwise(outputs)]
    for name, values in (("ttft", ttfts), ("itl", itls), ("e2e", e2es), ("chunk_gaps", gaps)):
        assert published[name]["n"] == len(values)
        for p in (50, 90, 95, 99):
            assert published[name][f"p{p}"] == pytest.approx(percentile(values, p), rel=1e-9), (name, p)
