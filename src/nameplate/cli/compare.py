"""`nameplate compare`: two runs against each other, with a verdict for each measure."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from nameplate.contract.errors import NameplateError

if TYPE_CHECKING:
    from nameplate.compare.document import Comparison, Settings


@click.command(
    "compare",
    epilog="""\b
Examples:
  nameplate compare runs/before runs/after
  nameplate compare runs/v0.10 runs/v0.11 --vary engine.version
  nameplate compare runs/main runs/pr --fail-if "ttft p95 +5%" --fail-if "output_rate -3%"
  nameplate compare monday/ friday/            (folders of repeated runs: their results are the sample)
  nameplate compare old.json new.json          (result files of another tool)
\b
Exit codes: 0 something it is about is known, and every --fail-if holds; 1 one is broken; 2 not comparable, or wrong
input; 3 a --fail-if is not known, or without any nothing is; 4 a result is not what was sealed.
""",
)
@click.argument("a", type=click.Path(exists=True, path_type=Path))
@click.argument("b", type=click.Path(exists=True, path_type=Path))
@click.option(
    "--and-a", "more_a", multiple=True, type=click.Path(exists=True, path_type=Path),
    help="A further result that repeats A. May repeat.",
)  # fmt: skip
@click.option(
    "--and-b", "more_b", multiple=True, type=click.Path(exists=True, path_type=Path),
    help="A further result that repeats B. May repeat.",
)  # fmt: skip
@click.option(
    "--vary", multiple=True, metavar="TERM",
    help="A difference that is the point: engine.version, 'engine.*', slo, ... May repeat.",
)  # fmt: skip
@click.option(
    "--fail-if", "conditions", multiple=True, metavar='"MEASURE +LIMIT"',
    help='Exit by 1 where it is certainly so: "ttft p95 +5%", "output_rate -3%", "itl p50 +2ms". May repeat.',
)  # fmt: skip
@click.option(
    "--about", multiple=True, metavar="MEASURE",
    help="What the comparison is about.  [default: the SLOs; without any ttft p95, itl p95 and rates]",
)  # fmt: skip
@click.option(
    "--at",
    "only",
    multiple=True,
    metavar="LOAD",
    help="Only this load: 'C=8', 'decode', '*8K x 4'. May repeat.",
)
@click.option(
    "--margin",
    default="2%",
    show_default=True,
    metavar="SHARE",
    help="A difference below it does not matter.",
)
@click.option("--confidence", default="95%", show_default=True, metavar="SHARE", help="Of the intervals.")
@click.option("--all", "everything", is_flag=True, help="Print every measure, and every term that differs.")
@click.option(
    "-o",
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write a page of the comparison, too.",
)
@click.option("--markdown", is_flag=True, help="Print Markdown, for a comment on a pull request.")
@click.option("--json", "as_json", is_flag=True, help="Print exactly one JSON document to standard output.")
def command(
    a: Path,
    b: Path,
    more_a: tuple[Path, ...],
    more_b: tuple[Path, ...],
    vary: tuple[str, ...],
    conditions: tuple[str, ...],
    about: tuple[str, ...],
    only: tuple[str, ...],
    margin: str,
    confidence: str,
    everything: bool,
    out: Path | None,
    markdown: bool,
    as_json: bool,
) -> int:
    """Say in what B is better than A, worse, equal within a margin, or not known to differ.

    A and B are directories of trials, studies or imports, result files of other tools, or folders of several that
    repeat each other. The trial is the sample: below three a side nothing is known. What differs in the contract is
    refused, unless --vary names it.
    """
    from nameplate.cli.output import print_json
    from nameplate.compare.comparing import Asked, compare_sides
    from nameplate.compare.conditions import FailIf
    from nameplate.compare.measures import Statistic
    from nameplate.compare.reading import read_side
    from nameplate.compare.sealing import require_as_sealed
    from nameplate.contract.errors import CallerError
    from nameplate.report.comparison import comparison_summary
    from nameplate.report.comparison_markdown import comparison_markdown
    from nameplate.report.console import answers

    if markdown and as_json:
        raise CallerError("--markdown and --json are two answers.", hint="Choose one.")
    asked = Asked(
        settings=_settings(margin, confidence),
        vary=vary,
        gates=tuple(map(Statistic.parse, about)),
        conditions=tuple(map(FailIf.parse, conditions)),
        only=only,
    )
    try:
        sides = read_side("A", (a, *more_a)), read_side("B", (b, *more_b))
        require_as_sealed(*sides)
        told = compare_sides(*sides, asked)
    except NameplateError as error:
        if as_json:
            raise
        raise _told(error, markdown=markdown) from None
    if out is not None:
        _write_page(told, out)
    if as_json:
        print_json(told)
    elif markdown:
        click.echo(comparison_markdown(told, everything=everything), nl=False)
    else:
        answers().print(comparison_summary(told, everything=everything))
    return told.exit_code


def _told(error: NameplateError, *, markdown: bool) -> NameplateError:
    """Show why there is no comparison: as Markdown, or what differs as a table. Return what is left to be said."""
    from nameplate.compare.comparing import Refused
    from nameplate.contract.errors import CallerError
    from nameplate.report.comparison import differences_table
    from nameplate.report.comparison_markdown import refusal_markdown
    from nameplate.report.console import people

    if markdown:
        click.echo(refusal_markdown(error), nl=False)
    if not isinstance(error, Refused):
        return error
    if not markdown:
        people().print(differences_table(error.differences))
    return CallerError(error.what, hint=error.hint)


def _write_page(told: Comparison, out: Path) -> None:
    from nameplate.pages.compare.page import comparison_page
    from nameplate.pages.writing import write_page

    write_page(out, comparison_page(told))


def _settings(margin: str, confidence: str) -> Settings:
    from nameplate.compare.document import Settings
    from nameplate.contract.errors import CallerError
    from nameplate.contract.quantity import parse_ratio

    sure, matters = parse_ratio(confidence), parse_ratio(margin)
    if not 0.5 <= sure < 1:
        raise CallerError(f"A confidence of {confidence} gives no interval.", hint="Give one such as 95%.")
    if not 0 <= matters <= 0.5:
        raise CallerError(f"A margin of {margin} tells nothing.", hint="Give one below 50%, such as 2%.")
    return Settings(confidence=sure, margin=matters, family=1 - sure)
