"""`nameplate verify`: recompute every published number from raw evidence."""

from __future__ import annotations

from pathlib import Path

import click


@click.command("verify")
@click.argument("directory", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print exactly one JSON document to standard output.")
def command(directory: Path, as_json: bool) -> int:
    """Recompute what DIRECTORY publishes and run the named checks.

    A trial or a study is recomputed from its raw reads, an import from the file that was read.
    """
    from nameplate.cli.output import print_json
    from nameplate.exchange.kind import run_kind
    from nameplate.exchange.peers.verifying import verify_import
    from nameplate.report.console import answers
    from nameplate.report.verify import verify_table
    from nameplate.verify import verify

    if run_kind(directory) == "import":
        from nameplate.report.imported_run import verified_import

        found = verify_import(directory)
        if as_json:
            print_json(found)
        else:
            answers().print(verified_import(found))
        return found.exit_code
    report = verify(directory)
    if as_json:
        print_json(report)
    else:
        answers().print(verify_table(report))
    return report.exit_code
