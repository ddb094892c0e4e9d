"""What became of every request: nothing is unknown that the files could tell."""

from __future__ import annotations

import heapq
import shutil
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from nameplate.contract.shape import Shape
from nameplate.evidence import layout
from nameplate.evidence.reader import TrialReader
from nameplate.evidence.records import Kind
from nameplate.measure.soak.combine import measure_soak
from nameplate.measure.soak.fold import measure_segment
from nameplate.measure.soak.segment import SegmentResult
from nameplate.measure.soak.tests.segments import BEGAN, Writing, chunk, head, loop, output
from nameplate.measure.tests.trials import S, identity, ok_row

# The published soak: its recipe, its server's pool, and what its archive could not tell.
LONG = Shape(131_072, 16_384)
POOL = 2_947_463
RUNNING = 20
DECODE_S, PREFILL_S, EVENTS = 240, 14, 16
STEP_NS = DECODE_S * S // (EVENTS - 1)


def published(directory: Path, *, killed: bool) -> Writing:
    """Write eight hours of 62 clients on a server that holds some twenty; 38 are left when the drain is given up.

    `killed`: the client dies at that moment and leaves no row of them; otherwise it cuts and names them itself.
    """
    writing = Writing(
        directory, shape=LONG, concurrency=62, duration_s=28_800, held=identity(engine="vllm", kv_tokens=POOL)
    )
    slots = [(BEGAN, slot) for slot in range(62)]
    servers = [BEGAN + 13 * S * at for at in range(RUNNING)]
    ended = BEGAN + 28_800 * S
    everything = []
    index = 0
    while slots:
        sent, slot = heapq.heappop(slots)
        if sent >= ended:
            continue
        began = max(sent, heapq.heappop(servers))
        row = ok_row(
            index,
            sent,
            phase="opening" if index < 62 else "steady",
            slot=slot,
            ttft_ns=began - sent + PREFILL_S * S,
            itl_ns=STEP_NS,
            tokens=EVENTS,
        )
        everything.append(structs.replace(row, prompt_tokens=LONG.input_tokens))
        heapq.heappush(servers, row.end_ns or 0)
        heapq.heappush(slots, (row.end_ns or 0, slot))
        index += 1
    # The moment at which just 38 are left.
    given_up = sorted(row.end_ns or 0 for row in everything)[-39] + S
    for row in everything:
        assert row.end_ns is not None and row.sent_ns is not None and row.first_output_ns is not None
        if row.end_ns <= given_up:
            writing.request(row)
            continue
        writing.sent(row.index, row.sent_ns)
        seen = 0
        if row.first_output_ns <= given_up:
            writing.record(Kind.READ, row.index, row.first_output_ns - S, head())
            seen = 1 + (given_up - row.first_output_ns) // STEP_NS
            for at in range(seen):
                t_ns = row.first_output_ns + at * STEP_NS
                writing.record(Kind.READ, row.index, t_ns, output("x", 1024 * (at + 1)))
        if not killed:
            last = row.first_output_ns + (seen - 1) * STEP_NS if seen else None
            cut = structs.replace(
                row,
                outcome="cancelled",
                end_ns=given_up,
                finish_ns=None,
                finish_reason=None,
                first_output_ns=row.first_output_ns if seen else None,
                last_output_ns=last,
                http_status=200 if seen else None,
                output_events=seen,
                output_tokens=1024 * seen if seen else None,
            )
            writing.record(Kind.CANCEL, row.index, given_up)
            writing.rows.append(cut)
    writing.note(BEGAN, "submit_began")
    writing.note(ended, "submit_ended", reason="duration", in_flight=62)
    writing.note(ended, "drain_began")
    if not killed:
        writing.note(given_up, "drain_ended", cancelled=38)
    writing.sampled(
        range(BEGAN, given_up, 30 * S),
        running=RUNNING,
        waiting=42,
        kv_usage_mean=0.9,
        process_start_time_s=1.0,
    )
    writing.sampled([given_up - S // 2], running=20, waiting=18, kv_usage_mean=0.8, process_start_time_s=1.0)
    return writing


@pytest.fixture(scope="module")
def cut(tmp_path_factory: pytest.TempPathFactory) -> SegmentResult:
    """Return the published soak as it ends when the client cuts what is left."""
    directory = tmp_path_factory.mktemp("cut") / "segment"
    return measure_segment(published(directory, killed=False).write())


@pytest.fixture(scope="module")
def lost(tmp_path_factory: pytest.TempPathFactory) -> SegmentResult:
    """Return the published soak as it ends when the client is killed."""
    directory = tmp_path_factory.mktemp("lost") / "segment"
    return measure_segment(published(directory, killed=True).write(sealed=False))


@pytest.mark.parametrize("killed", [True, False])
def test_the_last_38_are_named(cut: SegmentResult, lost: SegmentResult, killed: bool) -> None:
    """Each of the 38 that the archive could not tell has a fate, whether the client cut them or was killed."""
    result = lost if killed else cut
    assert len(result.unfinished) == 38 == result.counts.open
    assert result.counts.balanced and result.counts.untraced == result.counts.never_sent == 0
    fates = [left.fate for left in result.unfinished]
    # Of the twenty that ran one was in prefill: like those in the queue, it had not sent a byte.
    assert fates.count("decoding") == 19 and fates.count("queued") == 19
    for left in result.unfinished:
        assert left.sent_ns is not None and left.waited_ns is not None and left.rebuilt is killed
        assert (left.tokens or 0) > 0 and left.counted if left.fate == "decoding" else not left.tokens
        assert left.last_output_ns is not None if left.fate == "decoding" else left.first_output_ns is None
    gauges = result.server_at_end
    assert gauges is not None and (gauges.running, gauges.waiting) == (20, 18) and gauges.age_ns <= 2 * S


def test_percentiles_of_the_completed_are_beside_their_bounds(lost: SegmentResult) -> None:
    """Those who were left make the worst case of a p99 infinite, and the difference is said in words."""
    result = measure_soak([lost])
    ttft = next(held for held in result.latencies if held.metric == "ttft")
    p50, p99 = ttft.percentiles[0], ttft.percentiles[-1]
    assert ttft.completed > 2000 and ttft.n == result.counts.sent
    assert p50.completed_only is not None and p50.best is not None and p50.worst is not None
    e2e = next(held for held in result.latencies if held.metric == "e2e")
    assert e2e.open == 38 and e2e.percentiles[-1].worst is None
    assert any(said.startswith("e2e p99") and "infinite" in said for said in result.misleading)
    assert p99.n == ttft.n


def test_full_budget_equivalents_stand_beside_what_was_resident(cut: SegmentResult) -> None:
    """2,947,463 tokens of pool over 147,456 a request is twenty; what was resident is the pool's use."""
    (part,) = cut.parts
    assert part.full_budget_tokens == 147_456
    assert part.equivalents_full is not None and round(part.equivalents_full) == 20
    assert part.kv_usage is not None and part.resident_tokens == pytest.approx(part.kv_usage.mean * POOL)
    assert part.running is not None and part.running.mean == pytest.approx(20)
    assert part.tokens_per_running == pytest.approx((part.resident_tokens or 0) / 20)


def test_bytes_that_were_not_kept_still_tell_that_they_came(tmp_path: Path) -> None:
    """Beyond the raw budget a request's reads have only times: it was accepted at least, its tokens are unknown."""
    writing = Writing(tmp_path / "segment")
    writing.note(BEGAN, "submit_began")
    writing.sent(0, BEGAN)
    writing.record(Kind.BARE, 0, BEGAN + S, size=200)
    writing.sent(1, BEGAN + S)
    writing.record(Kind.READ, 1, BEGAN + 2 * S, head())
    writing.record(Kind.SCHEDULED, 2, BEGAN + 2 * S)
    result = measure_segment(writing.write(sealed=False))
    bare, accepted = result.unfinished
    assert bare.fate == "accepted" and bare.tokens is None and not bare.bytes_kept
    assert (bare.last_byte_ns, bare.reads, bare.wire_bytes) == (BEGAN + S, 1, 200)
    assert accepted.fate == "accepted" and accepted.tokens == 0 and accepted.bytes_kept
    assert result.counts.never_sent == 1 and result.counts.sent == 2


@pytest.mark.parametrize("orderly", [True, False])
def test_an_index_without_any_trace_is_told(tmp_path: Path, orderly: bool) -> None:
    """A kill may lose the last second of one worker while another's is there; an orderly end may lose nothing."""
    writing = Writing(tmp_path / "segment")
    writing.note(BEGAN, "submit_began")
    for index in (0, 2):
        writing.request(ok_row(index, BEGAN + index * S, phase="steady"))
    if orderly:
        writing.note(BEGAN + 9 * S, "drain_ended", cancelled=0)
    result = measure_segment(writing.write())
    assert result.counts.untraced == 1 and result.counts.sent == 2
    assert bool(result.damage) is orderly


def test_an_answer_whose_row_was_lost_is_recovered(tmp_path: Path) -> None:
    """A request that ended in the last second before a kill has no row, but its bytes say that it was ok."""
    writing = Writing(tmp_path / "segment")
    writing.note(BEGAN, "submit_began")
    writing.sent(0, BEGAN)
    writing.record(Kind.READ, 0, BEGAN + S, head() + output("a", 1))
    done = chunk(b'data: {"choices": [{"index": 0, "delta": {}, "finish_reason": "length"}]}\n\n')
    done += chunk(b"data: [DONE]\n\n") + b"0\r\n\r\n"
    writing.record(Kind.READ, 0, BEGAN + 2 * S, output("b", 2) + done)
    result = measure_segment(writing.write(sealed=False))
    assert result.counts.ok == result.counts.recovered == 1 and not result.unfinished
    assert result.counts.outcomes == {"ok": 1} and sum(w.output_tokens for w in result.windows) == 2


@settings(max_examples=25, deadline=None)
@given(shares=st.lists(st.floats(0, 1), min_size=4, max_size=4), together=st.booleans())
def test_killed_at_any_byte_nothing_is_unknown(
    tmp_path_factory: pytest.TempPathFactory, shares: list[float], together: bool
) -> None:
    """Wherever a kill cuts the files, every request of which a send is left is ok, or named with its fate."""
    directory = tmp_path_factory.mktemp("kill") / "segment"
    writing = Writing(directory, duration_s=120, window_s=60)
    loop(writing, until_ns=BEGAN + 60 * S, running=3)
    writing.note(BEGAN, "submit_began")
    writing.write(sealed=False)
    files = (layout.REQUESTS, layout.EVENTS, layout.READS, layout.JOURNAL)
    for name, share in zip(files, shares, strict=True):
        data = (directory / name).read_bytes()
        (directory / name).write_bytes(data[: int(len(data) * (shares[0] if together else share))])
    result = measure_segment(directory)
    counts = result.counts
    reader = TrialReader(directory)
    told = {row.index for row in reader.rows()} | {
        record.request for record in reader.records() if record.kind == Kind.SENT
    }
    assert counts.sent == len(told)
    assert counts.sent == counts.ok + counts.failed + counts.open and counts.balanced
    assert len(result.unfinished) == counts.open
    assert sum(window.sent for window in result.windows) == counts.sent
    tokens = sum(window.output_tokens for window in result.windows)
    assert tokens == result.tokens.output_ok + result.tokens.output_partial
    shutil.rmtree(directory)
