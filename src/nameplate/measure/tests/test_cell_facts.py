"""From evidence of a cell to its status: facts, notes, and the whole way through `measure_speed`."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from nameplate.contract.plan import TrialPlan
from nameplate.contract.shape import Shape
from nameplate.evidence.rows import RequestRow
from nameplate.measure.cell_facts import refused_length
from nameplate.measure.result import TrialResult, evaluate
from nameplate.measure.speed_trial import SpeedTrial
from nameplate.measure.tests.held_cells import (
    BEGIN,
    END,
    MS,
    Part,
    S,
    cell_evidence,
    every,
    held,
    hold_plan,
    sample,
    samples,
)
from nameplate.measure.tests.trials import closed_loop, digest, evidence, identity, ok_row
from nameplate.measure.trial_evidence import TrialEvidence
from nameplate.verdict.cell import CellStatus
from nameplate.wire.events import Channel
from nameplate.wire.loop import Loop


def speed(given: TrialEvidence) -> SpeedTrial:
    """Evaluate as a trial does, and return what a speed study takes from it."""
    result: TrialResult = evaluate(given)
    assert result.speed is not None
    status, verdict = result.speed.verdict.status, result.verdict.status
    assert (verdict == "pass") == (status is CellStatus.valid)
    assert (verdict == "inconclusive") == (status is CellStatus.interrupted)
    return result.speed


def two(**changes: Any) -> list[Part]:
    """Return two steady streams, the second with changes."""
    return [Part(0, every(10 * MS)), Part(1, every(10 * MS), **changes)]


def test_a_sound_cell_is_valid_and_says_nothing() -> None:
    """Two steady streams before a quiet server are valid, without a note."""
    found = speed(cell_evidence(two(), identity_before=identity(engine="vllm", block_size_tokens=16)))
    assert found.verdict.status is CellStatus.valid and found.verdict.notes == ()
    assert found.verdict.reason == "2 streams over the whole window"
    assert found.cell is not None and found.cell.rate == 200.0 and found.prefill is None


LOOP = Loop(Channel.content, 10, 5000)


@pytest.mark.parametrize(
    ("parts", "changes", "status", "words"),
    [
        (two(), {"interrupted": True}, CellStatus.interrupted, "interrupted"),
        (two(outcome="http_error", http_status=400, error="too long"), {}, CellStatus.over_limit, "too long"),
        (two(prompt_tokens=700), {}, CellStatus.over_limit, "700 of 1,000"),
        (two(outcome="http_error", http_status=500, error="boom"), {}, CellStatus.server_error, "boom"),
        (two(outcome="timed_out_silence"), {}, CellStatus.server_error, "timed_out_silence"),
        (
            [*two(), Part(1, [], index=3, phase="steady", outcome="ok")],
            {},
            CellStatus.server_error,
            "without any output",
        ),
        (two(), {"identity_after": identity(engine="sglang", model="m")}, CellStatus.server_error, "changed"),
        (two(), {"damage": ("reads.zst is torn",)}, CellStatus.client_limited, "torn"),
        (
            two(),
            {"held": held(2, begin_ns=None, end_ns=None, gave_up="not ready within 60 s")},
            CellStatus.not_ready,
            "not ready within 60 s: 2 of 2",
        ),
        (two(), {"held": None}, CellStatus.not_ready, "before anything was seen"),
        (two(), {"ended_ns": END - 1}, CellStatus.interrupted, "before its window was over"),
        (two(), {"arrival_doubt_ns": [200 * MS] * 100}, CellStatus.client_limited, "200"),
        (
            two(),
            {"samples": [*samples(2), sample(END - 2, 3), sample(END - 1, 3)]},
            CellStatus.extra_traffic,
            "3 running of 2 ours",
        ),
        (two(), {"samples": samples(1)}, CellStatus.underfilled, "fewer than 2 running in 8 of 8"),
        (two(end_ns=BEGIN + 2 * S, outcome="ok"), {}, CellStatus.underfilled, "in flight for 25%"),
        (two(loop=LOOP, longest_channel_chars=9000), {}, CellStatus.looped, "1 of 2"),
        ([Part(0, [2 * S]), Part(1, [2 * S])], {}, CellStatus.server_error, "no output"),
    ],
)
def test_each_status_from_its_evidence(
    parts: list[Part], changes: dict[str, Any], status: CellStatus, words: str
) -> None:
    """Each way in which a cell can go wrong has its status, and says why."""
    verdict = speed(cell_evidence(parts, **changes)).verdict
    assert verdict.status is status, verdict
    assert words in verdict.reason


@pytest.mark.parametrize(
    ("parts", "changes", "words"),
    [
        ([Part(n, every(10 * MS), None) for n in (0, 1)], {}, "tokens estimated"),
        (two(), {"samples": []}, "does not tell what it runs"),
        (
            two(),
            {
                "samples": [
                    *(sample(BEGIN + n * S, 2) for n in range(4)),
                    sample(END - 1, 2, preemptions_total=3),
                ]
            },
            "",
        ),
        (
            two(),
            {"samples": [sample(BEGIN + n * S, 2, preemptions_total=n) for n in range(4)]},
            "3 preemptions within the window",
        ),
        (
            two(),
            {"samples": [structs.replace(sample(BEGIN + n * S, None, None), error="x") for n in range(4)]},
            "unobserved",
        ),
        (two(cached_tokens=900), {}, "sharing off target"),
        (two(prompt_sha256=digest("prompt 0")), {}, "occur more than once"),
        (two(prompt_tokens=1100), {}, "beyond 2%"),
        (
            two(),
            {"samples": [sample(BEGIN + n * S, 2, output_tokens_total=260 * n) for n in range(4)]},
            "own token counter differs by +23.1%",
        ),
        (
            two(),
            {
                "samples": [sample(BEGIN + n * S, 2, kv_usage_mean=0.9) for n in range(4)],
                "identity_before": identity(
                    engine="vllm", model="m", kv_tokens=100_000, block_size_tokens=16
                ),
                "identity_after": identity(engine="vllm", model="m", kv_tokens=100_000, block_size_tokens=16),
            },
            "KV claim contradicted",
        ),
    ],
)
def test_what_a_reader_must_know_is_noted(parts: list[Part], changes: dict[str, Any], words: str) -> None:
    """A valid cell says in its notes what else was seen."""
    verdict = speed(cell_evidence(parts, **changes)).verdict
    assert verdict.status is CellStatus.valid, verdict
    assert words in "; ".join(verdict.notes)
    assert bool(verdict.notes) == bool(words), verdict.notes


def counted(rows: list[RequestRow], **changes: Any) -> SpeedTrial:
    """Judge a burst of four streams."""
    plan = TrialPlan("t", "burst", Shape(1000, 11), 4, len(rows), 0)
    return speed(evidence(rows, **{"plan": plan, **changes}))


def test_a_burst_is_judged_by_its_requests() -> None:
    """A whole wave is valid and says how many ended; a failed request, a stranger, or none at all voids it."""
    rows = closed_loop(4, 20, warmup=0)
    sound = counted(rows)
    assert sound.verdict.status is CellStatus.valid and "20 requests" in sound.verdict.reason
    assert sound.cell is None and sound.prefill is None and sound.verdict.notes == ()
    failed = [*rows[:-1], structs.replace(rows[-1], outcome="http_error", http_status=503, error="busy")]
    assert counted(failed).verdict.status is CellStatus.server_error
    empty = [*rows[:-1], structs.replace(rows[-1], output_events=0)]
    assert "without any output" in counted(empty).verdict.reason
    assert counted(rows, busy_before=2).verdict.status is CellStatus.extra_traffic
    assert counted(rows, interrupted=True).verdict.status is CellStatus.interrupted


def test_a_burst_notes_what_was_cached() -> None:
    """Prompts that were answered from the cache against the policy are noted in a counted cell too."""
    rows = [structs.replace(row, cached_tokens=900) for row in closed_loop(4, 20, warmup=0)]
    assert "sharing off target" in "; ".join(counted(rows).verdict.notes)


def test_lengths_are_held_against_what_each_request_asked() -> None:
    """An arrival is asked for another length than the streams; one that was read short is refused, a longer one not."""
    plan = hold_plan(2, arrival=True)
    streams = [ok_row(n, S, phase="opening", prompt_tokens=1000) for n in (0, 1)]
    whole = ok_row(2, S, phase="arrival", prompt_tokens=5000)
    assert refused_length([*streams, whole], plan) == ""
    short = structs.replace(whole, prompt_tokens=4000)
    assert refused_length([*streams, short], plan) == "the server read 4,000 of 5,000 prompt tokens"
    refused = structs.replace(whole, outcome="http_error", http_status=413, error=None)
    assert (
        refused_length([*streams, refused], plan) == "the server refused a prompt of 5,000 tokens: HTTP 413"
    )
    assert refused_length([structs.replace(streams[0], prompt_tokens=1500)], plan) == ""
    assert refused_length([structs.replace(whole, outcome="http_error", http_status=429)], plan) == ""


def test_streams_that_fall_silent_for_good_void_a_cell() -> None:
    """A server that keeps a stream and sends no more of it hangs: half of its window is no sustained decode."""
    hung = [Part(0, every(10 * MS)), Part(1, every(10 * MS, end_ns=BEGIN + 2 * S))]
    found = speed(cell_evidence(hung))
    assert found.verdict.status is CellStatus.server_error
    assert "1 of 2 streams fell silent" in found.verdict.reason
    assert found.cell is not None and found.cell.stalled_streams == 1


def test_a_short_silence_at_the_end_of_a_window_is_a_gap() -> None:
    """What could go on after the window's end is not held against a server, nor are steps that always take long."""
    pause = [Part(0, every(10 * MS)), Part(1, every(10 * MS, end_ns=END - S))]
    assert speed(cell_evidence(pause)).verdict.status is CellStatus.valid
    slow = [Part(0, every(10 * MS)), Part(1, [2 * S, BEGIN + S // 2, BEGIN + 2 * S])]
    assert speed(cell_evidence(slow)).verdict.status is CellStatus.valid


def test_a_silence_while_a_stream_starts_again_is_a_note() -> None:
    """A prompt that is prefilled anew holds up the others; that they sent nothing meanwhile is said."""
    held_up = Part(0, every(10 * MS, end_ns=BEGIN + 2 * S))
    ended = Part(1, every(10 * MS, end_ns=BEGIN + S), outcome="ok", end_ns=BEGIN + S, finish_ns=BEGIN + S)
    again = Part(1, [END - 50 * MS, END + MS], index=2, sent_ns=BEGIN + S, phase="steady")
    found = speed(cell_evidence([held_up, ended, again]))
    assert "1 of 2 streams fell silent well before the window ended" in found.verdict.notes
    assert found.verdict.status is CellStatus.valid


def test_a_counter_that_stands_still_is_told() -> None:
    """A page that shows the same count again and again while tokens arrive is stale, and its gauges with it."""
    stale = [structs.replace(one, output_tokens_total=700) for one in samples(2)]
    found = speed(cell_evidence(two(), samples=stale))
    assert any("token counter stood still while" in note for note in found.verdict.notes)
    ended = cell_evidence(two(), samples=stale, identity_before=identity(engine="llama.cpp"))
    assert not any("counter" in note for note in speed(ended).verdict.notes), "it counts when a request ends"


def test_a_page_that_dies_within_the_window_is_told() -> None:
    """Gauges speak for the time in which they were read: half a window without any is said."""
    died = [one for one in samples(2) if one.t_ns < BEGIN + 2 * S]
    found = speed(cell_evidence(two(), samples=died))
    assert found.verdict.status is CellStatus.valid
    assert any("unobserved for 2.5 s on end of the window's 4 s" in note for note in found.verdict.notes)
