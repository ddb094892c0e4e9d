"""`nameplate import`: another tool's result file as a result of ours."""

from __future__ import annotations

from pathlib import Path

import click


@click.command("import")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--out", type=click.Path(path_type=Path), help="Directory of the result.  [default: runs/import-TIME]"
)
@click.option("--all", "everything", is_flag=True, help="Print the table of all measurements, too.")
@click.option(
    "--show-discarded", is_flag=True, help="Show what was measured in cells that are not valid, marked."
)
@click.option("--json", "as_json", is_flag=True, help="Print exactly one JSON document to standard output.")
def command(file: Path, out: Path | None, everything: bool, show_discarded: bool, as_json: bool) -> int:
    """Read FILE, a result file of llm-inference-bench (0.4 or later), and judge every cell by what it shows.

    The directory holds result.json and the file itself, so that anyone can import it again.
    """
    from nameplate.cli.output import print_json
    from nameplate.cli.request import default_directory
    from nameplate.exchange.inference_bench.files import import_file
    from nameplate.report.console import answers, people
    from nameplate.report.measurements import all_measurements
    from nameplate.report.safe import safe_text
    from nameplate.report.speed import speed_summary

    directory = out or default_directory("import")
    result, said = import_file(file, directory)
    for sentence in said:
        people().print(safe_text(f"note: {sentence}"))
    if as_json:
        print_json(result)
        return 0
    answers().print(speed_summary(result, directory, discarded=show_discarded))
    if everything:
        answers().print(all_measurements(result, discarded=show_discarded))
    return 0
