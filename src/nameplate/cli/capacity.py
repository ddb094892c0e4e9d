"""`nameplate capacity`: the largest concurrency that keeps an SLO, confirmed on both sides."""

from __future__ import annotations

import sys
from typing import Any

import click

from nameplate.cli.options import (
    boundary_options,
    concurrency_options,
    contract_options,
    evidence_options,
    protocol_options,
    sampling_options,
    server_options,
)


@click.command("capacity")
@click.argument("target", required=False)
@boundary_options()
@server_options
@sampling_options()
@contract_options
@concurrency_options
@protocol_options()
@evidence_options
def command(target: str | None, **options: Any) -> int:
    """Find the largest concurrency at which TARGET (a URL, or sim:PRESET) keeps the SLOs, and prove it."""
    from nameplate.cli import study_run
    from nameplate.cli.ending import write_report
    from nameplate.cli.output import print_json
    from nameplate.report.capacity import capacity_summary
    from nameplate.report.console import answers

    found, directory = study_run.run_boundary(target, options, tuple(sys.argv[1:]))
    if options["as_json"]:
        print_json(found.plate)
    else:
        again = study_run.repeating(tuple(sys.argv[1:]))
        answers().print(
            capacity_summary(found.plate, directory, again, record=found.record, results=found.results)
        )
    if not options["no_report"]:
        write_report(directory)
    return found.plate.exit_code
