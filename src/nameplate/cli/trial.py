"""`nameplate trial`: run and seal one trial, and print its measurements."""

from __future__ import annotations

import sys
from typing import Any

import click

from nameplate.cli.options import contract_options, evidence_options, sampling_options, server_options
from nameplate.contract.errors import CallerError, Interrupted
from nameplate.contract.rules import Rules


@click.command("trial")
@click.argument("target")
@click.option("--shape", required=True, metavar="IN/OUT", help="Input and output tokens: 8192/1024 or 8k/1k.")
@click.option("--concurrency", "-c", type=click.IntRange(min=1), required=True, help="Requests in flight.")
@click.option(
    "--requests", type=click.IntRange(min=1), help="Measured requests.  [default: max(64, 4C, 3/(1-p))]"
)
@click.option(
    "--warmup", type=click.IntRange(min=0), default=Rules().warmup, show_default=True, help="Serial, first."
)
@click.option(
    "--stagger", metavar="DURATION", help="With --start staggered: from one slot's start to the next."
)
@click.option(
    "--slo", "slos", multiple=True, metavar="SLO", help='Judge by it: "ttft p95 < 10s". May repeat.'
)
@server_options
@sampling_options()
@contract_options
@evidence_options
def command(target: str, **options: Any) -> int:
    """Run and seal one trial against TARGET (a URL, or sim:PRESET) and print its measurements."""
    from nameplate.cli import study_run
    from nameplate.cli.output import print_json
    from nameplate.report.console import answers
    from nameplate.report.trial import trial_summary
    from nameplate.verdict.boundary import trial_exit_code

    rules = Rules(requests=options["requests"], warmup=options["warmup"], start=options["start"])
    concurrency: int = options["concurrency"]
    if options["requests"] is not None and options["requests"] < concurrency:
        raise CallerError(
            f"{options['requests']} requests cannot keep {concurrency} in flight.",
            hint="Ask for at least as many requests as the concurrency.",
        )
    if (options["start"] == "staggered") != (options["stagger"] is not None):
        raise CallerError(
            "--start staggered and --stagger belong together.",
            why="A study spaces the slots by its baseline; a single trial has none.",
            hint="For example --start staggered --stagger 500ms.",
        )
    result, directory = study_run.run_single(target, options, rules, concurrency, tuple(sys.argv[1:]))
    if options["as_json"]:
        print_json(result)
    else:
        answers().print(trial_summary(result, directory))
    return Interrupted.exit_code if result.interrupted else trial_exit_code(result.verdict.status)
