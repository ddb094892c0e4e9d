"""`nameplate import`: another tool's result file, with its definitions, checked and judged by our rules."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from nameplate.contract.errors import CallerError

if TYPE_CHECKING:
    from nameplate.exchange.opening import Opened


@click.command("import")
@click.argument("file", type=click.Path(exists=True, path_type=Path))
@click.option(
    "--slo", "slos", multiple=True, metavar='"METRIC pNN < LIMIT"',
    help="Judge it, where the file holds AIPerf's raw records or records.",
)  # fmt: skip
@click.option(
    "--summary", type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="AIPerf's summary of the same run.  [default: the one beside FILE]",
)  # fmt: skip
@click.option(
    "--out", type=click.Path(path_type=Path), help="Directory of the result.  [default: runs/import-TIME]"
)
@click.option("--all", "everything", is_flag=True, help="Print every run, or every measurement, whole.")
@click.option(
    "--show-discarded", is_flag=True, help="Of a matrix: what was measured in cells that are not valid."
)
@click.option("--json", "as_json", is_flag=True, help="Print exactly one JSON document to standard output.")
def command(
    file: Path,
    slos: tuple[str, ...],
    summary: Path | None,
    out: Path | None,
    everything: bool,
    show_discarded: bool,
    as_json: bool,
) -> int:
    """Read FILE, a result of another tool, told by its content: AIPerf, GenAI-Perf, GuideLLM, vLLM, SGLang,
    inference-perf, LLMPerf, llama-bench, llm-inference-bench, or an llm-d benchmark report; packed by gzip or zstd too.

    Its numbers keep its definitions; the file is checked against itself, and what its request records carry is computed
    by our rules beside it. The directory holds result.json and the file, so that anyone can import it again. Exit code:
    4 where the file contradicts itself, 3 where a part of it is lost, else that of the verdict where there is one.
    """
    from nameplate.exchange.formats import MATRIX
    from nameplate.exchange.opening import open_result

    opened = open_result(file)
    if opened.format is MATRIX:
        if slos or summary is not None:
            raise CallerError(f"{file} is {MATRIX.says}: --slo and --summary belong to AIPerf's files.")
        return _matrix(file, out, everything, show_discarded, as_json)
    return _runs(opened, slos, summary, out, everything, as_json)


def _runs(
    opened: Opened,
    slos: tuple[str, ...],
    summary: Path | None,
    out: Path | None,
    everything: bool,
    as_json: bool,
) -> int:
    from nameplate.cli.output import print_json
    from nameplate.cli.request import default_directory
    from nameplate.contract.slo import Slo
    from nameplate.exchange.peers.importing import import_runs, write_import
    from nameplate.report.console import answers, people
    from nameplate.report.imported_run import imported_summary
    from nameplate.report.safe import safe_text
    from nameplate.verdict.boundary import trial_exit_code

    document = import_runs(opened, tuple(map(Slo.parse, slos)), summary)
    directory = out or default_directory("import")
    for sentence in write_import(document, opened, directory, summary):
        people().print(safe_text(f"note: {sentence}"))
    if as_json:
        print_json(document)
    else:
        answers().print(imported_summary(document, str(directory), everything=everything))
    judged = document.runs[0].judged
    return trial_exit_code(judged.verdict.status) if slos and judged is not None else document.exit_code


def _matrix(file: Path, out: Path | None, everything: bool, show_discarded: bool, as_json: bool) -> int:
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
