"""`nameplate show`: one request of a trial, event by event."""

from __future__ import annotations

from pathlib import Path

import click


@click.command("show")
@click.argument("trial", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.argument("index", type=click.IntRange(min=0))
@click.option("--all", "everything", is_flag=True, help="Print every event.")
@click.option("--json", "as_json", is_flag=True, help="Print exactly one JSON document to standard output.")
def command(trial: Path, index: int, everything: bool, as_json: bool) -> int:
    """Print request INDEX of TRIAL: its facts, its events with their times, and the decoded text."""
    from nameplate.cli.output import print_json
    from nameplate.measure.replay import replay_request
    from nameplate.report.console import answers
    from nameplate.report.request import request_view

    replayed = replay_request(trial, index)
    if as_json:
        print_json(replayed)
    else:
        answers().print(request_view(replayed, everything))
    return 0
