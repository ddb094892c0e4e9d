"""Conducting a curve study: survey, freeze the levels, run them, name a loss of service, keep the result current."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from nameplate import __version__
from nameplate.contract.contract import Contract
from nameplate.contract.curve import load_of
from nameplate.contract.errors import CallerError, Interrupted, PromptRefused, ServerError
from nameplate.contract.identity import Identity
from nameplate.contract.limits import ServerLimits
from nameplate.contract.plan import TrialPlan
from nameplate.evidence import layout, manifest
from nameplate.evidence.reader import TrialReader
from nameplate.measure.curve_builder import RESTARTED, AboutCurve, build_curve
from nameplate.measure.curve_loss import LOST, losses_of, read_refusal
from nameplate.measure.curve_result import CurveResult, decode_curve, encode_curve
from nameplate.measure.result import TrialResult
from nameplate.studies.archive import StudyArchive
from nameplate.studies.conduct import Conditions, Prepared, prepare, prepare_again
from nameplate.studies.curve import Beside, curve
from nameplate.studies.resume import Leftover
from nameplate.studies.runner import run
from nameplate.studies.speed import Left, Telling
from nameplate.studies.speed_conduct import Corpora
from nameplate.trial.life import run_trial
from nameplate.verdict.curve_level import refused_for_length, restarted

# How long a lost server is watched for its return, and how often.
RETURN_S, RETURN_EVERY_S = 60, 5


class PreparedCurve(Struct, frozen=True, kw_only=True):
    """Hold a curve study that may begin; `identity` is the server as it was when the study began."""

    study: Prepared
    identity: Identity
    climb: Corpora


def prepare_curve(conditions: Conditions, wanted: Contract, archive: StudyArchive) -> PreparedCurve:
    """Survey the server, refuse what cannot be measured, and freeze the contract; all before any load."""
    study = prepare(conditions, wanted, archive)
    plan, climb = study.contract.curve, Corpora(conditions, study.site, study.contract, study.journal)
    assert plan is not None
    if plan.kind == "input" and plan.inputs:
        try:
            # A prompt that is too short to be unique is the caller's mistake: it is refused before any load.
            climb.of(plan.shape_at(min(plan.inputs)))
        except CallerError:
            study.journal.close()
            (archive.directory / layout.CONTRACT).unlink()
            archive.discard()
            raise
        except ServerError:
            pass  # What the server refuses is the business of each step.
    return PreparedCurve(study=study, identity=study.site.report.identity, climb=climb)


def prepare_curve_again(conditions: Conditions, archive: StudyArchive) -> PreparedCurve:
    """Make an interrupted curve study ready to go on, under the contract that it has.

    The server may be another one by now: its levels are another curve then.
    """
    before = read_curve(archive.directory)
    study = prepare_again(conditions, archive)
    lengths = {
        (header.plan.shape.input_tokens, header.plan.shared_tokens): header.prompt_length
        for header in archive.headers()
    }
    nonce = f"{study.contract.nonce}.again{study.journal.size()}"
    climb = Corpora(conditions, study.site, study.contract, study.journal, lengths, nonce)
    identity = before.identity if before is not None else study.site.report.identity
    return PreparedCurve(study=study, identity=identity, climb=climb)


def read_curve(directory: Path) -> CurveResult | None:
    """Read a curve study's result; None where there is none yet."""
    path = directory / layout.RESULT
    return decode_curve(path.read_bytes()) if path.exists() else None


def without_restarts(left: Leftover) -> Leftover:
    """Count trials during which the server restarted as spoiled: their levels are measured again."""
    lost = {key for key, result in left.sealed.items() if restarted(result.facts)}
    kept = {key: result for key, result in left.sealed.items() if key not in lost}
    return Leftover(kept, left.spoiled | lost)


def conduct_curve(
    prepared: PreparedCurve, left: Leftover | None = None, *, max_s: float | None = None
) -> CurveResult:
    """Run the study to its end and return its result, which is on disk, and current after every trial.

    `max_s` bounds the time of all trials together, in seconds; those of `left` count. Interruptions and a lost server
    end the study with a status of its own; they do not raise.
    """
    study = prepared.study
    archive, contract, watch = study.archive, study.contract, study.setup.watch
    plan = contract.curve
    assert plan is not None
    results: list[TrialResult] = []
    refusals: dict[str, str] = {}
    beside = Beside()
    spoiled = left.spoiled if left else frozenset()

    def record(exit_code: int | None, reason: str = "") -> CurveResult:
        about = AboutCurve(
            identity=prepared.identity,
            losses=losses_of(archive.directory, TrialReader(archive.directory).journal()),
            refusals=refusals,
            refused_probes=beside.refused_probes,
            spoiled=spoiled,
            command=study.setup.command,
            tool=f"nameplate {__version__}",
        )
        result = build_curve(contract, about, results, beside.unrun, exit_code=exit_code, reason=reason)
        manifest.write_durably(archive.directory / layout.RESULT, encode_curve(result))
        return result

    def finished_trial(trial: TrialPlan, result: TrialResult, replayed: bool) -> None:
        results.append(result)
        if refused_for_length(result.facts):
            words = read_refusal(archive.trial(trial.key))
            if words:
                refusals[trial.key] = words
        record(None)
        watch.finished(trial, result, replayed)

    def execute(trial: TrialPlan) -> TrialResult:
        directory = archive.trial(trial.key)
        corpus = study.corpora.get(trial.shape) or prepared.climb.of(trial.shape)
        try:
            result = run_trial(study.setup, trial, corpus, directory)
        except PromptRefused:
            raise
        except ServerError as error:
            known = trial.key if (directory / layout.HEADER).exists() else None
            _note_loss(study, load_of(plan.kind, trial), known, error.what)
            raise
        if restarted(result.facts):
            detail = {"load": load_of(plan.kind, trial), "trial": trial.key, "error": f"{RESTARTED}."}
            study.journal.note(study.site.ground.clock.now_ns(), LOST, **detail, returned=True, waited_s=0.0)
        return result

    def say_left(state: Left) -> None:
        note = "at least: nothing is measured yet" if state.at_least else ""
        watch.estimate(state.left_s, state.done, state.of, note)

    archive.unseal()
    record(None)
    limits = ServerLimits.of(prepared.identity)
    outcome = run(
        curve(contract, limits, Telling(watch.tell, say_left), beside, max_s),
        execute,
        sealed=left.sealed if left else None,
        spoiled=spoiled,
        on_trial=finished_trial,
    )
    if outcome.exit_code:
        watch.tell(outcome.reason)
    result = record(outcome.exit_code, outcome.reason)
    study.journal.close()
    archive.seal()
    return result


def _note_loss(study: Prepared, load: float, trial: str | None, error: str) -> None:
    """Watch whether a lost server comes back, and note the loss with that; a person may cut the watching short."""
    clock = study.site.ground.clock
    began_ns = clock.now_ns()
    returned: bool | None = None
    try:
        study.setup.watch.tell(f"the server was lost: watching up to {RETURN_S} s whether it comes back")
        for _ in range(RETURN_S // RETURN_EVERY_S):
            clock.sleep_ns(RETURN_EVERY_S * 10**9)
            returned = study.site.adapter.healthy()
            if returned:
                break
    except (Interrupted, KeyboardInterrupt):
        pass
    study.journal.note(
        clock.now_ns(),
        LOST,
        load=load,
        trial=trial,
        error=error,
        returned=returned,
        waited_s=(clock.now_ns() - began_ns) / 1e9,
    )
