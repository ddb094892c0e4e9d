"""Conducting a speed study: survey, freeze the matrix, run the cells, and keep the result current after each."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from msgspec import Struct, structs

from nameplate import __version__
from nameplate.contract.contract import Contract
from nameplate.contract.errors import CallerError, NameplateError, ServerError
from nameplate.contract.identity import compare
from nameplate.contract.limits import ServerLimits
from nameplate.contract.matrix import CellPlan, Matrix, planned_cells
from nameplate.contract.plan import TrialPlan
from nameplate.contract.shape import Shape
from nameplate.evidence import layout, manifest
from nameplate.evidence.header import PromptLength
from nameplate.evidence.journal import Journal
from nameplate.hosts.description import HostDescription
from nameplate.measure.result import TrialResult
from nameplate.measure.speed_builder import About, build_speed
from nameplate.measure.speed_result import SpeedResult, decode_speed, encode_speed
from nameplate.studies.archive import TRIALS, StudyArchive
from nameplate.studies.conduct import Conditions, corpus_of, setup_of, surveyed, surveyed_again
from nameplate.studies.resume import Leftover
from nameplate.studies.runner import run
from nameplate.studies.speed import Left, Telling, speed
from nameplate.trial.corpus import Composed, Corpus
from nameplate.trial.life import TrialSetup, run_trial
from nameplate.trial.site import Site
from nameplate.verdict.cell import CellStatus, CellVerdict
from nameplate.verdict.cell_plan import foregone

TOOL = f"nameplate {__version__}"

Choose = Callable[[ServerLimits], Matrix]


class Surroundings(Struct, frozen=True):
    """Hold what a person tells beside the matrix, and the hosts that were described."""

    hosts: tuple[HostDescription, ...] = ()
    launch_command: str | None = None
    note: str | None = None


class PreparedSpeed(Struct, frozen=True, kw_only=True):
    """Hold a speed study that may begin: the server surveyed, its matrix frozen and written."""

    archive: StudyArchive
    journal: Journal
    contract: Contract
    setup: TrialSetup
    about: About
    corpora: Corpora


class Corpora:
    """Supply the prompts of each shape, calibrated when they are first needed: long ones cost a prefill to count."""

    def __init__(
        self,
        conditions: Conditions,
        site: Site,
        contract: Contract,
        journal: Journal,
        known: dict[tuple[int, int], PromptLength] | None = None,
        calibration_nonce: str | None = None,
    ) -> None:
        self._conditions = conditions
        self._site = site
        self._contract = contract
        self._journal = journal
        self._known = {} if known is None else known
        self._nonce = calibration_nonce

    def of(self, shape: Shape, shared_tokens: int = 0) -> Corpus:
        """Return the prompts of a shape; ServerError or CallerError where their length cannot be reached."""
        length = self._known.get((shape.input_tokens, shared_tokens))
        if length is not None and length.words:
            return Composed(self._contract.nonce, length, shape.output_tokens)
        corpus = corpus_of(
            self._conditions,
            self._site,
            self._contract,
            shape,
            self._journal,
            self._nonce,
            shared_tokens=shared_tokens,
        )
        self._known[shape.input_tokens, shared_tokens] = corpus.length
        return corpus


def prepare_speed(
    conditions: Conditions,
    wanted: Contract,
    archive: StudyArchive,
    choose: Choose,
    surroundings: Surroundings,
) -> PreparedSpeed:
    """Survey the server, let `choose` settle the matrix by its limits, and freeze the contract; all before any load."""
    journal = archive.journal()
    try:
        site = surveyed(conditions, wanted.target, wanted, wanted.nonce, journal)
        matrix = choose(ServerLimits.of(site.report.identity))
        contract = structs.replace(wanted, target=site.target, speed=matrix)
        if not planned_cells(matrix):
            raise CallerError("The matrix has no cell.", hint="Give --contexts and --concurrency.")
        corpora = Corpora(conditions, site, contract, journal)
        shortest = _shortest(matrix, ServerLimits.of(site.report.identity))
        if shortest is not None:
            # A prompt that is too short to be unique is the caller's mistake: it is refused before any load. What the
            # server refuses is the business of each cell.
            with suppress(ServerError):
                corpora.of(Shape(shortest, 1))
    except NameplateError:
        journal.close()
        archive.discard()
        raise
    archive.write_contract(contract)
    about = About(
        tool=TOOL,
        identity=site.report.identity,
        hosts=surroundings.hosts,
        launch_command=surroundings.launch_command,
        note=surroundings.note,
    )
    return PreparedSpeed(
        archive=archive,
        journal=journal,
        contract=contract,
        setup=setup_of(conditions, site, contract),
        about=about,
        corpora=corpora,
    )


def _shortest(matrix: Matrix, limits: ServerLimits) -> int | None:
    """Return the length of the shortest prompt that is its own as a whole; None where no cell needs one."""
    lengths = [
        cell.context_tokens
        for cell in planned_cells(matrix)
        if foregone(matrix, cell, limits) is None
        and not (cell.kind in ("decode", "burst") and matrix.shared_tokens(cell.context_tokens))
    ]
    if matrix.mixed is not None:
        lengths.append(matrix.mixed.stream_input_tokens)
    return min(lengths, default=None)


def prepare_speed_again(conditions: Conditions, archive: StudyArchive) -> PreparedSpeed:
    """Make an interrupted speed study ready to go on, under the matrix that it has; CallerError where it cannot."""
    contract, journal = archive.contract(), archive.journal()
    site, nonce = surveyed_again(conditions, contract, journal)
    before = read_result(archive.directory)
    identity = site.report.identity
    if before is not None and any((archive.directory / TRIALS).glob(f"*/{layout.MANIFEST}")):
        identity = before.identity
        changed = [str(c) for c in compare(identity, site.report.identity) if c.kind == "changed"]
        if changed:
            raise CallerError(
                f"The server is not the one that this study began on: {'; '.join(changed)}.",
                why="Cells of different servers are no matrix.",
                hint="Begin a new study.",
            )
    known = {
        (header.plan.shape.input_tokens, header.plan.shared_tokens): header.prompt_length
        for header in archive.headers()
    }
    about = About(
        tool=TOOL,
        identity=identity,
        hosts=before.hosts if before is not None else (),
        launch_command=before.launch_command if before is not None else None,
        note=before.note if before is not None else None,
    )
    return PreparedSpeed(
        archive=archive,
        journal=journal,
        contract=contract,
        setup=setup_of(conditions, site, contract),
        about=about,
        corpora=Corpora(conditions, site, contract, journal, known, nonce),
    )


def finished_result(directory: Path) -> SpeedResult | None:
    """Read the result of a study that came to its end, with no cell left to run; None where it can go on."""
    result = read_result(directory) if StudyArchive(directory).sealed else None
    if result is None or not result.finished:
        return None
    return None if any(row.status is CellStatus.interrupted for row in result.rows) else result


def read_result(directory: Path) -> SpeedResult | None:
    """Read a speed study's result; None where there is none yet."""
    path = directory / layout.RESULT
    return decode_speed(path.read_bytes()) if path.exists() else None


def conduct_speed(prepared: PreparedSpeed, left: Leftover | None = None) -> SpeedResult:
    """Run the study to its end and return its result, which is on disk, and current after every trial.

    Interruptions and a lost server end the study with a status of its own; they do not raise.
    """
    archive, contract, watch = prepared.archive, prepared.contract, prepared.setup.watch
    results: list[TrialResult] = []
    unrun: dict[CellPlan, CellVerdict] = {}
    spoiled = left.spoiled if left else frozenset()

    def record(exit_code: int | None) -> SpeedResult:
        result = build_speed(contract, prepared.about, results, unrun, exit_code=exit_code)
        manifest.write_durably(archive.directory / layout.RESULT, encode_speed(result))
        return result

    def finished_trial(plan: TrialPlan, result: TrialResult, replayed: bool) -> None:
        results.append(result)
        record(None)
        watch.finished(plan, result, replayed)

    def execute(plan: TrialPlan) -> TrialResult:
        corpus = prepared.corpora.of(plan.shape, plan.shared_tokens)
        arrival = plan.hold.arrival if plan.hold is not None else None
        return run_trial(
            prepared.setup,
            plan,
            corpus,
            archive.trial(plan.key),
            prepared.corpora.of(arrival.shape) if arrival is not None else None,
        )

    def say_left(state: Left) -> None:
        note = "at least: what prefill takes is not yet known" if state.at_least else ""
        watch.estimate(state.left_s, state.done, state.of, note)

    archive.unseal()
    record(None)
    outcome = run(
        speed(contract, ServerLimits.of(prepared.about.identity), Telling(watch.tell, say_left), unrun),
        execute,
        sealed=left.sealed if left else None,
        spoiled=spoiled,
        on_trial=finished_trial,
    )
    if outcome.exit_code:
        watch.tell(outcome.reason)
    result = record(outcome.exit_code)
    prepared.journal.close()
    archive.seal()
    return result
