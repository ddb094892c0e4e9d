"""The checks of a run on its page: which were made, what they found, and in red what does not hold."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import htpy as h
from msgspec import Struct

from nameplate.exchange.kind import run_kind
from nameplate.pages.table import Cell, Column, table
from nameplate.pages.words import badge, status
from nameplate.report import numbers
from nameplate.report.safe import safe
from nameplate.verify import verify
from nameplate.verify.check import Check, Report
from nameplate.verify.names import Name
from nameplate.verify.seals import verify_seals

if TYPE_CHECKING:
    from nameplate.exchange.peers.verifying import Verified

_DETAIL_LIMIT = 600
_SHOWN = 20
_HOLDS = ("pass", "holds")
_SEALS = (Name.manifest, Name.study_manifest)


class Found(Struct, frozen=True, kw_only=True):
    """Hold one check that was made: of what, its name, status and what was found, and how much was looked at."""

    of: str
    name: str
    status: str
    detail: str
    counted: int | None = None
    meaning: str = ""

    @property
    def failed(self) -> bool:
        return self.status in ("fail", "contradicted")


class Checked(Struct, frozen=True, kw_only=True):
    """Hold the checks made of one run; `full` are all that there are, else its seals alone. `altered` says that files
    are not those that were sealed."""

    directory: str
    full: bool
    found: tuple[Found, ...]
    exit_code: int
    altered: bool

    @property
    def failures(self) -> tuple[Found, ...]:
        return tuple(one for one in self.found if one.failed)


def check(directory: Path, *, full: bool) -> Checked:
    """Check a run: its seals, or with `full` everything that `verify` checks.

    The exit code is that of `verify`; of the seals alone it is 0 unless one is broken.
    """
    if run_kind(directory) == "import":
        # Reading the files of other tools takes all their readers.
        from nameplate.exchange.peers.verifying import verify_import

        return _imported(directory, verify_import(directory, again=full), full)
    report = verify(directory) if full else verify_seals(directory)
    found = tuple(_of(report, ""))
    altered = any(one.status == "fail" and one.name in _SEALS for one in report.all_checks())
    code = report.exit_code if full or any(one.failed for one in found) else 0
    return Checked(directory=str(directory), full=full, found=found, exit_code=code, altered=altered)


def _of(report: Report, name: str) -> Iterable[Found]:
    for one in report.checks:
        yield _found(one, name)
    for part in report.trials:
        yield from _of(part, part.directory.rstrip("/").rpartition("/")[2])


def _found(one: Check, name: str) -> Found:
    says = f"the gate says {one.says}; " if one.says and one.says != one.status else ""
    return Found(
        of=name,
        name=one.name.replace("_", " "),
        status=one.status,
        detail=f"{says}{one.detail}",
        counted=one.counted,
        meaning=one.meaning,
    )


def _imported(directory: Path, verified: Verified, full: bool) -> Checked:
    found = tuple(
        Found(of="", name=one.name, status=one.status, detail=one.detail) for one in verified.checks
    )
    altered = any(one.failed for one in found)
    code = verified.exit_code if full or altered else 0
    return Checked(directory=str(directory), full=full, found=found, exit_code=code, altered=altered)


def alert(checked: Checked | None) -> h.Node:
    """Return in red what does not hold, for the top of a page; nothing where all that was checked holds."""
    if checked is None or not checked.failures:
        return None
    title = (
        "This evidence was changed after it was sealed."
        if checked.altered
        else "This evidence is not what it claims to be."
    )
    shown = checked.failures[:_SHOWN]
    more = len(checked.failures) - len(shown)
    return h.section(".alert", role="alert")[
        h.strong[title],
        h.ul[
            [
                h.li[
                    f"{safe(one.of, 120)}: " if one.of else None,
                    h.b[safe(one.detail, _DETAIL_LIMIT)],
                    h.span(".soft")[f" ({safe(one.name, 60)})"],
                ]
                for one in shown
            ],
            h.li[f"and {more:,} more"] if more else None,
        ],
        h.p["No number below can be relied on before this is explained."],
    ]


def contradicted(checked: Checked, name: str) -> h.Element:
    """Return the answer of a run of which something does not hold: that there is none, and what contradicts it.

    `checked` has failures. Neither a number nor a status of the run is repeated.
    """
    first, more = checked.failures[0], len(checked.failures) - 1
    # Without what it is and should be: that stands in the alert, and a headline's number would be taken for an answer.
    where = f"{first.of}: " if first.of else ""
    what = "was changed after it was sealed" if checked.altered else "contradicts what is published"
    others = f", and {numbers.count(more, 'other check')} failed" if more else ""
    return h.section(".answer.tone-bad")[
        h.h1[
            safe(name, 100),
            f" has no answer that can be relied on: its evidence {what} (",
            safe(f"{where}{first.name}: {first.detail.partition(' is ')[0]}", _DETAIL_LIMIT),
            f"){others}",
        ],
        h.p[badge("contradicted")],
        h.p[
            "What was published stands below as it was found, numbers and statuses alike; none is confirmed."
        ],
    ]


def checks_section(checked: Checked | None, directory: str) -> h.Element:
    """Return which checks were made and their outcome; None says that none was, as at the end of a study."""
    command = h.code[safe(f"nameplate verify {directory}", 600)]
    if checked is None:
        words: h.Node = [
            "None was made for this page, which was written when the run ended. For all of them: ",
            command,
            ".",
        ]
        return _section(words, None)
    return _section(_words(checked, command), _table(checked))


def _section(words: h.Node, rows: h.Node) -> h.Element:
    return h.section(aria_label="Checks")[h.h2["Checks"], h.p[words], rows]


def _words(checked: Checked, command: h.Element) -> h.Node:
    made = len(checked.found)
    bad = len(checked.failures)
    open_ = [one for one in checked.found if one.status == "unverified"]
    if bad:
        said = f"{bad:,} of {numbers.count(made, 'check')} failed."
    elif checked.full:
        said = (
            f"All {made:,} checks hold."
            if not open_
            else f"Nothing contradicts; {len(open_):,} of {made:,} could not be made."
        )
    elif open_:
        said = f"Nothing contradicts, but not all of it is sealed: {safe(open_[0].detail, 200)}."
    else:
        said = "Digests hold: every file is as it was sealed, and what is published follows from the sealed results."
    return said if checked.full else [f"{said} For all checks, from raw reads up: ", command, "."]


def _table(checked: Checked) -> h.Element:
    """Return each check once, with how often it was made and holds; what does not hold stands by itself."""
    kinds: dict[str, list[Found]] = {}
    for one in checked.found:
        kinds.setdefault(one.name, []).append(one)
    rows: list[list[Cell | str]] = []
    for name, found in kinds.items():
        holds = [one for one in found if one.status in _HOLDS]
        rows += [_row(one, one.detail) for one in found if one not in holds]
        if holds:
            alone = (
                holds[0].detail if len(found) == 1 else f"holds in {len(holds):,} of {len(found):,} places"
            )
            rows.append(
                _row(
                    Found(of="", name=name, status=holds[0].status, detail="", meaning=holds[0].meaning),
                    alone,
                    holds,
                )
            )
    columns = (
        Column("check", kind="text"),
        Column("status", kind="text"),
        Column("counted"),
        Column("what was found", kind="text"),
        Column("what it means", kind="text"),
    )
    made = table(columns, rows, "Checks, with what they found")
    return h.details(open=bool(checked.failures))[h.summary["Every check and what it found"], made]


def _row(one: Found, said: str, of: Sequence[Found] = ()) -> list[Cell | str]:
    counted = sum(held.counted or 0 for held in of) if of else one.counted
    where = f"{one.of}: " if one.of else ""
    return [
        Cell(safe(one.name, 60), one.name),
        Cell(status(one.status), one.status),
        Cell(numbers.count(counted), counted),
        safe(f"{where}{said}", _DETAIL_LIMIT) or "-",
        one.meaning,
    ]
