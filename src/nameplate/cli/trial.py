"""`nameplate trial`: run and seal one trial, and print its measurements."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from nameplate.cli.options import contract_options, evidence_options, sampling_options, server_options
from nameplate.cli.trace import OPTIONS as TRACE_OPTIONS
from nameplate.cli.trace import read_trace, trace_options
from nameplate.contract.arrivals import OUTSTANDING_LIMIT, ArrivalPlan
from nameplate.contract.errors import CallerError, Interrupted
from nameplate.contract.rules import Rules
from nameplate.schedule.stage import arrivals_planned, process_of

if TYPE_CHECKING:
    from nameplate.studies.replay import Replay


_SPEEDS = ("concurrency", "rate", "ramp", "steps", "trace")


@click.command("trial")
@click.argument("target")
@click.option("--shape", metavar="IN/OUT", help="Input and output tokens: 8192/1024 or 8k/1k.")
@click.option("--concurrency", "-c", type=click.IntRange(min=1), help="Requests in flight: a closed loop.")
@click.option("--rate", type=float, help="Requests a second: an open loop, whose arrivals wait for nothing.")
@click.option(
    "--ramp",
    metavar="FROM:TO:DURATION",
    help="An open loop whose rate goes evenly from one to another: 1:20:5m.",
)
@click.option(
    "--steps",
    metavar="RATExTIME,...",
    help="An open loop of one rate after the other: 2x60s,10x30s,0x10s,2x60s.",
)
@trace_options
@click.option(
    "--arrivals",
    default="poisson",
    show_default=True,
    metavar="poisson|constant|gamma:SHAPE",
    help="With --rate, --ramp or --steps: how arrivals are spread.",
)
@click.option(
    "--outstanding-limit",
    type=click.IntRange(min=1),
    default=OUTSTANDING_LIMIT,
    show_default=True,
    help="Of an open loop: so many unanswered requests end the load.",
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
    from nameplate.cli.ending import write_report
    from nameplate.cli.output import print_json
    from nameplate.report.console import answers
    from nameplate.report.trial import trial_summary
    from nameplate.verdict.boundary import trial_exit_code

    rules = Rules(requests=options["requests"], warmup=options["warmup"], start=options["start"])
    speed = _speed(options)
    arguments = tuple(sys.argv[1:])
    if speed == "trace":
        result, directory = study_run.run_replay(target, options, rules, _replay(options), arguments)
    else:
        arrivals = None if speed == "concurrency" else _arrivals(options, speed)
        concurrency = options["concurrency"] if arrivals is None else arrivals.outstanding_limit
        _check_closed(options, arrivals)
        result, directory = study_run.run_single(target, options, rules, concurrency, arguments, arrivals)
    if options["as_json"]:
        print_json(result)
    else:
        answers().print(trial_summary(result, directory))
    if not options["no_report"]:
        write_report(directory.parent.parent)
    return Interrupted.exit_code if result.interrupted else trial_exit_code(result.verdict.status)


def _speed(options: dict[str, Any]) -> str:
    """Return which load is asked for: a closed loop by its concurrency, or which open one."""
    asked = [name for name in _SPEEDS if options[name] is not None]
    if len(asked) != 1:
        raise CallerError(
            "Either --concurrency or --rate is wanted, or one of --ramp, --steps and --trace.",
            why="A closed loop keeps so many requests in flight; an open one sends so many a second, whatever happens.",
            hint="For example -c 8, or --rate 2.5.",
        )
    speed = asked[0]
    if options["shape"] is None and speed != "trace":
        raise CallerError("--shape is missing.", hint="For example --shape 8k/1k.")
    given = click.get_current_context().get_parameter_source

    def refuse(names: Sequence[str], what: str, hint: str) -> None:
        for name in names:
            if given(name) is ParameterSource.COMMANDLINE:
                option = name.removesuffix("es") if name == "trace_classes" else name
                raise CallerError(f"--{option.replace('_', '-')} {what}.", hint=hint)

    if speed == "concurrency":
        refuse(("arrivals", "outstanding_limit"), "belongs to an open loop", "Give --rate in place of -c.")
    elif options["start"] != "burst" or options["stagger"] is not None:
        raise CallerError(
            "--start and --stagger belong to a closed loop.", hint=f"Leave them out with --{speed}."
        )
    elif options["outstanding_limit"] < options["workers"]:
        raise CallerError(
            f"{options['workers']} workers cannot share {options['outstanding_limit']} outstanding requests.",
            hint="Raise --outstanding-limit, or ask for fewer --workers.",
        )
    if speed != "trace":
        refuse(TRACE_OPTIONS, "belongs to a recorded trace", "Give --trace FILE.")
    else:
        own = ("shape", "arrivals", "requests", "dataset", "repeat_dataset", "tokenizer", "cache")
        refuse(
            own,
            "has no place beside a trace",
            "It has its own times, lengths and shared prefixes; see --trace-limit.",
        )
    return speed


def _check_closed(options: dict[str, Any], arrivals: ArrivalPlan | None) -> None:
    """Refuse a closed loop that cannot be as concurrent as it should."""
    concurrency, requests = options["concurrency"], options["requests"]
    if arrivals is None and requests is not None and requests < concurrency:
        raise CallerError(
            f"{requests} requests cannot keep {concurrency} in flight.",
            hint="Ask for at least as many requests as the concurrency.",
        )
    if (options["start"] == "staggered") != (options["stagger"] is not None):
        raise CallerError(
            "--start staggered and --stagger belong together.",
            why="A study spaces the slots by its baseline; a single trial has none.",
            hint="For example --start staggered --stagger 500ms.",
        )


def _arrivals(options: dict[str, Any], speed: str) -> ArrivalPlan:
    """Read the arrivals of an open loop; refuse what cannot be offered before the server is asked anything."""
    spread, seed, limit = options["arrivals"], options["seed"], options["outstanding_limit"]
    if speed == "rate":
        arrivals = ArrivalPlan.parse(options["rate"], spread, seed, limit)
        process_of(arrivals)
        return arrivals
    parse = ArrivalPlan.parse_ramp if speed == "ramp" else ArrivalPlan.parse_steps
    arrivals = parse(options[speed], spread, seed, limit)
    process_of(arrivals)
    arrivals_planned(arrivals)
    return arrivals


def _replay(options: dict[str, Any]) -> Replay:
    from nameplate.studies.replay import Replay

    return Replay(
        trace=read_trace(options),
        too_long=options["trace_too_long"],
        too_short=options["trace_too_short"],
        outstanding_limit=options["outstanding_limit"],
    )
