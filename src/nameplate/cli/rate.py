"""`nameplate rate`: the highest request rate that keeps an SLO with a bounded queue, confirmed on both sides."""

from __future__ import annotations

import sys
from typing import Any

import click

from nameplate.cli.options import (
    boundary_options,
    contract_options,
    evidence_options,
    protocol_options,
    rate_options,
    sampling_options,
    server_options,
)


@click.command("rate")
@click.argument("target", required=False)
@boundary_options(", from schedule")
@server_options
@sampling_options()
@contract_options
@rate_options
@protocol_options("[default: max(64, 20/(1-p), 2.5/resolution^2), and ten answers long]")
@evidence_options
def command(target: str | None, **options: Any) -> int:
    """Find the highest request rate at which TARGET (a URL, or sim:PRESET) keeps the SLOs, its queue is bounded and its
    latency steady, and prove it."""
    from nameplate.cli import study_run
    from nameplate.cli.ending import write_report
    from nameplate.cli.output import print_json
    from nameplate.cli.request import read_rates
    from nameplate.report.capacity import capacity_summary
    from nameplate.report.console import answers

    arguments = tuple(sys.argv[1:])
    found, directory = study_run.run_boundary(target, options, arguments, read_rates(options))
    if options["as_json"]:
        print_json(found.plate)
    else:
        again = study_run.repeating(arguments)
        answers().print(
            capacity_summary(found.plate, directory, again, record=found.record, results=found.results)
        )
    if not options["no_report"]:
        write_report(directory)
    return found.plate.exit_code
