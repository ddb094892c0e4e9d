"""Running a curve study from its options."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from msgspec import structs

from nameplate.cli.ending import unless_refused
from nameplate.cli.ground import require_descriptors
from nameplate.cli.request import (
    Options,
    default_directory,
    read_address,
    read_address_again,
    read_contract,
)
from nameplate.cli.speed_run import TOLD_ANEW, tell_unused
from nameplate.cli.study_run import conditions_of
from nameplate.contract.arrivals import ArrivalPlan
from nameplate.contract.contract import Contract
from nameplate.contract.curve import CurvePlan
from nameplate.contract.errors import CallerError
from nameplate.contract.quantity import parse_duration_ns, parse_ratio, parse_tokens
from nameplate.contract.rules import Rules
from nameplate.measure.curve_result import CurveResult
from nameplate.schedule.stage import process_of
from nameplate.studies.archive import StudyArchive
from nameplate.studies.curve_conduct import (
    conduct_curve,
    prepare_curve,
    prepare_curve_again,
    read_curve,
    without_restarts,
)
from nameplate.verdict.curve_level import LevelStatus

LIMIT, DEFAULT_OUTPUT = "limit", "256"
# A level's status that a study which goes on can still change.
_OPEN = (LevelStatus.interrupted, LevelStatus.lost, LevelStatus.skipped)


def run_curve(
    text: str | None, options: dict[str, Any], arguments: tuple[str, ...]
) -> tuple[CurveResult, Path]:
    """Run a curve study, or go on with one; return its result and directory."""
    if options["resume"] is not None:
        return _resume(text, options, arguments)
    if text is None:
        raise CallerError("TARGET is missing.", hint="Give the server's URL, or sim:demo.")
    plan = read_curve_plan(options)
    address = read_address(text, options)
    shapes = [] if plan.kind == "input" else [options["shape"]]
    rules = _rules(options, virtual=address.virtual)
    contract = structs.replace(read_contract(address, options, shapes, [], rules), curve=plan)
    _require_sound(options, contract, plan)
    directory = options["out"] or default_directory("curve")
    with conditions_of(address, options, arguments, contract, _expected(plan)) as (conditions, target):
        archive = StudyArchive.create(directory)
        prepared = prepare_curve(conditions, structs.replace(contract, target=target), archive)
        return conduct_curve(prepared, max_s=rules.max_s), directory


def _resume(
    text: str | None, options: dict[str, Any], arguments: tuple[str, ...]
) -> tuple[CurveResult, Path]:
    archive = StudyArchive.open(options["resume"])
    contract = archive.contract()
    if contract.curve is None:
        raise CallerError(
            f"{archive.directory} is no curve study.", hint="Go on with it by the command that began it."
        )
    tell_unused(TOLD_ANEW | {"max_time", "out"})
    before = read_curve(archive.directory) if archive.sealed else None
    if before is not None and before.finished and not any(row.status in _OPEN for row in before.rows):
        return before, archive.directory
    address = read_address_again(text, options, contract.target)
    left = without_restarts(archive.reopen())
    with conditions_of(address, options, arguments, contract, _expected(contract.curve)) as (conditions, _):
        with unless_refused(archive):
            prepared = prepare_curve_again(conditions, archive)
        # Who goes on may allow more time, or as much as it takes.
        return conduct_curve(prepared, left, max_s=_max_s(options)), archive.directory


def read_curve_plan(options: Options) -> CurvePlan:
    """Read the levels that the options ask for; CallerError where they contradict each other."""
    given = [name for name in ("concurrency", "rate", "inputs") if options[name]]
    if len(given) != 1:
        raise CallerError(
            "One list of levels is wanted: --concurrency, --rate or --input.",
            why="A curve has one axis: clients, requests a second, or prompt tokens.",
            hint="For example --shape 2k/256 --concurrency 1,2,4,8, or --input 8k,32k,limit.",
        )
    climb = given == ["inputs"]
    if climb == bool(options["shape"]):
        raise CallerError(
            "--input has its own lengths, so it takes no --shape." if climb else "--shape is missing.",
            hint="Give --output beside --input." if climb else "For example --shape 2k/256.",
        )
    if not climb and options["output"] is not None:
        raise CallerError("--output belongs to --input.", hint="The output of --shape is after its slash.")
    repeat, hardly = options["repeat"], _hardly(options["hardly"])
    if climb:
        words = _words(options["inputs"], "--input", "8k,32k,limit")
        output = parse_tokens(options["output"] or DEFAULT_OUTPUT)
        if output < 1:
            raise CallerError("--output 0 leaves nothing to time.", hint="Give at least 1.")
        return CurvePlan(
            inputs=tuple(sorted({_tokens(word) for word in words if word != LIMIT})),
            to_limit=LIMIT in words,
            output_tokens=output,
            repeat=repeat,
            hardly=hardly,
        )
    if given == ["concurrency"]:
        levels = _numbers(options["concurrency"], "--concurrency", "1,2,4,8")
        if any(not level.is_integer() or level < 1 for level in levels):
            raise CallerError(
                f"--concurrency {options['concurrency']!r} is not a list of whole numbers above 0.",
                hint="For example --concurrency 1,2,4,8.",
            )
        return CurvePlan(concurrencies=tuple(map(int, levels)), repeat=repeat, hardly=hardly)
    rates = _numbers(options["rate"], "--rate", "0.5,1,2")
    limit = options["outstanding_limit"]
    plans = [ArrivalPlan.parse(rate, options["arrivals"], options["seed"], limit) for rate in rates]
    for plan in plans:
        process_of(plan)  # Refuses a rate that cannot be offered, before the server is asked anything.
    return CurvePlan(rates=rates, arrivals=plans[0], repeat=repeat, hardly=hardly)


def _require_sound(options: Options, contract: Contract, plan: CurvePlan) -> None:
    """Refuse what a curve cannot be measured with."""
    if contract.rules.start != "burst":
        raise CallerError(
            "A curve's loads begin as a burst.",
            why="Its numbers are those of the requests after the opening wave, wherever there are any.",
            hint="Leave --start out.",
        )
    if plan.kind == "input" and (contract.dataset is not None or not contract.cache.cold):
        raise CallerError(
            "A climb composes its own cold prompts.", hint="Leave out --dataset and --cache with --input."
        )
    limit = plan.arrivals.outstanding_limit if plan.arrivals is not None else 1
    if plan.arrivals is not None and limit < options["workers"]:
        raise CallerError(
            f"{options['workers']} workers cannot share {limit} outstanding requests.",
            hint="Raise --outstanding-limit, or ask for fewer --workers.",
        )
    require_descriptors(max((limit, *plan.concurrencies)), options["workers"])


def _rules(options: Options, virtual: bool) -> Rules:
    # Simulated servers have nothing to settle.
    given = (
        "0s" if options["quiet_s"] == "0" or (virtual and options["quiet_s"] == "5s") else options["quiet_s"]
    )
    return Rules(
        requests=options["requests"],
        warmup=options["warmup"],
        quiet_s=parse_duration_ns(given) / 1e9,
        start=options["start"],
        max_s=_max_s(options),
    )


def _max_s(options: Options) -> float | None:
    return parse_duration_ns(options["max_time"]) / 1e9 if options["max_time"] else None


def _expected(plan: CurvePlan) -> int:
    return max(1, len(plan.loads())) * plan.repeat


def _hardly(text: str) -> float:
    share = parse_ratio(text)
    if not share > 0:
        raise CallerError(
            f"--hardly {text} would call any output much.", hint="Give a share above 0, such as 5%."
        )
    return share


def _words(text: str, option: str, example: str) -> tuple[str, ...]:
    words = tuple(word.strip().lower() for word in text.split(",") if word.strip())
    if not words:
        raise CallerError(f"{option} has no level.", hint=f"For example {option} {example}.")
    return words


def _numbers(text: str, option: str, example: str) -> tuple[float, ...]:
    try:
        values = tuple(sorted({float(word) for word in _words(text, option, example)}))
    except ValueError:
        values = ()
    if not values or not all(math.isfinite(value) and value > 0 for value in values):
        raise CallerError(
            f"{option} {text!r} is not a list of numbers above 0.", hint=f"For example {option} {example}."
        )
    return values


def _tokens(word: str) -> int:
    tokens = parse_tokens(word)
    if tokens < 1:
        raise CallerError("An input of no tokens was given.", hint="For example --input 8k,32k,limit.")
    return tokens
