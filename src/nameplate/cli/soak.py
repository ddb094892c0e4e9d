"""`nameplate soak`: one load for hours, every request accounted for, and whether anything drifted."""

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


@click.command("soak")
@click.argument("target", required=False)
@click.option("--shape", metavar="IN/OUT", help="Input and output tokens: 131072/16384 or 128k/16k.")
@click.option("--concurrency", "-c", type=click.IntRange(min=1), help="Requests in flight: a closed loop.")
@click.option("--rate", type=float, help="Requests a second: an open loop, whose arrivals wait for nothing.")
@arrival_options("end the load")
@click.option("--duration", metavar="DURATION", help="For how long requests are submitted: 30m, 8h.")
@click.option(
    "--window",
    metavar="DURATION",
    help="Length of a window of the report.  [default: 5m; about a 48th of a soak below 4h]",
)
@click.option(
    "--drain",
    default="15m",
    show_default=True,
    metavar="DURATION",
    help="How long to wait, after the last submission, for what is still out.",
)
@click.option(
    "--raw-budget",
    metavar="BYTES",
    help="Room for raw reads of the whole soak: 20GB. From half of it on a sample of the requests is kept, beyond it "
    "only their times and sizes.  [default: 8GiB]",
)
@click.option(
    "--slo", "slos", multiple=True, metavar="SLO", help='Promise: "ttft p95 < 10s". May repeat; all hold.'
)
@click.option(
    "--max-error-rate", metavar="SHARE", help="More failed requests than this end in exit code 1: 1%."
)
@click.option(
    "--max-drift",
    metavar="SHARE",
    help="A series that was worse, at any time, by this share of its level is exit code 1: 10%. "
    "Changes below a floor of each series' own (10 ms of TTFT, ...) never count.",
)
@click.option(
    "--resume",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Go on with a soak that ended early, for what is left of its duration.",
)
@server_options
@sampling_options()
@contract_options
@evidence_options
def command(target: str | None, **options: Any) -> int:
    """Send one fixed load to TARGET (a URL, or sim:PRESET) for hours, and account for every request.

    Ctrl-C stops submitting and waits for what is out; a second one cancels that. Either way, and after a kill,
    everything so far is on disk: --resume goes on, and `nameplate watch DIR` looks on from another terminal.
    """
    from nameplate.cli import soak_run
    from nameplate.cli.ending import write_report
    from nameplate.cli.output import print_json
    from nameplate.report.console import answers
    from nameplate.report.soak import soak_summary

    found = soak_run.run_soak(target, options, tuple(sys.argv[1:]))
    if options["as_json"]:
        print_json(found.record.result)
    else:
        answers().print(soak_summary(found.record, found.directory))
    if not options["no_report"]:
        write_report(found.directory)
    return found.record.exit_code or 0
