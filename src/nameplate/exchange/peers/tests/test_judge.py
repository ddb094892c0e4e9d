"""Our verdict from AIPerf's raw export: the rules of a trial, and what the file cannot prove."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nameplate.contract.errors import CallerError
from nameplate.exchange.peers.run import Run
from nameplate.exchange.peers.tests.making import (
    DETAILED,
    HERE,
    RAW,
    RECORDS,
    SUMMARY,
    contradicted,
    gates,
    imported,
    lines,
    only,
    put,
    raw_requests,
)

Entries = list[dict[str, Any]]


@pytest.fixture
def raw(tmp_path: Path) -> Callable[..., Run]:
    """Return the run of an altered raw export, without the request that is refused unless it is asked for."""

    def make(change: Callable[[Entries], object] = lambda _: None, *slos: str, refused: bool = False) -> Run:
        entries = lines(RAW)
        if not refused:
            entries.pop()
        change(entries)
        return only(put(tmp_path, entries), *(slos or ("ttft p95 < 100ms",)))

    return make


def _verdict(run: Run) -> tuple[str, str]:
    assert run.judged is not None
    return run.judged.verdict.status, "; ".join(run.judged.verdict.reasons)


def test_a_pass_with_what_is_not_proven(raw: Callable[..., Run]) -> None:
    """All requests answered within the limit: a pass, with the gates that only our own evidence could prove open."""
    run = raw()
    assert _verdict(run)[0] == "pass"
    status = gates(run)
    assert status["output_length"] == status["cached_tokens"] == status["unique_prompts"] == "pass"
    for name in (
        "client_lateness",
        "identity",
        "no_other_traffic",
        "server_counters",
        "concurrency",
        "arrivals",
    ):
        assert status[name] == "unverified"
    assert run.judged is not None and len(run.judged.unproven) == 8


def test_percentiles_are_of_the_events(raw: Callable[..., Run]) -> None:
    """TTFT is of the first content, not of the role chunk, from the request's own start; the limit is strict."""
    status, said = _verdict(
        raw(lambda _: None, "ttft p50 < 52.5ms", "itl p99 < 1s", "longest_gap p99 < 31ms")
    )
    assert status == "fail" and "ttft p50 < 52.5 ms: fail, n 4, 52.500 ms" in said
    assert _verdict(raw(lambda _: None, "ttft p50 < 52.501ms"))[0] == "pass"


def test_a_refused_request_fails_the_trial(raw: Callable[..., Run]) -> None:
    """One 503 fails it; with an error_rate SLO that decides, and the request counts as never in the percentiles."""
    assert _verdict(raw(refused=True))[0] == "fail"
    assert "rejected" in _verdict(raw(refused=True))[1]
    assert _verdict(raw(lambda _: None, "error_rate < 25%", refused=True))[0] == "pass"
    assert _verdict(raw(lambda _: None, "error_rate < 25%", "ttft p90 < 1s", refused=True))[0] == "fail"


def _break_off(entries: Entries) -> None:
    for response in raw_requests(entries)[0]["responses"][-3:]:
        raw_requests(entries)[0]["responses"].remove(response)


def test_a_stream_that_broke_off_is_no_success(raw: Callable[..., Run]) -> None:
    """AIPerf counts a stream without its end as a success; by our rules it failed, which is named and decides."""
    run = raw(_break_off)
    assert "successes" in contradicted(run)
    assert any(
        "1 of 4 requests that it counts as successes did not end well" in c.detail for c in run.contradictions
    )
    assert _verdict(run)[0] == "fail" and gates(run)["stream_error"] == "fail"
    assert gates(run)["evidence"] == "pass"


def _say_error(entries: Entries) -> None:
    responses = raw_requests(entries)[1]["responses"]
    responses[3]["packets"] = [{"name": "data", "value": json.dumps({"error": {"message": "out of memory"}})}]


def test_an_error_in_the_stream_is_no_success(raw: Callable[..., Run]) -> None:
    """An error event and then [DONE] is a failure."""
    run = raw(_say_error)
    assert gates(run)["stream_error"] == "fail" and any(
        "out of memory" in c.detail for c in run.contradictions
    )


def _cancel(entries: Entries) -> None:
    entry = raw_requests(entries)[2]
    entry["metadata"]["was_cancelled"] = True
    entry["error"] = {"code": 499, "type": "RequestCancellationError", "message": "cancelled"}
    del entry["responses"][1:]


def test_a_cancelled_request_is_open(raw: Callable[..., Run]) -> None:
    """What the tool cut itself bounds the percentile: inconclusive, neither fail nor pass."""
    run = raw(_cancel)
    assert run.counts.cancelled == 1 and _verdict(run)[0] == "inconclusive"


@pytest.mark.parametrize(
    ("change", "gate"),
    [
        (lambda e: e[2]["payload"].update(messages=e[1]["payload"]["messages"]), "unique_prompts"),
        (lambda e: e[2]["payload"].update(messages=e[0]["payload"]["messages"]), "unique_prompts"),
        (lambda e: [entry["payload"].update(max_tokens=9) for entry in e], "output_length"),
        (lambda e: _usage(e, cached_tokens=400), "cached_tokens"),
        (lambda e: e[2]["responses"][3].update(perf_ns=e[2]["responses"][2]["perf_ns"] - 1), "evidence"),
        (
            lambda e: e[2]["metadata"].update(request_end_ns=e[2]["metadata"]["request_end_ns"] + 9 * 10**9),
            "evidence",
        ),
    ],
)
def test_a_broken_contract_is_invalid(
    raw: Callable[..., Run], change: Callable[[Entries], object], gate: str
) -> None:
    """Repeated prompts (the warm-up's too), wrong lengths, a warm cache and times that go back make it invalid."""
    run = raw(change)
    assert gates(run)[gate] == "invalid" and _verdict(run)[0] == "invalid"


def _usage(entries: Entries, cached_tokens: int) -> None:
    for entry in raw_requests(entries):
        packet = entry["responses"][-2]["packets"][0]
        packet["value"] = packet["value"].replace('"cached_tokens": 0', f'"cached_tokens": {cached_tokens}')


def test_lengths_that_may_differ(raw: Callable[..., Run]) -> None:
    """Without ignore_eos an answer may be shorter than the most it asked for."""

    def natural(entries: Entries) -> None:
        for entry in entries:
            entry["payload"].update(max_tokens=9)
            del entry["payload"]["ignore_eos"]

    assert _verdict(raw(natural))[0] == "pass"


def test_the_summary_beside_it(tmp_path: Path) -> None:
    """AIPerf's summary is found beside the export, checked against it, and its numbers stand beside ours."""
    for name, as_ in ((RAW, "profile_export_raw.jsonl"), (SUMMARY, "profile_export_aiperf.json")):
        (tmp_path / as_).write_bytes((HERE / name).read_bytes())
    found = imported(tmp_path / "profile_export_raw.jsonl")
    (run,) = found.runs
    assert run.measure("ttft") is not None and run.version == "0.13.0" and not contradicted(run)
    assert any("stands beside it" in note for note in found.notes)
    agreed = next(check for check in run.checks if check.name == "percentiles")
    assert "ttft, chunk_gaps, e2e agree" in agreed.detail


def test_a_summary_of_another_run(tmp_path: Path) -> None:
    """A summary that counts other requests contradicts the records; a file that is none is refused."""
    summary = json.loads((HERE / SUMMARY).read_bytes())
    summary["request_count"]["avg"] = 64.0
    run = only(HERE / RAW, summary=put(tmp_path, summary))
    assert "summary" in contradicted(run) and "records" in contradicted(run)
    with pytest.raises(CallerError, match="not AIPerf's summary"):
        only(HERE / RAW, summary=HERE / DETAILED)


def test_records_are_judged_with_less(tmp_path: Path) -> None:
    """The records without events carry times alone: every gate of text, tokens and cache is unverified."""
    entries = lines(RECORDS)[:-1]
    run = only(put(tmp_path, entries), "ttft p95 < 100ms", "e2e p95 < 1s")
    assert _verdict(run)[0] == "pass"
    assert gates(run)["cached_tokens"] == gates(run)["empty_output"] == "unverified"


@pytest.mark.parametrize("name", [SUMMARY, DETAILED])
def test_aggregates_are_not_judged(name: str) -> None:
    """An SLO is not judged from aggregates, nor from a TTFT that may be of a role chunk."""
    with pytest.raises(CallerError, match="no SLO can be judged from it"):
        imported(HERE / name, "ttft p95 < 1s")
