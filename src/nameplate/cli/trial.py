"""`nameplate trial`: run and seal one trial, and print its measurements."""

from __future__ import annotations

import sys
from typing import Any

import click
from click.core import ParameterSource

from nameplate.cli.options import contract_options, evidence_options, sampling_options, server_options
from nameplate.contract.arrivals import OUTSTANDING_LIMIT, ArrivalPlan
from nameplate.contract.errors import CallerError, Interrupted
from nameplate.contract.rules import Rules
from nameplate.schedule.stage import process_of


@click.command("trial")
@click.argument("target")
@click.option("--shape", required=True, metavar="IN/OUT", help="Input and output tokens: 8192/1024 or 8k/1k.")
@click.option("--concurrency", "-c", type=click.IntRange(min=1), help="Requests in flight: a closed loop.")
@click.option("--rate", type=float, help="Requests a second: an open loop, whose arrivals wait for nothing.")
@click.option(
    "--arrivals",
    default="poisson",
    show_default=True,
    metavar="poisson|constant|gamma:SHAPE",
    help="With --rate: how arrivals are spread.",
)
@click.option(
    "--outstanding-limit",
    type=click.IntRange(min=1),
    default=OUTSTANDING_LIMIT,
    show_default=True,
    help="With --rate: so many unanswered requests end the load.",
)
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
    concurrency, arrivals = _load(options)
    if arrivals is None and options["requests"] is not None and options["requests"] < concurrency:
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
    result, directory = study_run.run_single(
        target, options, rules, concurrency, tuple(sys.argv[1:]), arrivals
    )
    if options["as_json"]:
        print_json(result)
    else:
        answers().print(trial_summary(result, directory))
    return Interrupted.exit_code if result.interrupted else trial_exit_code(result.verdict.status)


def _load(options: dict[str, Any]) -> tuple[int, ArrivalPlan | None]:
    """Read which loop is asked for: its concurrency, and the arrivals of an open one."""
    concurrency, rate = options["concurrency"], options["rate"]
    if (concurrency is None) == (rate is None):
        raise CallerError(
            "Either --concurrency or --rate is wanted.",
            why="A closed loop keeps so many requests in flight; an open one sends so many a second, whatever happens.",
            hint="For example -c 8, or --rate 2.5.",
        )
    if rate is None:
        given = click.get_current_context().get_parameter_source
        for name in ("arrivals", "outstanding_limit"):
            if given(name) is ParameterSource.COMMANDLINE:
                raise CallerError(
                    f"--{name.replace('_', '-')} belongs to an open loop.", hint="Give --rate in place of -c."
                )
        return concurrency, None
    if options["start"] != "burst" or options["stagger"] is not None:
        raise CallerError(
            "--start and --stagger belong to a closed loop.", hint="Leave them out with --rate."
        )
    limit = options["outstanding_limit"]
    if limit < options["workers"]:
        raise CallerError(
            f"{options['workers']} workers cannot share {limit} outstanding requests.",
            hint="Raise --outstanding-limit, or ask for fewer --workers.",
        )
    arrivals = ArrivalPlan.parse(rate, options["arrivals"], options["seed"], limit)
    process_of(
        arrivals
    )  # Refuses a rate or a shape that cannot be offered, before the server is asked anything.
    return limit, arrivals
