"""`nameplate speed`: how fast a server is, by context length and by simultaneous requests."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from nameplate.cli.options import evidence_options, sampling_options, server_options


@click.command("speed")
@click.argument("target", required=False)
@click.option(
    "--contexts", metavar="LIST", help="Prompt lengths: 8k,32k,longest.  [default: 8k .. 128k, longest]"
)
@click.option("--concurrency", "-c", metavar="LIST", help="Simultaneous streams.  [default: 1,2,4 .. 128]")
@click.option("--window", metavar="DURATION", help="Measured after readiness.  [default: 30s]")
@click.option(
    "--stable", default="3s", show_default=True, metavar="DURATION", help="Readiness must hold so long."
)
@click.option(
    "--output", default="4096", show_default=True, metavar="TOKENS", help="Output length of a request."
)
@click.option(
    "--unique-context",
    default="100%",
    show_default=True,
    metavar="SHARE",
    help="Share of each prompt that is its own; the rest is a prefix that all have in common.",
)
@click.option(
    "--warm-streams", is_flag=True, help="Send each stream's prompt once before: its TTFT is warm then."
)
@click.option(
    "--ready-timeout", metavar="DURATION", help="[default: C x cold prefill x 1.5 + 30 s, as measured]"
)
@click.option(
    "--loop-limit",
    default="5%",
    show_default=True,
    metavar="SHARE",
    help="More streams than this repeating themselves void a cell.",
)
@click.option(
    "--requests", type=click.IntRange(min=1), help="Measure this many requests a cell instead of a window."
)
@click.option("--prefill-contexts", metavar="LIST", help="[default: as --contexts, and the server's limit]")
@click.option(
    "--prefill-samples", type=click.IntRange(min=1), help="At most so many a context.  [default: 8]"
)
@click.option("--prefill-only", is_flag=True, help="Measure prefill alone.")
@click.option("--no-prefill", is_flag=True, help="Measure no prefill.")
@click.option("--burst", is_flag=True, help="Also send each level as one wave, and measure it whole.")
@click.option(
    "--burst-requests", type=click.IntRange(min=1), metavar="N", help="Requests of a wave.  [default: 5 C]"
)
@click.option("--mixed", is_flag=True, help="Also measure what one long prompt costs streams that decode.")
@click.option(
    "--mixed-arrival", metavar="TOKENS", help="Its length.  [default: 32k, or what the limit leaves]"
)
@click.option(
    "--mixed-streams", type=click.IntRange(min=1), default=8, show_default=True, help="Streams beside it."
)
@click.option("--mixed-shape", default="2k/1k", show_default=True, metavar="IN/OUT", help="Their shape.")
@click.option(
    "--profile",
    type=click.Choice(["full", "standard", "quick"]),
    default="full",
    show_default=True,
    help="A fixed matrix; standard is the one to compare machines by.",
)
@click.option("--quick", is_flag=True, help="The same as --profile quick.")
@click.option("--time-budget", metavar="DURATION", help="Skip the cells that it leaves no room for.")
@click.option(
    "--resume",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Go on with an interrupted study, cell by cell.",
)
@click.option("--server-host", metavar="this|other|NAME", help="Whether this machine is the server's host.")
@click.option("--launch-command", metavar="TEXT", help="How the server was started; keys are redacted.")
@click.option("--note", metavar="TEXT", help="Kept with the result; keys are redacted.")
@click.option("--all", "all_measurements", is_flag=True, help="Print the table of all measurements, too.")
@click.option(
    "--show-discarded", is_flag=True, help="Show what was measured in cells that are not valid, marked."
)
@server_options
@sampling_options(temperature="none")
@click.option(
    "--flush",
    type=click.Choice(["auto", "never", "require"]),
    default="auto",
    show_default=True,
    help="Flush the prefix cache before each cell.",
)
@click.option("--seed", type=int, default=42, show_default=True, help="Fixes what is drawn.")
@click.option(
    "--tokenizer",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A local tokenizer.json, for exact prompt lengths.",
)
@click.option(
    "--deadline",
    "deadlines",
    multiple=True,
    metavar="NAME=DURATION",
    help="connect, first_output, silence or total, e.g. first_output=15m.",
)
@evidence_options
def command(target: str | None, **options: Any) -> int:
    """Measure how fast TARGET (a URL, or sim:PRESET) is, by context length and by simultaneous requests."""
    from nameplate.cli import speed_run
    from nameplate.cli.ending import write_report
    from nameplate.cli.output import print_json
    from nameplate.cli.redaction import redacted
    from nameplate.cli.study_run import repeating
    from nameplate.report.console import answers
    from nameplate.report.measurements import all_measurements
    from nameplate.report.speed import speed_summary

    result, directory = speed_run.run_speed(target, options, tuple(sys.argv[1:]))
    if options["as_json"]:
        print_json(result)
    else:
        again = redacted(repeating(tuple(sys.argv[1:])))
        shown = options["show_discarded"]
        answers().print(speed_summary(result, directory, again, discarded=shown))
        if options["all_measurements"]:
            answers().print()
            answers().print(all_measurements(result, discarded=shown))
    if not options["no_report"]:
        write_report(directory)
    return result.exit_code if result.exit_code is not None else 4
