"""What the journal says of a hold is held against rows and samples."""

from __future__ import annotations

from msgspec import structs

from nameplate.measure.held import Held
from nameplate.measure.readiness import Look
from nameplate.measure.tests.held_cells import BEGIN, Part, S, cell_evidence, every, held
from nameplate.measure.trial_evidence import TrialEvidence
from nameplate.verify.held import check_hold
from nameplate.verify.ledger import Ledger
from nameplate.verify.names import Name

GAP_NS = S // 50


def found(account: Held, *, failed: bool = False) -> str:
    """Return what the check of two streams that run from second two on finds wrong; empty where it passes."""
    parts = [Part(stream, every(GAP_NS)) for stream in range(2)]
    evidence: TrialEvidence = cell_evidence(parts, held=account)
    if failed:
        first = structs.replace(evidence.rows[0], outcome="http_error", end_ns=BEGIN - S)
        evidence = structs.replace(evidence, rows=[first, *evidence.rows[1:]])
    ledger = Ledger([Name.readiness])
    check_hold(evidence, ledger)
    (check,) = ledger.checks()
    return check.detail if check.status == "fail" else ""


def given_up(at_ns: int) -> Held:
    """Return the account of two streams that were never ready, given up at a moment."""
    return held(2, decided_ns=at_ns, begin_ns=None, end_ns=None, gave_up="not ready within 60 s")


def test_an_account_that_rows_and_samples_bear_out_passes() -> None:
    """Streams that produced, on a server that ran them, were ready as the journal says."""
    assert found(held(2)) == ""


def test_streams_that_produced_cannot_be_said_to_be_silent() -> None:
    """The number of streams that had produced output is recomputed from their rows."""
    saw = Look(streams=2, produced=1, running=2, waiting=0, server_tells=True)
    assert "1 of 2 streams" in found(held(2, saw=saw))


def test_what_the_server_ran_must_stand_in_a_sample() -> None:
    """A gauge that no sample near the decision shows was not seen."""
    saw = Look(streams=2, produced=2, running=1, waiting=1, server_tells=True)
    assert "no sample shows it" in found(held(2, saw=saw))


def test_a_wait_is_not_given_up_early_without_cause() -> None:
    """Before its deadline a wait ends only for a request that failed or for somebody else's load."""
    assert "given up before its deadline" in found(given_up(BEGIN))
    assert found(given_up(BEGIN), failed=True) == ""
