"""`nameplate curve`: throughput and latency together, level by level, and where more load only adds waiting."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from nameplate.cli.options import (
    arrival_options,
    contract_options,
    evidence_options,
    sampling_options,
    server_options,
)


@click.command("curve")
@click.argument("target", required=False)
@click.option("--shape", metavar="IN/OUT", help="Tokens in and out of every request: 8k/1k.")
@click.option("--concurrency", "-c", metavar="LIST", help="Levels of a closed loop: 1,2,4,8.")
@click.option("--rate", metavar="LIST", help="Levels of an open loop, in requests a second: 0.5,1,2.")
@click.option(
    "--input",
    "inputs",
    metavar="LIST",
    help="In place of --shape, one request at a time: 8k,32k,limit. `limit` is what the context leaves.",
)
@click.option("--output", metavar="TOKENS", help="With --input: output tokens of a request.  [default: 256]")
@click.option(
    "--requests",
    type=click.IntRange(min=1),
    help="Measured requests a trial.  [default: max(64, 8C); a minute of a rate; 3 with --input]",
)
@click.option(
    "--warmup",
    type=click.IntRange(min=0),
    default=2,
    show_default=True,
    help="Serial requests before each trial; with --input before the first.",
)
@click.option(
    "--repeat", type=click.IntRange(1, 100), default=1, show_default=True, help="Trials of each level."
)
@click.option(
    "--hardly",
    default="10%",
    show_default=True,
    metavar="SHARE",
    help="A doubling of the load that adds less output adds hardly any.",
)
@click.option(
    "--quiet",
    "quiet_s",
    default="5s",
    show_default=True,
    metavar="DURATION",
    help="Quiet interval between trials; none in virtual time.",
)
@click.option("--max-time", metavar="DURATION", help="Skip the levels that it leaves no room for.")
@arrival_options("end a level, as failed")
@click.option(
    "--resume",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Go on with an interrupted study.",
)
@server_options
@sampling_options()
@contract_options
@evidence_options
def command(target: str | None, **options: Any) -> int:
    """Measure TARGET (a URL, or sim:PRESET) level by level: what more load adds, output or waiting."""
    from nameplate.cli import curve_run
    from nameplate.cli.ending import write_report
    from nameplate.cli.output import print_json
    from nameplate.cli.study_run import repeating
    from nameplate.report.console import answers
    from nameplate.report.curve import curve_summary

    result, directory = curve_run.run_curve(target, options, tuple(sys.argv[1:]))
    if options["as_json"]:
        print_json(result)
    else:
        answers().print(curve_summary(result, directory, repeating(tuple(sys.argv[1:]))))
    if not options["no_report"]:
        write_report(directory)
    return result.exit_code if result.exit_code is not None else 4
