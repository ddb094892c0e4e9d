"""`nameplate check`: does a plate still hold for a server?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from nameplate.cli.options import server_options


@click.command("check")
@click.argument("plate", type=click.Path(exists=True, path_type=Path))
@click.argument("target")
@server_options
@click.option("--json", "as_json", is_flag=True, help="Print exactly one JSON document to standard output.")
def command(plate: Path, target: str, **options: Any) -> int:
    """Read the identity of TARGET and hold it against PLATE (plate.json or a study's directory)."""
    from nameplate.cli.expect import read_plate
    from nameplate.cli.ground import open_ground
    from nameplate.cli.output import print_json
    from nameplate.cli.request import read_address, read_credentials, read_facts
    from nameplate.contract.identity import CONFIGURATION, Identity, compare
    from nameplate.engines.detect import detect
    from nameplate.engines.identify import identify
    from nameplate.report.check import check_summary
    from nameplate.report.console import answers

    rated = read_plate(plate)
    if not options["model"]:
        options["model"] = rated.target.model
    address, credentials = read_address(target, options), read_credentials(options)
    log, given = read_facts(options)
    with open_ground(address, credentials) as (ground, reached):
        now = identify(detect(ground.transport, reached, ground.clock), log, given).identity
    changes = compare(Identity(rated.identity.facts), now, CONFIGURATION)
    changed = any(change.kind == "changed" for change in changes)
    if options["as_json"]:
        print_json({"holds": not changed, "changes": changes, "identity": now})
    else:
        answers().print(check_summary(changes, rated))
    return 1 if changed else 0
