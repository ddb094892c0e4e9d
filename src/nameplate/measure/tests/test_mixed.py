"""Mixed prefill: the streams' tokens before, during and after one long prompt, and its TTFT, worked out by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from nameplate.measure.mixed import SLICE_NS, Mixed, measure_mixed
from nameplate.measure.result import evaluate
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
    shifted,
)
from nameplate.measure.trial_evidence import TrialEvidence
from nameplate.verdict.cell import CellStatus

SENT, FIRST = BEGIN + S, BEGIN + 2 * S


def arrival(first_ns: int | None = FIRST, **more: object) -> Part:
    """Return a long prompt that comes a second after readiness and has its first output a second later."""
    times = [] if first_ns is None else [first_ns, first_ns + 5 * MS]
    values: dict[str, object] = {"phase": "arrival", "prompt_tokens": 5000, "outcome": "ok"}
    return Part(2, times, 1, sent_ns=SENT, **{**values, **more})  # type: ignore[arg-type]


def mixed_evidence(*arrivals: Part, counted: bool = True, **more: object) -> TrialEvidence:
    """Return two streams of a token each ten milliseconds that halve while the long prompt is prefilled."""
    times = [*every(10 * MS, end_ns=SENT), *every(20 * MS, SENT, FIRST), *every(10 * MS, FIRST)]
    streams = [Part(stream, times, 1 if counted else None) for stream in range(2)]
    values: dict[str, object] = {
        "plan": hold_plan(2, arrival=True),
        "held": held(2, end_ns=None),
        "samples": [sample(BEGIN + n * S // 2, 2 + (n in (2, 3, 4))) for n in range(6)],
    }
    return cell_evidence([*streams, *arrivals], **{**values, **more})  # type: ignore[arg-type]


def measured(given_evidence: TrialEvidence) -> Mixed:
    """Measure as a trial does."""
    return measure_mixed(given_evidence, given_evidence.held)


def test_before_during_and_after() -> None:
    """200 tokens a second before, 100 while the long prompt is prefilled, 200 after; its own tokens are none of it."""
    mixed = measured(mixed_evidence(arrival()))
    assert mixed.before is not None and mixed.during is not None and mixed.after is not None
    assert (mixed.before.rate, mixed.during.rate, mixed.after.rate) == (200.0, 100.0, 200.0)
    assert (mixed.ttft_ns, mixed.arrival_prompt_tokens) == (S, 5000)
    assert mixed.before.window.length_ns == mixed.during.window.length_ns == mixed.after.window.length_ns == S
    assert not mixed.estimated


def test_the_timeline_holds_the_same_tokens() -> None:
    """Slices of a quarter second from readiness on add up to the three parts."""
    mixed = measured(mixed_evidence(arrival()))
    assert mixed.timeline[:4] == mixed.timeline[8:] == (200.0,) * 4
    assert mixed.timeline[4:8] == pytest.approx((100.0,) * 4, abs=8.0)
    parts = [part.tokens for part in (mixed.before, mixed.during, mixed.after) if part is not None]
    assert sum(mixed.timeline) * SLICE_NS / S == pytest.approx(sum(parts))


def test_uncounted_tokens_are_estimated() -> None:
    """Where the server does not count along, parts and timeline are estimated, and agree."""
    mixed = measured(mixed_evidence(arrival(), counted=False))
    assert mixed.estimated and mixed.before is not None and mixed.before.rate == 200.0
    assert mixed.timeline[0] == 200.0


@given(st.integers(-S, 10**17))
def test_another_clock_changes_nothing(by_ns: int) -> None:
    """The same evidence at other times gives the same rates and timeline."""
    given_evidence = mixed_evidence(arrival())
    one, other = measured(given_evidence), measured(shifted(given_evidence, by_ns))
    assert one.timeline == other.timeline and one.ttft_ns == other.ttft_ns
    assert one.during is not None and other.during is not None and one.during.rate == other.during.rate


def test_an_arrival_without_output_leaves_nothing_to_compare() -> None:
    """A long prompt that got no output before its deadline, or was never sent, has no parts; the cell is not ready."""
    never = mixed_evidence(arrival(None, outcome="cancelled"))
    assert measured(never).ttft_ns is None and measured(never).before is None
    result = evaluate(never)
    assert result.speed is not None and result.speed.verdict.status is CellStatus.not_ready
    assert "no output before its deadline" in result.speed.verdict.reason
    none = evaluate(mixed_evidence(samples=[]))
    assert none.speed is not None and none.speed.verdict.status is CellStatus.not_ready


def test_a_load_that_ended_too_early_is_interrupted() -> None:
    """Without the whole time after the first output there is no comparison."""
    early = mixed_evidence(arrival(), ended_ns=FIRST + S - 1)
    assert measured(early).ttft_ns == S and measured(early).after is None
    result = evaluate(early)
    assert result.speed is not None and result.speed.verdict.status is CellStatus.interrupted


def test_a_sound_mixed_cell_is_valid_and_one_with_strangers_is_not() -> None:
    """The arrival itself is ours; more than it beside the streams is somebody else's."""
    sound = evaluate(mixed_evidence(arrival()))
    assert sound.speed is not None and sound.speed.verdict.status is CellStatus.valid
    crowd = [sample(BEGIN + n * S // 2, 4) for n in range(8)]
    result = evaluate(mixed_evidence(arrival(), samples=crowd))
    assert result.speed is not None and result.speed.verdict.status is CellStatus.extra_traffic


def test_streams_that_were_never_ready_have_no_parts() -> None:
    """Without readiness the arrival was not released, and the cell is not ready."""
    account = held(2, begin_ns=None, end_ns=None, gave_up="not ready within 60 s")
    given_evidence = mixed_evidence(held=account)
    assert measured(given_evidence) == Mixed()
    result = evaluate(structs.replace(given_evidence, ended_ns=END))
    assert result.speed is not None and result.speed.verdict.status is CellStatus.not_ready
