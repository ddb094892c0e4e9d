"""What estimated tokens rest on where a server does not count along, and output that comes in bunches."""

from __future__ import annotations

import pytest
from msgspec import structs

from nameplate.measure.cell import Cell, measure_cell
from nameplate.measure.cell_facts import cell_notes
from nameplate.measure.result import evaluate
from nameplate.measure.tests.held_cells import BEGIN, END, WINDOW, Part, cell_evidence, every, sample
from nameplate.measure.tests.trials import MS, S, identity
from nameplate.measure.trial_evidence import TrialEvidence

UNCOUNTED = [Part(n, every(40 * MS), None) for n in (0, 1)]
# Two streams of three tokens each 40 ms.
COUNTER = [sample(t, 2, output_tokens_total=3 * 2 * (t // (40 * MS))) for t in range(BEGIN, END, S // 2)]


def cell_of(evidence: TrialEvidence) -> Cell:
    return measure_cell(evidence, evidence.held)


def test_a_counter_tells_how_many_tokens_a_chunk_holds() -> None:
    """Where no answer ended, tokens a chunk are what the server's own counter grew by for each of our chunks."""
    cell = cell_of(cell_evidence(UNCOUNTED, samples=COUNTER))
    assert cell.estimated_by == "counter" and cell.tokens is not None and cell.tokens.estimated
    assert cell.tokens.tokens == pytest.approx(3 * 2 * WINDOW / (40 * MS), rel=0.02)
    assert cell.itl.p50 == pytest.approx(40 * MS / 3, rel=0.02)
    assert any("counter" in note for note in cell_notes(cell, ()))
    assert cell.kv is not None
    assert cell.kv.claim_tokens - cell.kv.prompt_tokens > 2 * (BEGIN - 2 * S) / (40 * MS) * 2


def test_a_counter_that_moves_when_a_request_ends_tells_nothing_of_a_window() -> None:
    """On such an engine a chunk is a token, which is said, and the counter is held against nothing."""
    facts = identity(engine="sglang", model="m")
    cell = cell_of(cell_evidence(UNCOUNTED, samples=COUNTER, identity_before=facts, identity_after=facts))
    assert cell.counter is None and cell.estimated_by == "chunks"
    assert any("one a chunk" in note for note in cell_notes(cell, ()))


def test_counted_tokens_are_not_estimated() -> None:
    """Where the server counts along nothing is estimated, whatever its counter says."""
    cell = cell_of(cell_evidence([Part(n, every(40 * MS), 2) for n in (0, 1)], samples=COUNTER))
    assert cell.estimated_by is None
    assert cell.counter is not None and cell.counter.difference == pytest.approx(1 / 3, rel=0.05)


def test_output_in_bunches_is_said() -> None:
    """Ten chunks at once each 400 ms are held back by something; the same chunks one by one are not."""
    bunched = [t + MS * n // 100 for t in every(400 * MS) for n in range(10)]
    said = cell_notes(cell_of(cell_evidence([Part(n, bunched) for n in (0, 1)])), ())
    assert any("bunches" in note and "the rate is exact to some 10%" in note for note in said)
    even = cell_of(cell_evidence([Part(n, every(40 * MS)) for n in (0, 1)]))
    assert not any("bunches" in note for note in cell_notes(even, ()))


def test_late_restarts_of_held_streams_cost_their_time() -> None:
    """What passes between an end and the next send is measured against the streams' whole time in the window."""
    first = Part(0, every(10 * MS, end_ns=BEGIN + S), outcome="ok", end_ns=BEGIN + S)
    again = Part(
        0,
        every(10 * MS, begin_ns=BEGIN + 2 * S),
        index=2,
        phase="steady",
        scheduled_ns=BEGIN + S,
        sent_ns=BEGIN + S + 80 * MS,
    )
    other = Part(1, every(10 * MS), scheduled_ns=S - 500 * MS)
    result = evaluate(cell_evidence([first, other, again]))
    assert result.facts.send_lag_share == pytest.approx(80 * MS / (2 * WINDOW))
    assert result.speed is not None and result.speed.verdict.status == "client_limited"
    prompt = structs.replace(again.row, sent_ns=BEGIN + S + 20 * MS)
    again.row = prompt
    result = evaluate(cell_evidence([first, other, again]))
    assert result.speed is not None and result.speed.verdict.status == "valid"
