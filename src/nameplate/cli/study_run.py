"""Running a study from its options: the wiring between the command line and the studies."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from msgspec import structs

from nameplate.cli.ending import unless_refused
from nameplate.cli.expect import read_expectations
from nameplate.cli.ground import open_ground, require_descriptors
from nameplate.cli.request import (
    Address,
    Options,
    client_host,
    default_directory,
    proxy_notice,
    read_address,
    read_address_again,
    read_contract,
    read_credentials,
    read_facts,
    read_keeping,
    redacted_command,
)
from nameplate.contract.arrivals import ArrivalPlan
from nameplate.contract.contract import Contract
from nameplate.contract.errors import CallerError, NameplateError
from nameplate.contract.plan import TrialPlan
from nameplate.contract.quantity import parse_duration_ns, parse_ratio
from nameplate.contract.rates import RateRules
from nameplate.contract.rules import Rules
from nameplate.contract.target import Target
from nameplate.measure.result import TrialResult
from nameplate.prompts.dataset import Dataset
from nameplate.report import again
from nameplate.report.live import LiveView, QuietView
from nameplate.report.soak_live import SoakView
from nameplate.studies.archive import StudyArchive
from nameplate.studies.capacity import require_levels
from nameplate.studies.conduct import (
    Conditions,
    Conducted,
    Prepared,
    conduct,
    level_warning,
    prepare,
    prepare_again,
)
from nameplate.studies.outlook import outlook
from nameplate.studies.price import asked, usual_budget
from nameplate.studies.price import expected_trials as shape_trials
from nameplate.studies.replay import Replay, prepare_replay
from nameplate.studies.single import open_plan, single_plan
from nameplate.trial.ground import Ground
from nameplate.trial.interruption import Interruption
from nameplate.trial.life import run_trial


def run_single(
    text: str,
    options: dict[str, Any],
    rules: Rules,
    concurrency: int,
    arguments: tuple[str, ...],
    arrivals: ArrivalPlan | None = None,
) -> tuple[TrialResult, Path]:
    """Run one trial, of an open loop with `arrivals`; return its result and directory."""
    address = read_address(text, options)
    contract = read_contract(address, options, [options["shape"]], options["slos"], rules)
    require_descriptors(concurrency, options["workers"])
    directory = options["out"] or default_directory("trial")
    with conditions_of(address, options, arguments, contract, expected_trials=1) as (conditions, target):
        archive = StudyArchive.create(directory)
        prepared = prepare(conditions, structs.replace(contract, target=target), archive)
        warned = level_warning(prepared.site, concurrency) if arrivals is None else None
        if warned:
            conditions.watch.tell(f"note: {warned}")
        shape = prepared.contract.shapes[0]
        stagger_ns = parse_duration_ns(options["stagger"]) if options["stagger"] else 0
        if arrivals is not None:
            plan = open_plan(prepared.contract, shape, arrivals, options["requests"])
        else:
            plan = single_plan(prepared.contract, shape, concurrency, options["requests"], stagger_ns)
        return _run(prepared, plan, conditions), archive.trial(plan.key)


def run_replay(
    text: str, options: dict[str, Any], rules: Rules, replay: Replay, arguments: tuple[str, ...]
) -> tuple[TrialResult, Path]:
    """Run one trial that repeats a recorded trace; return its result and directory."""
    address = read_address(text, options)
    contract = read_contract(address, options, [], options["slos"], rules)
    require_descriptors(min(replay.outstanding_limit, replay.trace.requests), options["workers"])
    directory = options["out"] or default_directory("trial")
    with conditions_of(address, options, arguments, contract, expected_trials=1) as (conditions, target):
        archive = StudyArchive.create(directory)
        prepared, plan = prepare_replay(conditions, structs.replace(contract, target=target), archive, replay)
        return _run(prepared, plan, conditions), archive.trial(plan.key)


def _run(prepared: Prepared, plan: TrialPlan, conditions: Conditions) -> TrialResult:
    """Run the one trial of a prepared study, and close that."""
    try:
        result = run_trial(
            prepared.setup, plan, prepared.corpora[plan.shape], prepared.archive.trial(plan.key)
        )
    except NameplateError:
        # The fault that ended the trial is what a person must hear of, not a disk that is too full to seal.
        with suppress(NameplateError):
            _close(prepared)
        raise
    _close(prepared)
    conditions.watch.finished(plan, result)
    return result


def _close(prepared: Prepared) -> None:
    prepared.journal.close()
    prepared.archive.seal()


def run_boundary(
    text: str | None, options: dict[str, Any], arguments: tuple[str, ...], rates: RateRules | None = None
) -> tuple[Conducted, Path]:
    """Run a capacity study, or with `rates` a rate study, or go on with one; return what it found and its directory."""
    if options["resume"] is not None:
        return _resume(text, options, arguments, "capacity" if rates is None else "rate")
    if text is None:
        raise CallerError("TARGET is missing.", hint="Give the server's URL, or sim:demo.")
    if not options["shapes"] or not options["slos"]:
        missing = "--shape" if not options["shapes"] else "--slo"
        raise CallerError(
            f"{missing} is missing.",
            why="A rated number belongs to one request shape under one promise.",
            hint='For example --shape 8k/1k --slo "ttft p95 < 10s".',
        )
    address = read_address(text, options)
    rules = _rules(options, virtual=address.virtual)
    contract = read_contract(address, options, options["shapes"], options["slos"], rules, rates)
    require_levels(contract)
    if options["max_trials"] is None:
        contract = structs.replace(contract, rules=structs.replace(rules, max_trials=usual_budget(contract)))
    if contract.dataset is not None and len(contract.shapes) > 1:
        raise CallerError(
            "A data set has lengths of its own, and several shapes are given.",
            why="Each shape would be sent the same prompts.",
            hint="Give one --shape, whose output length stands for rows without one.",
        )
    expectations = read_expectations(options["expect"], contract.shapes)
    most = rules.min_concurrency if rates is None else rates.outstanding_limit
    require_descriptors(most, options["workers"])
    directory = options["out"] or default_directory("capacity" if rates is None else "rate")
    with conditions_of(address, options, arguments, contract) as (conditions, target):
        if (price := asked(contract)) is not None:
            conditions.watch.tell(f"note: {price}")
        for line in outlook(contract):
            conditions.watch.tell(line)
        archive = StudyArchive.create(directory)
        prepared = prepare(conditions, structs.replace(contract, target=target), archive)
        return conduct(prepared, expectations=expectations), directory


def repeating(arguments: tuple[str, ...]) -> str:
    """Return the command that repeats a study begun with these arguments."""
    return again.repeating(redacted_command(arguments))


def _resume(
    text: str | None, options: dict[str, Any], arguments: tuple[str, ...], wanted: str
) -> tuple[Conducted, Path]:
    archive = StudyArchive.open(options["resume"])
    contract = archive.contract()
    kind = "capacity" if contract.rate is None else "rate"
    if kind != wanted:
        raise CallerError(
            f"{options['resume']} is a {kind} study.", hint=f"Go on with it by nameplate {kind} --resume."
        )
    address = read_address_again(text, options, contract.target)
    left = archive.reopen()
    expectations = read_expectations(options["expect"], contract.shapes)
    with conditions_of(address, options, arguments, contract) as (conditions, _target):
        with unless_refused(archive):
            prepared = prepare_again(conditions, archive)
        return conduct(prepared, expectations=expectations, left=left), archive.directory


def silent(options: Options) -> bool:
    """Tell whether nobody is to see progress."""
    return bool(options["quiet_terminal"] or (options["as_json"] and not sys.stderr.isatty()))


@contextmanager
def conditions_of(
    address: Address,
    options: Options,
    arguments: tuple[str, ...],
    contract: Contract,
    expected_trials: int | None = None,
    view: QuietView | LiveView | SoakView | None = None,
) -> Iterator[tuple[Conditions, Target]]:
    if address.virtual and options["workers"] > 1:
        raise CallerError(
            "Simulated time has one load process.",
            hint="Leave --workers out, or add --live.",
        )
    credentials = read_credentials(options)
    log, given = read_facts(options)
    dataset = (
        Dataset.open(options["dataset"], repeat=options["repeat_dataset"])
        if options["dataset"] is not None
        else None
    )
    interruption = Interruption()
    if view is None:
        expected = expected_trials or shape_trials(contract) * len(contract.shapes)
        view = QuietView() if silent(options) else LiveView(contract=contract, expected_trials=expected)
    ground: Ground
    with view, interruption.handling(), open_ground(address, credentials) as (ground, target):
        notice = proxy_notice()
        if notice and ground.kind == "live":
            view.tell(f"note: {notice}")
        yield (
            Conditions(
                ground=ground,
                credentials=credentials,
                keeping=read_keeping(options),
                command=redacted_command(arguments),
                client_host=client_host(),
                interruption=interruption,
                watch=view,
                log=log,
                given=given,
                tokenizer=options["tokenizer"],
                dataset=dataset,
                workers=options["workers"],
                new_connections=options["connections"] == "new",
                raise_scheduling=not options["ordinary_scheduling"],
            ),
            target,
        )


def _rules(options: Options, virtual: bool) -> Rules:
    given = options["quiet_s"]
    # Simulated servers have nothing to settle; a real one gets the protocol's quiet interval.
    quiet_s = 0.0 if virtual and given == "15s" else parse_duration_ns(given if given != "0" else "0s") / 1e9
    levels = (
        {
            "min_concurrency": options["min_concurrency"],
            "max_concurrency": options["max_concurrency"],
            "first_guess": options["guess"],
        }
        if "min_concurrency" in options
        else {}
    )
    return Rules(
        **levels,
        confirmations=options["confirmations"],
        extra_confirmations=options["extra_confirmations"],
        tolerance=options["tolerance"],
        requests=options["requests"],
        warmup=options["warmup"],
        quiet_s=quiet_s,
        max_trials=options["max_trials"] or Rules().max_trials,
        max_s=parse_duration_ns(options["max_time"]) / 1e9 if options["max_time"] else None,
        start=options["start"],
        operate_below=options["operate_below"],
        loop_limit=parse_ratio(options["loop_limit"]),
        confidence=parse_ratio(options["confidence"]) if options["confidence"] is not None else None,
    )
