"""Running a speed study from its options."""

from __future__ import annotations

import secrets
from collections.abc import Collection
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource
from msgspec import structs

from nameplate.cli.ending import unless_refused
from nameplate.cli.ground import require_descriptors
from nameplate.cli.matrix import read_wish
from nameplate.cli.redaction import redacted, redacted_words
from nameplate.cli.request import (
    Address,
    default_directory,
    read_address,
    read_credentials,
    read_deadlines,
    read_sampling,
)
from nameplate.cli.study_run import conditions_of
from nameplate.contract.cache import CachePolicy
from nameplate.contract.contract import Contract
from nameplate.contract.errors import CallerError
from nameplate.measure.speed_result import SpeedResult
from nameplate.studies.archive import StudyArchive
from nameplate.studies.conduct import Conditions
from nameplate.studies.speed_conduct import (
    Surroundings,
    conduct_speed,
    finished_result,
    prepare_speed,
    prepare_speed_again,
)

# What a study that goes on may be told anew: how to reach its server, how to run its load, what to print.
TOLD_ANEW = frozenset(
    [
        "target",
        "model",
        "api",
        "resume",
        "all_measurements",
        "show_discarded",
        "as_json",
        "quiet_terminal",
        "server_host",
        "live",
        "faults",
        "api_key_env",
        "api_key_file",
        "headers",
        "ca_file",
        "insecure",
        "server_log",
        "facts",
        "kv_tokens",
        "tokenizer",
        "raw",
        "no_raw",
        "no_prompts",
        "workers",
        "connections",
        "ordinary_scheduling",
    ]
)


def run_speed(
    text: str | None, options: dict[str, Any], arguments: tuple[str, ...]
) -> tuple[SpeedResult, Path]:
    """Run a speed study, or go on with one; return its result and directory."""
    # Options of other studies that the shared wiring reads.
    options = {**options, "dataset": None, "repeat_dataset": False}
    if options["resume"] is not None:
        return _resume(text, options, arguments)
    if text is None:
        raise CallerError("TARGET is missing.", hint="Give the server's URL, or sim:PRESET.")
    address = read_address(text, options)
    wish = read_wish(options)
    contract = Contract(
        target=address.target,
        shapes=(),
        slos=(),
        nonce=secrets.token_hex(8),
        sampling=read_sampling(options),
        cache=CachePolicy(flush=options["flush"]),
        deadlines=read_deadlines(options, ()),
        seed=options["seed"],
        header_names=tuple(name for name, _ in read_credentials(options).headers),
    )
    require_descriptors(max(wish.matrix.concurrencies), options["workers"])
    directory = options["out"] or default_directory("speed")
    surroundings = _surroundings(address, options)
    with conditions_of(address, options, arguments, contract) as (conditions, target):
        conditions = _with_hosts(conditions, surroundings)
        archive = StudyArchive.create(directory)
        wanted = structs.replace(contract, target=target)
        prepared = prepare_speed(conditions, wanted, archive, wish.settle, surroundings)
        return conduct_speed(prepared), directory


def _resume(
    text: str | None, options: dict[str, Any], arguments: tuple[str, ...]
) -> tuple[SpeedResult, Path]:
    archive = StudyArchive.open(options["resume"])
    contract = archive.contract()
    tell_unused(TOLD_ANEW)
    if contract.speed is None:
        raise CallerError(
            f"{archive.directory} is no speed study.", hint="Go on with it by the command that began it."
        )
    stored = contract.target
    address = None
    if text is not None:
        address = read_address(text, options)
    elif stored.host != "sim":
        address = Address(stored)
    if address is not None and address.preset is None and address.target.url != stored.url:
        raise CallerError(
            f"The study belongs to {stored.url}, not to {address.target.url}.", hint="Begin a new study."
        )
    before = finished_result(archive.directory)
    if before is not None:
        return before, archive.directory
    if address is None:
        raise CallerError("The study ran on the built-in engine.", hint="Name it again: sim:PRESET.")
    left = archive.reopen()
    with conditions_of(address, options, arguments, contract) as (conditions, _target):
        conditions = _with_hosts(conditions, _surroundings(address, options))
        with unless_refused(archive):
            prepared = prepare_speed_again(conditions, archive)
        return conduct_speed(prepared, left), archive.directory


def tell_unused(told_anew: Collection[str]) -> None:
    """Say which options have no effect: a study goes on by what it began with, but for those that are `told_anew`."""
    context = click.get_current_context()
    given = [
        parameter.opts[0]
        for parameter in context.command.params
        if parameter.name is not None
        and parameter.name not in told_anew
        and context.get_parameter_source(parameter.name) is ParameterSource.COMMANDLINE
    ]
    if given:
        from nameplate.report.console import people

        words = f"note: a study goes on by what it began with, so these are not used: {', '.join(given)}"
        people().print(words, markup=False, highlight=False)


def _surroundings(address: Address, options: dict[str, Any]) -> Surroundings:
    """Describe this machine, as the server's host or as the client's; simulated time has neither."""
    launch, note = options["launch_command"], options["note"]
    told = (redacted(launch) if launch else None, redacted(note) if note else None)
    if address.virtual:
        return Surroundings((), *told)
    from nameplate.hosts.describe import describe, place_of

    host = "127.0.0.1" if address.preset is not None else address.target.host
    place = place_of(host, options["server_host"])
    return Surroundings((describe(place.which, place.how),), *told)


def _with_hosts(conditions: Conditions, surroundings: Surroundings) -> Conditions:
    """Add what the server's own host tells: hardware and driver to its identity, and its GPUs to what is watched.

    The command line is stored, and its --launch-command and --note hold what people paste.
    """
    from nameplate.hosts.facts import facts

    server = [host for host in surroundings.hosts if host.which == "server"]
    found = {name: fact for host in server for name, fact in facts(host).items()}
    return structs.replace(
        conditions,
        given={**found, **conditions.given},
        watch_gpus=any(host.gpus for host in server),
        command=redacted_words(conditions.command),
    )
