"""What a trial of the speed matrix shows: one cell's numbers by its kind, and its status."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from nameplate.hosts.summary import GpuSummary, summarise
from nameplate.measure.cell import Cell, measure_cell
from nameplate.measure.cell_facts import cell_facts, cell_notes, counted_facts, gate_notes
from nameplate.measure.measurement import Measurement
from nameplate.measure.mixed import Mixed, arrival_of, measure_mixed
from nameplate.measure.prefill import Prefill, measure_prefill
from nameplate.measure.trial_evidence import TrialEvidence
from nameplate.measure.windows import Window
from nameplate.verdict.cell import CellStatus, CellVerdict, judge_cell
from nameplate.verdict.gate import GateResult
from nameplate.verdict.trial import TrialStatus, TrialVerdict

ROLES = ("warmup", "prefill", "decode", "burst", "mixed")


class SpeedTrial(Struct, frozen=True, kw_only=True):
    """Hold one cell's verdict and its numbers: `cell` of held streams, `prefill`, `mixed`; null where it has none.

    A burst and a count of requests have the numbers of every counted trial (`measurement`) and none here. `gpu` is of
    the server's host over the window, where it was watched.
    """

    verdict: CellVerdict
    cell: Cell | None = None
    prefill: Prefill | None = None
    mixed: Mixed | None = None
    gpu: GpuSummary | None = None

    @property
    def trial_verdict(self) -> TrialVerdict:
        """Return the verdict that a study of trials goes by."""
        status = self.verdict.status
        if status is CellStatus.valid:
            return TrialVerdict("pass", (), ())
        judged: TrialStatus = "inconclusive" if status is CellStatus.interrupted else "invalid"
        return TrialVerdict(judged, (f"{status.value}: {self.verdict.reason}",), ())


def measure_speed(
    evidence: TrialEvidence, measurement: Measurement, gates: Sequence[GateResult]
) -> SpeedTrial | None:
    """Measure and judge a trial of the speed matrix; None for a trial that is none."""
    plan = evidence.plan
    if plan.role not in ROLES:
        return None
    if plan.hold is None:
        prefill = measure_prefill(evidence, measurement.server) if plan.until is not None else None
        judged = judge_cell(counted_facts(evidence, gates, prefill))
        notes = gate_notes(gates)
        if prefill is not None and any(sample.nominal for sample in prefill.samples):
            notes = ("nominal: the server does not count prompt tokens, so those asked for stand in", *notes)
        verdict = CellVerdict(judged.status, judged.reason, notes)
        return SpeedTrial(verdict=verdict, prefill=prefill, gpu=_gpu(evidence, measurement.whole_run))
    cell = measure_cell(evidence, evidence.held)
    verdict = judge_cell(cell_facts(evidence, cell, evidence.held, gates))
    mixed = None
    if plan.hold.arrival is not None:
        mixed = measure_mixed(evidence, evidence.held)
        verdict = _with_arrival(evidence, mixed, verdict)
    notes = cell_notes(cell, gates, looped=verdict.status is CellStatus.looped)
    judged = CellVerdict(verdict.status, verdict.reason, notes)
    return SpeedTrial(verdict=judged, cell=cell, mixed=mixed, gpu=_gpu(evidence, cell.window))


def _gpu(evidence: TrialEvidence, window: Window | None) -> GpuSummary | None:
    if window is None or not evidence.gpu_samples:
        return None
    return summarise(evidence.gpu_samples, window.begin_ns, window.end_ns, "server")


def _with_arrival(evidence: TrialEvidence, mixed: Mixed, verdict: CellVerdict) -> CellVerdict:
    """Hold a mixed cell to its arrival: without its first output and the time after it there is nothing to compare."""
    if not verdict.valid or mixed.after is not None:
        return verdict
    arrival = arrival_of(evidence)
    if arrival is None or arrival.first_output_ns is None:
        return CellVerdict(CellStatus.not_ready, "the long prompt got no output before its deadline")
    return CellVerdict(
        CellStatus.interrupted, "the load ended before the time after the long prompt was over"
    )
