"""A server's lives under a soak, its losses and returns, and the steps of the wall clock."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from msgspec import structs

from nameplate.contract.identity import Identity
from nameplate.evidence.client_sample import ClientSample
from nameplate.measure.soak.combine import measure_soak
from nameplate.measure.soak.fold import measure_segment
from nameplate.measure.soak.segment import SegmentResult
from nameplate.measure.soak.tests.segments import BEGAN, WALL, Writing
from nameplate.measure.tests.trials import S, identity, ok_row

FIRST = identity(engine="vllm", model="m", kv_tokens=100_000, process_start_time_s=1.0)
SECOND = identity(engine="vllm", model="m", kv_tokens=98_304, process_start_time_s=2000.0)


def restarted(directory: Path, *, back: Identity = SECOND, restarted: bool | None = True) -> SegmentResult:
    """Measure half an hour in which the server dies after 600 s and answers again at 640 s."""
    writing = Writing(directory, held=FIRST, duration_s=1800)
    lost, home = BEGAN + 602 * S, BEGAN + 640 * S
    for index, second in enumerate(range(0, 1790, 10)):
        sent = BEGAN + second * S
        row = ok_row(index, sent, phase="steady", ttft_ns=2 * S, itl_ns=S // 2)
        if 595 <= second < 650:
            reset = "reset" if second == 600 else "connect_failed"
            row = structs.replace(
                row,
                outcome=reset,
                end_ns=sent + S if second == 600 else sent,
                first_output_ns=None,
                last_output_ns=None,
                output_events=0,
                output_tokens=None,
                http_status=None,
            )
        writing.request(row)
    writing.orderly(BEGAN + 1800 * S, BEGAN + 1800 * S)
    writing.note(lost, "server_lost", sign="failures", detail="1 reset")
    told = {"lost_ns": lost, "identity": msgspec.to_builtins(back), "restarted": restarted}
    writing.note(home, "server_back", **told)
    writing.sampled(
        range(BEGAN, lost, S),
        running=1,
        waiting=0,
        kv_usage_mean=0.4,
        process_start_time_s=1.0,
        output_tokens_total=500,
    )
    writing.sampled(range(lost, home, S), error="refused")
    writing.sampled(
        range(home, BEGAN + 1800 * S, S),
        running=1,
        waiting=0,
        kv_usage_mean=0.2,
        process_start_time_s=2000.0,
        output_tokens_total=7,
    )
    return measure_segment(writing.write())


def test_each_life_keeps_its_identity_and_pool(tmp_path: Path) -> None:
    """A restart makes two parts: each with its own pool and use of it, and what changed between them."""
    first, second = restarted(tmp_path / "segment").parts
    assert (first.kv_tokens, second.kv_tokens) == (100_000, 98_304)
    assert {change.name for change in second.changes} == {"kv_tokens", "process_start_time_s"}
    assert first.kv_usage is not None and first.kv_usage.mean == pytest.approx(0.4)
    assert second.kv_usage is not None and second.kv_usage.mean == pytest.approx(0.2)
    assert first.ends.startswith("server lost") and second.begins == "server back"


def test_recovery_is_from_the_first_failure_to_the_first_success(tmp_path: Path) -> None:
    """How long the server was away, and how long until a request succeeded, are two numbers; failures are counted."""
    (outage,) = restarted(tmp_path / "segment").outages
    assert outage.away_ns == 38 * S and outage.restarted is True
    assert outage.last_success_ns == BEGAN + 597 * S
    assert outage.first_failure_ns == BEGAN + 601 * S
    assert outage.first_output_ns == BEGAN + 652 * S
    assert outage.first_success_ns == BEGAN + 657 * S
    assert outage.recovery_ns == 56 * S
    assert outage.failures == 5 and outage.failed_by == {"refused": 4, "reset": 1}


def test_windows_that_touch_an_outage_say_so(tmp_path: Path) -> None:
    """The window of the loss belongs to no part, the others to the one that they lie in; counters do not go back."""
    result = restarted(tmp_path / "segment")
    parts = [window.part for window in result.windows[:6]]
    assert parts == [0, 0, None, 1, 1, 1]
    assert any("server was lost" in note for note in result.windows[2].notes)
    assert result.windows[2].server.output_tokens == 0
    assert result.windows[2].failed == {"refused": 4, "reset": 1}


def test_a_blip_is_no_new_life(tmp_path: Path) -> None:
    """A server that was away and is the same process keeps its part."""
    result = restarted(tmp_path / "segment", back=FIRST, restarted=False)
    (outage,) = result.outages[:1]
    assert outage.restarted is False


def test_another_pool_is_told_and_another_model_is_invalid(tmp_path: Path) -> None:
    """An engine sizes its pool anew at each start; another model would be another server."""
    same = measure_soak([restarted(tmp_path / "a")])
    assert not any(gate.gate == "identity" and gate.status == "invalid" for gate in same.verdict.gates)
    other = restarted(
        tmp_path / "b", back=identity(engine="vllm", model="other", process_start_time_s=2000.0)
    )
    verdict = measure_soak([other]).verdict
    assert verdict.status == "invalid" and verdict.exit_code == 4
    assert any("model changed from m to other" in reason for reason in verdict.reasons)


def test_steps_of_the_wall_clock_are_reported_and_move_nothing(tmp_path: Path) -> None:
    """Durations are of the monotonic clock; a step of an hour is told with its size and when it was seen."""
    writing = Writing(tmp_path / "segment", duration_s=600)
    writing.orderly(BEGAN + 600 * S, BEGAN + 600 * S)
    for second in range(0, 600, 10):
        wall = WALL + second * S + (3600 * S if second >= 300 else 0)
        writing.client.append(
            ClientSample(
                t_ns=BEGAN + second * S,
                wall_ns=wall,
                process="load",
                worker=0,
                rss_bytes=1 << 20,
                unparsed=2,
                descriptors=9,
            )
        )
        writing.client.append(
            ClientSample(t_ns=BEGAN + second * S, wall_ns=wall, process="parent", rss_bytes=2 << 20)
        )
    result = measure_segment(writing.write())
    (step,) = result.clock_steps
    assert step.step_ns == 3600 * S and step.before_ns == BEGAN + 300 * S
    assert result.observed_ns - result.submitted_ns == 600 * S
    memory = result.windows[1].client.memory_bytes
    assert memory is not None and memory.mean == 3 << 20
    # Workers' files are joined one after the other, so a process's samples may all stand behind another's.
    writing.client.sort(key=lambda sample: sample.process)
    assert measure_segment(writing.write()) == result
    backlog = result.windows[0].client.backlog
    assert backlog is not None and backlog.max == 2
