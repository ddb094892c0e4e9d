"""Running a soak from its options, or going on with one."""

from __future__ import annotations

import shutil
from typing import Any

import click
from click.core import ParameterSource
from msgspec import structs

from nameplate.cli.ground import require_descriptors
from nameplate.cli.request import Address, default_directory, read_address, read_contract
from nameplate.cli.study_run import conditions_of, silent
from nameplate.contract.arrivals import ArrivalPlan
from nameplate.contract.contract import Contract
from nameplate.contract.deadlines import Deadlines
from nameplate.contract.errors import CallerError
from nameplate.contract.quantity import parse_bytes, parse_duration_ns, parse_ratio
from nameplate.contract.rules import Rules
from nameplate.contract.soak import SECOND_NS, Soak
from nameplate.contract.soak_terms import SoakTerms
from nameplate.report.soak_live import QuietSoak, SoakView
from nameplate.report.soak_words import foretold
from nameplate.schedule.stage import process_of
from nameplate.studies.conduct import Prepared, prepare, prepare_again
from nameplate.studies.soak_archive import Before, SoakArchive
from nameplate.studies.soak_conduct import Soaked, conduct_soak, finished_soak

# Eight hours of 62 streams, 1,268 output tokens a second, are some 37 million events of about 30 bytes compressed.
RAW_BUDGET_BYTES = 8 << 30
WINDOW_NS = 300 * SECOND_NS
# A trend needs points, and twelve windows hardly ever decide one: a soak below four hours has at least so many windows,
# of the longest of these lengths, in seconds, that people count in.
LEAST_WINDOWS = 48
WINDOWS_S = (1, 2, 5, 10, 15, 20, 30, 45, 60, 75, 90, 120, 150, 180, 240)
# A server may be slow for hours and still answer: a soak of long prompts had its first outputs after 568 s (p95), and a
# preempted request falls silent until there is room for it again.
DEADLINES = Deadlines(first_output_ns=3600 * SECOND_NS, silence_ns=600 * SECOND_NS)


def run_soak(text: str | None, options: dict[str, Any], arguments: tuple[str, ...]) -> Soaked:
    """Run a soak, or go on with one; return what it found."""
    if options["resume"] is not None:
        return _resume(text, options, arguments)
    if text is None:
        raise CallerError("TARGET is missing.", hint="Give the server's URL, or sim:demo.")
    for name in ("shape", "duration"):
        if options[name] is None:
            raise CallerError(
                f"--{name} is missing.",
                why="A soak is one request shape, for a stated time.",
                hint="For example --shape 8k/1k -c 16 --duration 8h.",
            )
    address = read_address(text, options)
    terms = read_terms(options)
    rules = Rules(warmup=0, start="burst")
    contract = read_contract(
        address, options, [options["shape"]], options["slos"], rules, deadlines=DEADLINES
    )
    contract = structs.replace(contract, soak=terms)
    require_descriptors(terms.concurrency, options["workers"])
    directory = options["out"] or default_directory("soak")
    view = QuietSoak() if silent(options) else SoakView(contract)
    with conditions_of(address, options, arguments, contract, view=view) as (conditions, target):
        archive = SoakArchive.create(directory)
        prepared = prepare(conditions, structs.replace(contract, target=target), archive)
        with archive.held():
            _tell(prepared, view)
            return conduct_soak(prepared, archive, view.window)


def _tell(prepared: Prepared, view: QuietSoak | SoakView, before: Before | None = None) -> None:
    free = shutil.disk_usage(prepared.archive.directory).free
    left_ns, spent = (None, 0) if before is None else (before.left_ns, sum(before.reads_bytes))
    for line in foretold(prepared.contract, prepared.site.report.identity, free, left_ns, spent):
        view.tell(line)


def read_terms(options: dict[str, Any]) -> SoakTerms:
    """Read a soak's load, times and limits; CallerError for what makes no sense together."""
    _refuse(options)
    concurrency, arrivals = read_load(options)
    duration_ns = parse_duration_ns(options["duration"])
    if duration_ns < SECOND_NS:
        raise CallerError(
            f"--duration {options['duration']} is no soak.", hint="Give minutes or hours, e.g. 30m."
        )
    return SoakTerms(
        soak=Soak(
            duration_ns=duration_ns,
            window_ns=window_ns_of(options),
            drain_ns=parse_duration_ns(options["drain"]),
            raw_budget_bytes=parse_bytes(options["raw_budget"])
            if options["raw_budget"]
            else RAW_BUDGET_BYTES,
        ),
        concurrency=concurrency,
        arrivals=arrivals,
        max_error_rate=parse_ratio(options["max_error_rate"]) if options["max_error_rate"] else None,
        max_drift=parse_ratio(options["max_drift"]) if options["max_drift"] else None,
    )


def window_ns_of(options: dict[str, Any]) -> int:
    """Return how long a window is: as it was asked for, or as fits the duration; CallerError if it fits none."""
    duration_ns = parse_duration_ns(options["duration"])
    if options["window"] is not None:
        window_ns = parse_duration_ns(options["window"])
        if not SECOND_NS <= window_ns <= duration_ns:
            raise CallerError(
                f"--window {options['window']} does not fit a soak of {options['duration']}.",
                hint="A window is at least a second and at most the whole duration.",
            )
        return window_ns
    most_ns = duration_ns // LEAST_WINDOWS
    if most_ns >= WINDOW_NS:
        return WINDOW_NS
    return max((s for s in WINDOWS_S if s * SECOND_NS <= most_ns), default=WINDOWS_S[0]) * SECOND_NS


def _refuse(options: dict[str, Any]) -> None:
    if options["start"] != "burst":
        raise CallerError(
            "--start belongs to trials of counted requests.",
            why="Hours later nothing is left of how a soak began.",
            hint="Leave it out.",
        )
    if options["dataset"] is not None and not options["repeat_dataset"]:
        raise CallerError(
            "A data set ends, and time ends a soak.",
            why="Where its rows ran out before the time, the load would stop.",
            hint="Add --repeat-dataset, whose prompts are then no longer cold, or leave --dataset out.",
        )
    if options["raw_budget"] is not None and (options["no_raw"] or options["raw"] == "none"):
        raise CallerError("--raw-budget and --raw none contradict each other.", hint="Leave one of them out.")


def read_load(options: dict[str, Any]) -> tuple[int, ArrivalPlan | None]:
    """Read which loop is asked for: its concurrency, and the arrivals of an open one."""
    concurrency, rate = options["concurrency"], options["rate"]
    if (concurrency is None) == (rate is None):
        raise CallerError(
            "Either --concurrency or --rate is wanted.",
            why="A closed loop keeps so many requests in flight; an open one sends so many a second, whatever happens.",
            hint="For example -c 62, or --rate 0.08.",
        )
    if rate is None:
        for name in ("arrivals", "outstanding_limit"):
            if _given(name):
                raise CallerError(
                    f"--{name.replace('_', '-')} belongs to an open loop.", hint="Give --rate in place of -c."
                )
        return concurrency, None
    limit = options["outstanding_limit"]
    arrivals = ArrivalPlan.parse(rate, options["arrivals"], options["seed"], limit)
    process_of(arrivals)  # Refuses a rate or a shape that cannot be offered.
    return limit, arrivals


def _given(name: str) -> bool:
    return click.get_current_context().get_parameter_source(name) is ParameterSource.COMMANDLINE


def _resume(text: str | None, options: dict[str, Any], arguments: tuple[str, ...]) -> Soaked:
    archive = SoakArchive.open(options["resume"])
    contract = archive.contract()
    if contract.soak is None:
        raise CallerError(
            f"{archive.directory} is no soak.", hint="Go on with it by the command that began it."
        )
    _refuse_other_terms()
    with archive.held():
        archive.wait_until_still()
        before = archive.reopen_soak()
        if not before.left_ns:
            return finished_soak(archive, before)
        address = _address_again(text, contract, options)
        view = QuietSoak() if silent(options) else SoakView(contract)
        with conditions_of(address, options, arguments, contract, view=view) as (conditions, _target):
            for key in sorted(before.killed):
                view.tell(f"{key} was cut short by a kill: it was sealed as it was found")
            prepared = prepare_again(conditions, archive)
            _tell(prepared, view, before)
            return conduct_soak(prepared, archive, view.window, before)


def _address_again(text: str | None, contract: Contract, options: dict[str, Any]) -> Address:
    stored = contract.target
    if text is None:
        if stored.host == "sim":
            raise CallerError("The soak ran on the built-in engine.", hint="Name it again: sim:PRESET.")
        return Address(stored)
    address = read_address(text, options)
    if address.live or (address.preset is not None) != (stored.host == "sim"):
        raise CallerError(
            f"The soak belongs to {'the built-in engine in simulated time' if stored.host == 'sim' else stored.url}.",
            why="A server that its own process had started ended with it.",
            hint="For a live soak that can go on, serve the engine with nameplate sim and give its URL.",
        )
    if address.preset is None and address.target.url != stored.url:
        raise CallerError(
            f"The soak belongs to {stored.url}, not to {address.target.url}.", hint="Begin a new one."
        )
    return address


# What a soak that goes on may not be told anew.
_TERMS = (
    "shape", "concurrency", "rate", "arrivals", "outstanding_limit", "duration", "window", "drain", "raw_budget",
    "slos", "max_error_rate", "max_drift", "cache", "start", "seed", "dataset", "repeat_dataset", "out",
)  # fmt: skip


def _refuse_other_terms() -> None:
    given = [f"--{name.replace('_', '-').removesuffix('s')}" for name in _TERMS if _given(name)]
    if given:
        raise CallerError(
            f"A soak goes on under the terms that it began with: {', '.join(given)} cannot be changed.",
            why="Its segments would not be the same load.",
            hint="Leave them out, or begin a new soak.",
        )
