"""`nameplate plate`: the rating plate of a study, for a README or a rack."""

from __future__ import annotations

import sys
from pathlib import Path

import click

# What a rated number rests on, as the checks are called.
_CARRIES = ("study manifest", "plate")
# More contradictions than these say nothing more.
_SHOWN = 3


@click.command("plate")
@click.argument("directory", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option(
    "--svg", type=click.Path(dir_okay=False, allow_dash=True, path_type=Path), help="Write the drawing there."
)
@click.option(
    "--png",
    type=click.Path(dir_okay=False, allow_dash=True, path_type=Path),
    help="Write the picture there, 1280 wide.",
)
@click.option("--markdown", is_flag=True, help="Print it as Markdown.")
@click.option("--text", is_flag=True, help="Print it as text. This is what happens without any option.")
@click.option(
    "--write",
    is_flag=True,
    help="Write plate.svg, plate.png, plate.md and plate.txt into DIRECTORY, as studies do.",
)
@click.option("--json", "as_json", is_flag=True, help="Print exactly one JSON document to standard output.")
def command(
    directory: Path,
    svg: Path | None,
    png: Path | None,
    markdown: bool,
    text: bool,
    write: bool,
    as_json: bool,
) -> int:
    """Draw the rating plate of the study in DIRECTORY; a FILE of - is standard output."""
    from nameplate.cli.output import print_json
    from nameplate.contract.errors import CallerError
    from nameplate.evidence import layout
    from nameplate.ratingplate.files import write_plate
    from nameplate.ratingplate.markdown import as_markdown
    from nameplate.ratingplate.picture import render
    from nameplate.ratingplate.reading import read_plate, read_rating_plate
    from nameplate.ratingplate.svg import draw
    from nameplate.ratingplate.text import as_text
    from nameplate.report.console import people
    from nameplate.report.writing import write_whole

    printed = [markdown, text, as_json, str(svg) == "-", str(png) == "-"]
    if sum(printed) > 1:
        raise CallerError(
            "Only one form can be printed.", hint="Name files for --svg and --png, or ask for one form."
        )
    held = read_rating_plate(directory)
    _hold(directory)
    wrote: list[Path] = list(write_plate(directory)) if write else []
    drawn = [
        (path, data)
        for path, data in (
            (svg, draw(held).encode() if svg is not None else b""),
            (png, render(held) if png is not None else b""),
        )
        if path is not None
    ]
    for path, data in drawn:
        if str(path) == "-":
            sys.stdout.buffer.write(data)
        else:
            write_whole(path, data)
            wrote.append(path)
    if as_json:
        print_json(read_plate(directory) if (directory / layout.PLATE).exists() else held)
    elif markdown:
        _print(as_markdown(held, image=svg.name if svg is not None else None))
    elif text or not (drawn or write):
        _print(as_text(held))
    for path in wrote:
        people().print(f"wrote {path}", markup=False, highlight=False)
    if not (any(printed) or drawn or write):
        people().print("--svg FILE and --png FILE draw it, --markdown prints it for a README.", markup=False)
    return 0


def _hold(directory: Path) -> None:
    """Hold what the plate is drawn from against its seals and the sealed results; EvidenceError where it is another."""
    from nameplate.contract.errors import EvidenceError
    from nameplate.evidence import layout
    from nameplate.pages.checks import check
    from nameplate.report.safe import safe

    checked = check(directory, full=False)
    told = [f"{one.of or one.name}: {one.detail}" for one in checked.failures]
    why = "What is here is not what was sealed when the study ended, so no number of it is one to show."
    if not told and (directory / layout.PLATE).exists():
        found = {one.name: one for one in checked.found if not one.of}
        lacking = [name for name in _CARRIES if name not in found or found[name].status != "pass"]
        told = [f"{name}: {found[name].detail if name in found else 'not there'}" for name in lacking]
        why = "Nothing carries the number where the sealed results are not beside it."
    if not told:
        return
    more = f"; and {len(told) - _SHOWN:,} more" if len(told) > _SHOWN else ""
    raise EvidenceError(
        f"No plate is drawn of {directory}: {safe('; '.join(told[:_SHOWN]), 1000).rstrip('.')}{more}.",
        why=why,
        hint=f"nameplate verify {directory} makes every check.",
    )


def _print(text: str) -> None:
    sys.stdout.buffer.write(text.encode())
    sys.stdout.buffer.flush()
