"""`nameplate probe`: what a server is, what works on it, and how to turn on what is missing."""

from __future__ import annotations

import secrets
from typing import Any

import click

from nameplate.cli.options import sampling_options, server_options


@click.command("probe")
@click.argument("target")
@server_options
@sampling_options()
@click.option("--json", "as_json", is_flag=True, help="Print exactly one JSON document to standard output.")
def command(target: str, **options: Any) -> int:
    """Send TARGET a handful of tiny requests and say what was found, what works and what is missing."""
    from nameplate.cli.ground import open_ground
    from nameplate.cli.output import print_json
    from nameplate.cli.request import read_address, read_credentials, read_facts, read_sampling
    from nameplate.report.console import answers
    from nameplate.report.probe import probe_table
    from nameplate.trial.site import survey

    address, credentials = read_address(target, options), read_credentials(options)
    log, given = read_facts(options)
    with open_ground(address, credentials) as (ground, reached):
        site = survey(
            ground,
            reached,
            read_sampling(options),
            secrets.token_hex(8),
            lambda _what, **_detail: None,
            log=log,
            given=given,
        )
    if options["as_json"]:
        print_json(site.report)
    else:
        answers().print(probe_table(site.report))
    return 0
