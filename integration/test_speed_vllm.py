"""The speed matrix against a real vLLM: each status on purpose, every number held against the server's own counters.

The server computes on the same processors as whoever else is at work there, so nothing is asserted about speed, and
what takes time is given as much as the server needs at its pace of the moment.
"""

from __future__ import annotations

import json
import math
import time
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct

from integration.command import idle_samples, lines, nameplate, rows
from integration.vllm_cpu import MODEL
from nameplate.wire.loop import LEAST_CHARS

pytestmark = pytest.mark.vllm

# What our numbers and the server's counters may differ by.
TOLERANCE = 0.02
BLOCK_TOKENS = 32
WINDOW_S = 6
PREFILL = "vllm:request_prefill_time_seconds"
COMMON = ("--stable", "2s", "--window", f"{WINDOW_S}s", "--prefill-samples", "3")
# Greedy, the dummy model repeats two words of eight characters from its first token on.
GREEDY_CHARS_PER_TOKEN = 4
# Others at work on the same processors may halve the pace from one attempt to the next.
MARGIN = 2


class Pace(Struct, frozen=True):
    """Hold how fast the server is just now: prompt and output tokens a second of one request alone."""

    prefill: float
    decode: float

    def patience_s(self, prompt_tokens: int) -> int:
        """Return how long a ramp of so many prompt tokens may take, with a margin for a pace that changes."""
        return math.ceil(3 + 2 * prompt_tokens / self.prefill)


class Study(Struct, frozen=True):
    """Hold one speed study: its directory and its result."""

    out: Path
    result: dict[str, Any]

    def row(self, kind: str, context: int, concurrency: int) -> dict[str, Any]:
        """Return the row of one cell."""
        (found,) = (
            row
            for row in self.result["rows"]
            if (row["kind"], row["context_tokens"], row["concurrency"]) == (kind, context, concurrency)
        )
        assert isinstance(found, dict)
        return found

    def trial(self, row: dict[str, Any]) -> Path:
        """Return the evidence of the attempt that counts."""
        return self.out / "trials" / str(row["trials"][-1])


def speed(url: str, out: Path, *arguments: str, expected: tuple[int, ...] = (0,)) -> Study:
    """Run a speed study, and verify it as anyone could who is given its directory."""
    result = nameplate("speed", url, *COMMON, *arguments, "--out", str(out), expected=expected)
    report = nameplate("verify", str(out))
    assert report["checks"] and all(check["status"] == "pass" for check in report["checks"]), report
    return Study(out, result)


def completion(url: str, prompt: str, output_tokens: int) -> tuple[float, int]:
    """Send one request without streaming; return its time in seconds and its prompt tokens."""
    body = {"model": MODEL, "prompt": prompt, "max_tokens": output_tokens, "ignore_eos": True}
    request = urllib.request.Request(
        f"{url}/v1/completions", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    begin = time.monotonic()
    with opener.open(request, timeout=120) as reply:
        usage = json.load(reply)["usage"]
    return time.monotonic() - begin, usage["prompt_tokens"]


@pytest.fixture(scope="module")
def pace(url: str) -> Pace:
    """Measure the pace roughly, after a first request that warms the server up."""
    completion(url, "begin", 4)
    return pace_of(url)


def pace_of(url: str) -> Pace:
    """Measure the pace of the moment."""
    prefill_s, tokens = completion(url, " ".join(str(number) for number in range(500)), 1)
    decode_s, _ = completion(url, "go on", 48)
    return Pace(tokens / prefill_s, 48 / decode_s)


@pytest.fixture(scope="module")
def sampled(url: str, tmp_path_factory: pytest.TempPathFactory) -> Study:
    """Measure what fits, what does not and prefill, sampled at temperature 1."""
    out = tmp_path_factory.mktemp("speed") / "sampled"
    return speed(
        url, out, "--contexts", "1k,3k", "-c", "4,8", "--output", "900", "--temperature", "1",
    )  # fmt: skip


@pytest.fixture(scope="module")
def shared(url: str, pace: Pace, tmp_path_factory: pytest.TempPathFactory) -> Study:
    """Share half of each prompt, by more streams than the server runs although it is said to run them."""
    out = tmp_path_factory.mktemp("speed") / "shared"
    return speed(
        url, out, "--contexts", "1k", "-c", "2,6", "--unique-context", "50%", "--output", "1400", "--temperature", "1",
        "--no-prefill", "--fact", "running_limit_effective=6", "--ready-timeout", f"{pace.patience_s(3072)}s",
    )  # fmt: skip


@pytest.fixture(scope="module")
def warm(url: str, tmp_path_factory: pytest.TempPathFactory) -> Study:
    """Warm each stream's prompt, let short streams start again and again, then let a long prompt arrive."""
    out = tmp_path_factory.mktemp("speed") / "warm"
    return speed(
        url, out, "--contexts", "1k", "-c", "2", "--warm-streams", "--output", "96", "--temperature", "1",
        "--no-prefill", "--mixed", "--mixed-arrival", "2k", "--mixed-streams", "3", "--mixed-shape", "512/1k",
    )  # fmt: skip


@pytest.fixture(scope="module")
def misled(url: str, pace: Pace, tmp_path_factory: pytest.TempPathFactory) -> Study:
    """Believe in a larger KV pool than there is: four prompts should fit by the plan, and three do."""
    out = tmp_path_factory.mktemp("speed") / "misled"
    return speed(
        url, out, "--contexts", "2560", "-c", "4", "--output", "1400", "--temperature", "1", "--no-prefill",
        "--kv-tokens", "12000", "--ready-timeout", f"{pace.patience_s(10_240)}s", expected=(4,),
    )  # fmt: skip


@pytest.fixture(scope="module")
def greedy(url: str, tmp_path_factory: pytest.TempPathFactory) -> Study:
    """Decode greedily for as long as it takes to fill the least text that can be judged."""
    out = tmp_path_factory.mktemp("speed") / "greedy"
    window_s = math.ceil(MARGIN * LEAST_CHARS / GREEDY_CHARS_PER_TOKEN / pace_of(url).decode)
    return speed(
        url, out, "--contexts", "256", "-c", "1", "--output", "3800", "--temperature", "0", "--no-prefill",
        "--window", f"{window_s}s", expected=(4,),
    )  # fmt: skip


def close(ours: float, servers: float) -> bool:
    return abs(ours - servers) <= TOLERANCE * servers


def agrees_with_counters(study: Study, row: dict[str, Any]) -> None:
    """Hold a cell against vLLM's counters: in its window, and from idle to idle."""
    values, trial = row["values"] or row["discarded"], study.trial(row)
    before, after = idle_samples(trial)
    requests = rows(trial)
    grown = {
        name: after[name] - before[name]
        for name in after
        if name.endswith("_total") and after[name] is not None
    }
    assert grown["prompt_tokens_total"] == sum(one["prompt_tokens"] or 0 for one in requests)
    # What the server still produced after our cut is in its counter alone: a step or two of each stream.
    unseen = grown["output_tokens_total"] - sum(one["output_tokens"] or 0 for one in requests)
    assert 0 <= unseen <= max(2 * row["concurrency"], TOLERANCE * grown["output_tokens_total"]), unseen
    if not values["window_s"]:
        return
    counter = values["counter"]
    # A sample may fall between the server's count of a step and our receipt of it, and a busy server's page anywhere
    # in the time that it took.
    allowed = max(row["concurrency"] + counter["doubt_tokens"], TOLERANCE * counter["server_tokens"])
    assert abs(counter["server_tokens"] - counter["our_tokens"]) <= allowed, counter
    assert counter["end_ns"] - counter["begin_ns"] > 0.5e9 * values["window_s"]
    # The same counter as it stands in the scraped page, without what the result says of it.
    scraped = {
        sample["t_ns"]: sample["output_tokens_total"]
        for sample in lines(trial / "server.jsonl")
        if not sample["error"]
    }
    assert scraped[counter["end_ns"]] - scraped[counter["begin_ns"]] == counter["server_tokens"]
    held = values["kv"]
    # The gauge is set after a step, so that a stream which has just started again is missing in it for a while.
    if not values["restarts"]:
        assert close(held["claim_tokens"], held["held_tokens"]), held


def test_a_valid_cell_agrees_with_the_server(sampled: Study) -> None:
    """Four sampled streams: tokens, gauges and the KV claim are the server's own, within 2%."""
    row = sampled.row("decode", 1024, 4)
    assert row["status"] == "valid", row["reason"]
    values = row["values"]
    assert values["window_s"] == WINDOW_S and values["tokens_per_s"] == values["output_tokens"] / WINDOW_S
    assert values["warmth"] == "cold" and not values["estimated"]
    assert values["looped_streams"] == 0 and values["preemptions"] == 0
    assert values["in_flight"] > 3.9 and values["running"]["max"] == 4
    if not values["restarts"]:
        assert values["running"]["mean"] == 4 and values["waiting"]["max"] == 0
    agrees_with_counters(sampled, row)


def test_cells_that_cannot_be_run_are_not(sampled: Study) -> None:
    """Prompts beyond the pool and streams beyond the running limit have their status, the arithmetic, and no rate."""
    row = sampled.row("decode", 3072, 4)
    assert row["status"] == "over_capacity"
    assert "4 x 3,072 unique = 12,288 prompt tokens" in row["reason"] and "KV pool 8,192" in row["reason"]
    for context in (1024, 3072):
        beyond = sampled.row("decode", context, 8)
        assert beyond["status"] == "over_limit" and "at most 4" in beyond["reason"]
    for one in sampled.result["rows"]:
        if one["status"] in ("over_capacity", "over_limit"):
            assert one["values"] is None and one["discarded"] is None and not one["trials"]


def test_prefill_agrees_with_the_servers_histogram(sampled: Study) -> None:
    """Each prefill row shows the server's own prefill time and computed tokens, and the difference to ours."""
    for context in (1024, 3072):
        row = sampled.row("prefill", context, 1)
        assert row["status"] == "valid", row["reason"]
        prefill = row["values"]["prefill"]
        assert prefill["n"] >= 3 and row["cached_tokens"]["high"] == 0
        before, after = idle_samples(sampled.trial(row))
        spent_s, count = (after["prefill_s"][at] - before["prefill_s"][at] for at in (0, 1))
        requests = rows(sampled.trial(row))
        assert count == len([one for one in requests if one["outcome"] == "ok"])
        assert prefill["server_s"] == pytest.approx(spent_s / count)
        ours_s = sum(sample["ttft_ns"] for sample in prefill["samples"]) / prefill["n"] / 1e9
        assert prefill["server_difference"] == pytest.approx((ours_s - spent_s / count) / (spent_s / count))
        # Ours has the way there and back and the queue as well, so it is never below, but for what is rounded.
        assert prefill["server_difference"] > -TOLERANCE
        # The request after the last sample is in the server's counter once it has a first token, and so in ours.
        counted = sum(one["prompt_tokens"] or 0 for one in requests)
        assert prefill["computed_tokens"] == prefill["counted_tokens"] == counted


def test_a_shared_prefix_is_cached_as_planned(shared: Study) -> None:
    """With half of each prompt shared, the server reuses that half of each, and holds it once."""
    row = shared.row("decode", 1024, 2)
    assert row["status"] == "valid", row["reason"]
    assert not [note for note in row["notes"] if "sharing" in note or "KV claim" in note]
    before, after = idle_samples(shared.trial(row))
    cached = after["cached_tokens_total"] - before["cached_tokens_total"]
    starts = len([one for one in rows(shared.trial(row)) if one["phase"] == "opening"])
    assert starts == 2
    if not row["values"]["restarts"]:
        assert abs(cached - starts * 512) <= starts * BLOCK_TOKENS
    # The shared part in whole blocks from below, each unique part in whole blocks from above.
    assert row["values"]["kv"]["prompt_tokens"] <= 512 + 2 * (512 + 2 * BLOCK_TOKENS)
    agrees_with_counters(shared, row)


def test_more_streams_than_the_server_runs_are_never_ready(shared: Study) -> None:
    """Six streams on a server that runs four: not ready, with what the gate saw, and no rate."""
    row = shared.row("decode", 1024, 6)
    assert row["status"] == "not_ready", row["reason"]
    assert row["values"] is None and row["discarded"]["tokens_per_s"] is None
    assert "not ready within" in row["reason"] and "the server ran 4" in row["reason"]
    samples = lines(shared.trial(row) / "server.jsonl")
    assert max(sample["running"] for sample in samples) == 4
    assert max(sample["waiting"] for sample in samples) == 2
    agrees_with_counters(shared, row)


def test_a_pool_that_does_not_hold_what_is_claimed(misled: Study) -> None:
    """Prompts that fit the pool only by what is said of it: not ready, and the claim contradicted by the gauge."""
    row = misled.row("decode", 2560, 4)
    assert row["status"] == "not_ready", row["reason"]
    assert "KV claim contradicted" in row["reason"] and "12,000 tokens" in row["reason"]
    assert row["values"] is None
    samples = lines(misled.trial(row) / "server.jsonl")
    assert max(sample["running"] for sample in samples) == 3
    agrees_with_counters(misled, row)


def test_warm_streams_and_restarts(warm: Study) -> None:
    """Warmed prompts are labelled warm; streams that start again and again leave the cell valid."""
    row = warm.row("decode", 1024, 2)
    assert row["status"] == "valid", row["reason"]
    assert row["values"]["warmth"] == "warm"
    assert not [note for note in row["notes"] if "prefill inside" in note]
    before, after = idle_samples(warm.trial(row))
    later = [one for one in rows(warm.trial(row)) if one["phase"] != "warmup" and one["first_output_ns"]]
    cached = after["cached_tokens_total"] - before["cached_tokens_total"]
    assert abs(cached - len(later) * 1024) <= len(later) * 2 * BLOCK_TOKENS
    agrees_with_counters(warm, row)


def test_a_long_prompt_arrives_beside_streams(warm: Study) -> None:
    """Mixed prefill: the arrival alone and under load, the streams before, during and after, on a timeline."""
    row = warm.row("mixed", 2048, 3)
    assert row["status"] == "valid", row["reason"]
    mixed = row["values"]["mixed"]
    assert abs(mixed["arrival_prompt_tokens"] - 2048) <= 10 and mixed["arrival_cached_tokens"] in (0, None)
    assert row["values"]["alone_ttft_ns"] > 0 and row["values"]["slowdown"] > 0
    for part in ("before", "during", "after"):
        assert mixed[part] is not None, part
    assert mixed["before"]["rate"] > 0 and mixed["after"]["rate"] > 0
    assert len(mixed["timeline"]) >= 40
    before, after = idle_samples(warm.trial(row))
    requests = rows(warm.trial(row))
    assert len([one for one in requests if one["phase"] == "arrival"]) == 1
    grown = after["prompt_tokens_total"] - before["prompt_tokens_total"]
    assert grown == sum(one["prompt_tokens"] for one in requests)


def test_a_greedy_cell_is_looped(greedy: Study) -> None:
    """Greedy, the dummy model repeats itself: looped, tried once more with another prompt, and no rate."""
    row = greedy.row("decode", 256, 1)
    assert row["status"] == "looped", row["reason"]
    assert len(row["trials"]) == 2 and row["values"] is None
    assert any(note.startswith("tried before, and looped") for note in row["notes"])
    assert row["discarded"]["looped_streams"] == row["discarded"]["judged_streams"] == 1
    heads = set()
    for key in row["trials"]:
        (request,) = rows(greedy.out / "trials" / key)
        assert request["loop"]["length_chars"] >= max(LEAST_CHARS, 4 * request["loop"]["period_chars"])
        heads.add(request["prompt_head_sha256"])
    assert len(heads) == 2
    agrees_with_counters(greedy, row)
