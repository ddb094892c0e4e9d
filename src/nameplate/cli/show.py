"""`nameplate show`: one request of a trial, event by event; or the result of a speed or curve study."""

from __future__ import annotations

from pathlib import Path

import click

from nameplate.contract.errors import CallerError
from nameplate.evidence import layout


@click.command("show")
@click.argument("directory", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.argument("index", type=click.IntRange(min=0), required=False)
@click.option(
    "--all",
    "everything",
    is_flag=True,
    help="Print every event, every measurement of a matrix, or every window of a soak.",
)
@click.option(
    "--show-discarded", is_flag=True, help="Of a matrix: what was measured in cells that are not valid."
)
@click.option("--json", "as_json", is_flag=True, help="Print exactly one JSON document to standard output.")
def command(directory: Path, index: int | None, everything: bool, show_discarded: bool, as_json: bool) -> int:
    """Print request INDEX of the trial in DIRECTORY, or what the speed, curve or soak study there came to."""
    if index is None:
        return _whole(directory, everything, show_discarded, as_json)
    from nameplate.cli.output import print_json
    from nameplate.measure.replay import replay_request
    from nameplate.report.console import answers
    from nameplate.report.request import request_view

    replayed = replay_request(directory, index)
    if as_json:
        print_json(replayed)
    else:
        answers().print(request_view(replayed, everything))
    return 0


def _whole(directory: Path, everything: bool, show_discarded: bool, as_json: bool) -> int:
    from nameplate.exchange.kind import required_kind

    match required_kind(directory):
        case "soak":
            return _soak(directory, everything, as_json)
        case "curve":
            return _curve(directory, as_json)
        case "speed":
            return _matrix(directory, everything, show_discarded, as_json)
        case "import":
            return _imported(directory, everything, as_json)
        case "trial" | "trials" | "rated":
            raise CallerError(
                f"{directory} is no speed or curve study, and no request of a trial was named.",
                hint="Name one: nameplate show RUN/trials/TRIAL 0.",
            )


def _curve(directory: Path, as_json: bool) -> int:
    from nameplate.cli.output import print_json
    from nameplate.measure.curve_result import decode_curve
    from nameplate.report.console import answers
    from nameplate.report.curve import curve_summary

    result = decode_curve((directory / layout.RESULT).read_bytes())
    if as_json:
        print_json(result)
    else:
        answers().print(curve_summary(result, directory))
    return 0


def _soak(directory: Path, everything: bool, as_json: bool) -> int:
    from nameplate.cli.output import print_json
    from nameplate.measure.soak_record import decode_soak_record
    from nameplate.report.console import answers
    from nameplate.report.soak import soak_summary

    record = decode_soak_record((directory / layout.SOAK).read_bytes())
    if as_json:
        print_json(record.result)
    else:
        answers().print(soak_summary(record, directory, all_windows=everything))
    return 0


def _matrix(directory: Path, everything: bool, show_discarded: bool, as_json: bool) -> int:
    from nameplate.cli.output import print_json
    from nameplate.measure.speed_result import decode_speed
    from nameplate.report.console import answers
    from nameplate.report.measurements import all_measurements
    from nameplate.report.speed import speed_summary

    result = decode_speed((directory / layout.RESULT).read_bytes())
    if as_json:
        print_json(result)
        return 0
    answers().print(speed_summary(result, directory, discarded=show_discarded))
    if everything:
        answers().print()
        answers().print(all_measurements(result, discarded=show_discarded))
    return 0


def _imported(directory: Path, everything: bool, as_json: bool) -> int:
    from nameplate.cli.output import print_json
    from nameplate.exchange.peers.run import decode
    from nameplate.report.console import answers
    from nameplate.report.imported_run import imported_summary

    document = decode((directory / layout.RESULT).read_bytes())
    if as_json:
        print_json(document)
    else:
        answers().print(imported_summary(document, str(directory), everything=everything))
    return 0
