"""Conducting a capacity study: survey, freeze the contract, run the generator, record, seal, rate.

`surveyed`, `corpus_of` and `setup_of` are what every study begins with.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct, structs

from nameplate import __version__
from nameplate.contract.contract import Contract
from nameplate.contract.errors import CallerError, NameplateError
from nameplate.contract.identity import Fact, Identity
from nameplate.contract.plan import TrialPlan
from nameplate.contract.shape import Shape
from nameplate.contract.target import Credentials, Target
from nameplate.engines.ask import TIMEOUT_S
from nameplate.engines.identify import limit_warning
from nameplate.evidence.header import Keeping
from nameplate.evidence.journal import Journal
from nameplate.measure.plate import Plate
from nameplate.measure.plate_builder import build_plate
from nameplate.measure.result import TrialResult
from nameplate.measure.study_record import StudyRecord, study_record
from nameplate.prompts.dataset import Dataset
from nameplate.studies.archive import StudyArchive
from nameplate.studies.capacity import study
from nameplate.studies.outlook import confirming
from nameplate.studies.price import forecast
from nameplate.studies.resume import Leftover
from nameplate.studies.runner import run
from nameplate.trial.corpus import Composed, Corpus
from nameplate.trial.ground import Ground
from nameplate.trial.interruption import Interruption
from nameplate.trial.life import TrialSetup, Watch, run_trial
from nameplate.trial.site import (
    Site,
    build_corpus,
    require_context,
    require_contract_fields,
    require_flush,
    survey,
)
from nameplate.verdict.expectation import Expectation
from nameplate.verdict.shape import Decision, ShapeVerdict


class Conditions(Struct, frozen=True, kw_only=True):
    """Hold what surrounds a study and is not part of its contract."""

    ground: Ground
    credentials: Credentials
    keeping: Keeping
    command: tuple[str, ...]
    client_host: dict[str, str | int]
    interruption: Interruption
    watch: Watch
    log: Mapping[str, Fact] = {}
    given: Mapping[str, Fact] = {}
    tokenizer: Path | None = None
    dataset: Dataset | None = None
    workers: int = 1
    new_connections: bool = False
    raise_scheduling: bool = True
    watch_gpus: bool = False


class Prepared(Struct, frozen=True, kw_only=True):
    """Hold a study that may begin: the server surveyed, the contract frozen and written, the prompts calibrated."""

    archive: StudyArchive
    journal: Journal
    site: Site
    contract: Contract
    setup: TrialSetup
    corpora: Mapping[Shape, Corpus]


class Conducted(Struct, frozen=True):
    """Hold a study that ended: its plate, its record, and its trials' results in order."""

    plate: Plate
    record: StudyRecord
    results: tuple[TrialResult, ...]


def prepare(conditions: Conditions, wanted: Contract, archive: StudyArchive) -> Prepared:
    """Survey the server, refuse what cannot be measured, and freeze the contract; all before any load."""
    journal = archive.journal()
    try:
        site = surveyed(conditions, wanted.target, wanted, wanted.nonce, journal)
        contract = structs.replace(wanted, target=site.target)
        for shape in contract.shapes:
            require_context(site.report.identity, shape)
        corpora = {shape: corpus_of(conditions, site, contract, shape, journal) for shape in contract.shapes}
    except NameplateError:
        # Nothing was measured: an empty directory would only stand in the way of the next try.
        journal.close()
        archive.discard()
        raise
    archive.write_contract(contract)
    return Prepared(
        archive=archive,
        journal=journal,
        site=site,
        contract=contract,
        setup=setup_of(conditions, site, contract),
        corpora=corpora,
    )


def prepare_again(conditions: Conditions, archive: StudyArchive) -> Prepared:
    """Make an interrupted study ready to go on, under the contract that it has; CallerError where that cannot be."""
    contract, journal = archive.contract(), archive.journal()
    site, nonce = surveyed_again(conditions, contract, journal)
    lengths = archive.prompt_lengths()
    corpora: dict[Shape, Corpus] = {}
    for shape in contract.shapes:
        length = lengths.get(str(shape))
        if length is not None and length.words:
            corpora[shape] = Composed(contract.nonce, length, shape.output_tokens)
        else:
            taken = archive.prompts_written()
            corpora[shape] = corpus_of(conditions, site, contract, shape, journal, nonce, taken)
    return Prepared(
        archive=archive,
        journal=journal,
        site=site,
        contract=contract,
        setup=setup_of(conditions, site, contract),
        corpora=corpora,
    )


def conduct(
    prepared: Prepared,
    *,
    expectations: Mapping[Shape, Expectation] | None = None,
    left: Leftover | None = None,
) -> Conducted:
    """Run the study to its end and return what it found; record and plate are on disk before this returns.

    Interruptions and a lost server end the study with a status of its own; they do not raise.
    """
    archive, contract = prepared.archive, prepared.contract
    decisions: list[Decision] = []
    results: list[TrialResult] = []
    told: set[Shape] = set()
    spoiled = left.spoiled if left else frozenset()

    def record(verdicts: tuple[ShapeVerdict, ...], finished: bool) -> StudyRecord:
        written = study_record(
            contract,
            results,
            decisions,
            verdicts,
            expectations=expectations,
            spoiled=spoiled,
            finished=finished,
            command=prepared.setup.command,
            tool_version=__version__,
        )
        archive.write_record(written)
        return written

    def finished_trial(plan: TrialPlan, result: TrialResult, replayed: bool) -> None:
        results.append(result)
        record((), False)
        prepared.setup.watch.finished(plan, result, replayed)

    def execute(plan: TrialPlan) -> TrialResult:
        if plan.role == "confirmation" and plan.shape not in told:
            told.add(plan.shape)
            if (price := forecast(contract, plan, results)) is not None:
                prepared.setup.watch.tell(f"note: {price}")
            if (lasting := confirming(contract, plan)) is not None:
                prepared.setup.watch.tell(lasting)
        corpus = prepared.corpora[plan.shape]
        return run_trial(prepared.setup, plan, corpus, archive.trial(plan.key))

    archive.unseal()
    verdicts = run(
        study(contract, expectations=expectations, decisions=decisions),
        execute,
        sealed=left.sealed if left else None,
        spoiled=spoiled,
        on_trial=finished_trial,
    )
    final = record(verdicts, True)
    prepared.journal.close()
    digest = archive.seal()
    plate = build_plate(
        contract,
        verdicts,
        results,
        _identity(results, prepared.site),
        study_manifest_sha256=digest,
        tool_version=__version__,
    )
    archive.write_plate(plate)
    return Conducted(plate, final, tuple(results))


def _identity(results: list[TrialResult], site: Site) -> Identity:
    return results[-1].identity_before if results else site.report.identity


def surveyed(
    conditions: Conditions, target: Target, contract: Contract, nonce: str, journal: Journal
) -> Site:
    """Detect and probe the server, and refuse what cannot be measured under this contract."""
    clock = conditions.ground.clock

    def note(what: str, **detail: object) -> None:
        journal.note(clock.now_ns(), what, **detail)

    conditions.watch.tell("probing the server")
    site = survey(
        conditions.ground,
        target,
        contract.sampling,
        nonce,
        note,
        log=conditions.log,
        given=conditions.given,
        patience_s=max(TIMEOUT_S, contract.deadlines.first_output_ns / 1e9),
    )
    require_contract_fields(site.report, contract.sampling)
    require_flush(site.report, contract.cache)
    state = site.adapter.state()
    if state.idle is False:
        conditions.watch.tell(
            f"warning: the server has {state.running} running and {state.waiting} waiting requests that are not ours; "
            "trials wait for an idle server, and with other traffic they are invalid"
        )
    for conflict in site.report.conflicts:
        conditions.watch.tell(f"warning: {conflict}")
    return site


def surveyed_again(conditions: Conditions, contract: Contract, journal: Journal) -> tuple[Site, str]:
    """Survey the server of an interrupted study; return it with the nonce of what is asked of it beside trials.

    CallerError where it no longer takes the contract's requests.
    """
    # The probe's prompts are a function of its nonce: a new one keeps them apart from the first probe's.
    nonce = f"{contract.nonce}.again{journal.size()}"
    site = surveyed(conditions, contract.target, contract, nonce, journal)
    if site.target != contract.target:
        raise CallerError(
            "The server no longer takes the requests of this study's contract.",
            why="Trials before and after would not be the same.",
            hint="Begin a new study.",
        )
    return site, nonce


def corpus_of(
    conditions: Conditions,
    site: Site,
    contract: Contract,
    shape: Shape,
    journal: Journal,
    calibration_nonce: str | None = None,
    rows_taken: int = 0,
    shared_tokens: int = 0,
) -> Corpus:
    """Find how prompts of a shape are made; `shared_tokens` of them are a prefix beside the contract's own."""
    clock, cache = conditions.ground.clock, contract.cache
    if shared_tokens:
        cache = structs.replace(cache, shared_prefix_tokens=shared_tokens)
    conditions.watch.tell(f"calibrating prompts of {shape.input_tokens} tokens")
    return build_corpus(
        site,
        shape,
        cache,
        contract.nonce,
        lambda what, **detail: journal.note(clock.now_ns(), what, **detail),
        tokenizer=conditions.tokenizer,
        dataset=conditions.dataset,
        calibration_nonce=calibration_nonce,
        rows_taken=rows_taken,
    )


def setup_of(conditions: Conditions, site: Site, contract: Contract) -> TrialSetup:
    """Put together what all trials of a study have in common."""
    return TrialSetup(
        site=site,
        contract=contract,
        credentials=conditions.credentials,
        keeping=conditions.keeping,
        command=conditions.command,
        client_host=conditions.client_host,
        interruption=conditions.interruption,
        watch=conditions.watch,
        workers=conditions.workers,
        new_connections=conditions.new_connections,
        raise_scheduling=conditions.raise_scheduling,
        watch_gpus=conditions.watch_gpus,
    )


def level_warning(site: Site, concurrency: int) -> str | None:
    """Say that some requests of this level will wait in the server, or None."""
    return limit_warning(site.report.identity, concurrency)
