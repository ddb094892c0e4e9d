"""The truth test: a real vLLM, probed, measured and verified, and held against its own counters and histograms."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct

from integration.command import buckets, idle_samples, nameplate, rows
from integration.conftest import PORT
from integration.vllm_cpu import MODEL, serving

pytestmark = pytest.mark.vllm

SEEDED = ("--temperature", "1", "--request-seeds")
# Where our TTFT and the server's own may differ: the HTTP stack and tokenisation in front of the engine.
EDGE_SLACK_NS = 50_000_000
TTFT = "vllm:time_to_first_token_seconds"


def only_trial(out: Path) -> Path:
    (found,) = (out / "trials").iterdir()
    return found


def test_probe_says_what_works(url: str) -> None:
    """The probe names the engine and model, and finds flush, cached-token reports, usage and tokenise working."""
    report = nameplate("probe", url)
    works = {one["name"]: one["status"] for one in report["capabilities"]}
    assert report["engine"] == "vllm"
    assert report["identity"]["facts"]["model"]["value"] == MODEL
    for name in (
        "streaming usage",
        "continuous usage",
        "ignore_eos",
        "cached-token reports",
        "flush",
        "metrics",
    ):
        assert works[name] == "yes", f"{name}: {works[name]}"
    assert report["identity"]["facts"]["running_limit_effective"]["value"] == 4


class Drained(Struct, frozen=True):
    """Hold a drained trial, and the server's TTFT histogram before and after its run."""

    result: dict[str, Any]
    trial: Path
    before: dict[float, float]
    after: dict[float, float]


@pytest.fixture(scope="module")
def drained(url: str, tmp_path_factory: pytest.TempPathFactory) -> Drained:
    """Run one trial of 72 requests at concurrency six, on a server that runs four."""
    out = tmp_path_factory.mktemp("trial") / "drained"
    before = buckets(url, TTFT)
    result = nameplate("trial", url, "--shape", "256/24", "-c", "6", "--out", str(out), *SEEDED)
    return Drained(result, only_trial(out), before, buckets(url, TTFT))


def test_trial_agrees_with_the_servers_counters(drained: Drained) -> None:
    """Over a drained trial the tokens that our rows hold are exactly those that vLLM counted, warm-up included."""
    before, after = idle_samples(drained.trial)
    ours = rows(drained.trial)
    assert len(ours) == 72 and {row["outcome"] for row in ours} == {"ok"}
    for counter, wanted in (
        ("output_tokens_total", sum(row["output_tokens"] for row in ours)),
        ("prompt_tokens_total", sum(row["prompt_tokens"] for row in ours)),
    ):
        assert after[counter] - before[counter] == wanted, counter
    assert drained.result["verdict"]["status"] == "pass"
    assert drained.result["measurement"]["correctness"]["unique_outputs"] == 64


def test_trial_histogram_brackets(drained: Drained) -> None:
    """vLLM's own TTFT histogram, as deltas around a drained trial, brackets ours at every bucket edge e.

    ours(<= e) <= server(<= e) <= ours(<= e + 50 ms), warm-up included: our TTFT has the way there and back as well.
    """
    before, after = drained.before, drained.after
    ours = [row["first_output_ns"] - row["sent_ns"] for row in rows(drained.trial)]
    # The probe and calibration of the run are in the server's delta and not in our rows: few, all of them fast, and
    # at most this many at any edge.
    extra = after[float("inf")] - before[float("inf")] - len(ours)
    assert 0 < extra <= 16
    for edge_s, count in after.items():
        if edge_s == float("inf"):
            continue
        server = count - before[edge_s]
        edge_ns = edge_s * 1e9
        at_least = sum(value <= edge_ns for value in ours)
        at_most = sum(value <= edge_ns + EDGE_SLACK_NS for value in ours) + extra
        assert at_least <= server <= at_most, f"edge {edge_s}: {at_least} <= {server} <= {at_most}"


def test_trial_queue_and_prefill_add_up(drained: Drained) -> None:
    """vLLM's own queue and prefill times of just our requests leave of our mean TTFT what its front and ours take."""
    waits = drained.result["measurement"]["waits"]
    ours = rows(drained.trial)
    assert (waits["source"], waits["unobserved"], waits["reason"]) == ("server", 0, "")
    # All that were timed, or the measured ones where a sample fell behind the warm-up.
    members = ours if waits["unmeasured"] else [row for row in ours if row["phase"] != "warmup"]
    queue, prefill = waits["queue"], waits["prefill"]
    assert waits["n"] == queue["n"] == prefill["n"] == waits["decode"]["n"] == len(members)
    mean_ns = sum(row["first_output_ns"] - row["sent_ns"] for row in members) / len(members)
    assert abs(waits["ttft_mean_ns"] - mean_ns) <= 1
    assert waits["ttft_mean_ns"] == queue["mean_ns"] + prefill["mean_ns"] + waits["rest_mean_ns"]
    # Six clients on four places: there is a queue. What is left is the way there and back, and the step in flight.
    assert queue["mean_ns"] > 0 and prefill["mean_ns"] > 0
    assert waits["rest_mean_ns"] > -EDGE_SLACK_NS
    for part in (queue, prefill):
        assert part["quantiles_n"] == 64
        for name in ("p50", "p95"):
            held = part[name]
            assert held["high"] is None or held["low"] < held["high"]
    if waits["server_ttft"] is not None:
        front_ns = waits["ttft_mean_ns"] - waits["server_ttft"]["mean_ns"]
        assert -1_000_000 <= front_ns <= EDGE_SLACK_NS


def test_capacity_finds_a_boundary_and_verifies(url: str, tmp_path: Path) -> None:
    """A study on a real server ends with a rated number between a pass and a fail, and its evidence recomputes."""
    alone = nameplate(
        "trial",
        url,
        "--shape",
        "256/24",
        "-c",
        "1",
        "--requests",
        "10",
        "--warmup",
        "2",
        "--out",
        str(tmp_path / "one"),
        *SEEDED,
    )
    e2e_ns = alone["measurement"]["latencies"]["whole"]["e2e"]["p50"]
    # Four run at once: from the fifth on a request waits for another's end, so this limit lies above the fourth
    # level and within reach of the eighth.
    limit_ms = round(1.5 * e2e_ns / 1e6)
    out = tmp_path / "study"
    plate = nameplate(
        "capacity", url, "--shape", "256/24", "--slo", f"ttft p95 < {limit_ms}ms", "--quiet", "1s", "--max", "32",
        "--out", str(out), *SEEDED, expected=(0, 3),
    )  # fmt: skip
    (shape,) = plate["shapes"]
    assert shape["status"] in ("confirmed", "noisy")
    assert shape["rated"] is not None and shape["rated"] >= 1
    assert shape["fail"] is not None and shape["fail"] > shape["rated"]
    limit = shape["limit"]
    assert limit["of"] == "ttft" and not limit["estimated"]
    assert (
        sum(one["fail_ns"] - one["alone_ns"] for one in limit["parts"])
        == limit["fail_ns"] - limit["alone_ns"]
    )
    if shape["fail"] > 4:
        # Four run at once, and TTFT broke: the limit is made of the queue for these four places. A machine that others
        # keep busy may break it with fewer.
        assert "queue" in [one["name"] for one in limit["made_of"]], limit
        seen = limit["levels"][-1]["held_back"]
        assert seen["waited"] > 0 and seen["running_limit"] == 4
    report = nameplate("verify", str(out))
    assert all(check["status"] == "pass" for check in report["checks"]), report
    held = nameplate("check", str(out), url)
    assert held["holds"] is True


def test_greedy_answers_repeat_and_stay_valid(url: str, tmp_path: Path) -> None:
    """Greedy, the dummy model answers every prompt alike: the trial is valid, and says that outputs repeat."""
    out = tmp_path / "greedy"
    # Long enough that a word which this toy vocabulary spells in many tokens stays within 2% of the length.
    result = nameplate("trial", url, "--shape", "1024/16", "-c", "2", "--requests", "8", "--out", str(out))
    assert result["verdict"]["status"] == "pass"
    assert result["measurement"]["correctness"]["unique_outputs"] < 8
    report = nameplate("verify", str(only_trial(out)))
    assert all(check["status"] == "pass" for check in report["checks"]), report


@pytest.fixture(scope="module")
def plain_url(url: str) -> Iterator[str]:
    """Serve without dev mode and without prompt details: no flush, no cached-token reports."""
    del url
    with serving(PORT + 1, ["--max-num-seqs", "4"], dev_mode=False) as address:
        yield address


def test_server_without_flush_or_cache_reports(plain_url: str, tmp_path: Path) -> None:
    """Without flush and reports a trial is cold by construction, valid, and labelled; --flush require refuses."""
    report = nameplate("probe", plain_url)
    works = {one["name"]: one["status"] for one in report["capabilities"]}
    assert works["flush"] == "no" and works["cached-token reports"] == "no"
    out = tmp_path / "plain"
    result = nameplate(
        "trial", plain_url, "--shape", "256/16", "-c", "4", "--requests", "16", "--out", str(out), *SEEDED
    )
    assert result["verdict"]["status"] == "pass"
    report = nameplate("verify", str(only_trial(out)))
    assert all(check["status"] in ("pass", "unverified") for check in report["checks"]), report
    refused = nameplate(
        "trial",
        plain_url,
        "--shape",
        "256/16",
        "-c",
        "4",
        "--flush",
        "require",
        "--out",
        str(tmp_path / "no"),
        expected=(5,),
    )
    assert refused["error"]["exit_code"] == 5
