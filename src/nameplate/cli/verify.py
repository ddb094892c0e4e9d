"""`nameplate verify`: recompute every published number from raw evidence."""

from __future__ import annotations

from pathlib import Path

import click


@click.command("verify")
@click.argument("directory", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print exactly one JSON document to standard output.")
def command(directory: Path, as_json: bool) -> int:
    """Recompute what DIRECTORY (a trial or a study) publishes from its raw reads, and run the named checks."""
    from nameplate.cli.output import print_json
    from nameplate.report.console import answers
    from nameplate.report.verify import verify_table
    from nameplate.verify import verify

    report = verify(directory)
    if as_json:
        print_json(report)
    else:
        answers().print(verify_table(report))
    return report.exit_code
