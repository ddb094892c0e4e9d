"""What is compared must be what was sealed: a number that was changed afterwards says nothing of a server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from nameplate.compare.side import Side
from nameplate.contract.errors import EvidenceError
from nameplate.exchange.kind import run_kind
from nameplate.exchange.peers.verifying import verify_import
from nameplate.verify.seals import verify_seals

# So much of what does not hold is named; `verify` says all of it.
_NAMED = 3


def require_as_sealed(*sides: Side) -> None:
    """Hold the directories of all sides against their seals; EvidenceError names what does not hold.

    What is not sealed, as a study that was broken off or a file of another tool, contradicts nothing.
    """
    broken: dict[str, list[str]] = {}
    for side in sides:
        for source in side.sources:
            if source.path not in broken and (found := list(_failures(Path(source.path)))):
                broken[source.path] = found
    if not broken:
        return
    paths = list(broken)
    what = f"{paths[0]} is not what was sealed, and cannot be compared."
    if len(paths) > 1:
        what = f"{paths[0]} and {len(paths) - 1} more are not what was sealed, and cannot be compared."
    raise EvidenceError(
        what,
        why="; ".join(f"{path}: {_listed(found)}" for path, found in broken.items()) + ".",
        hint=f"All checks: nameplate verify {paths[0]}. Compare the evidence as it was sealed.",
    )


def _failures(path: Path) -> Iterator[str]:
    if not path.is_dir():
        return
    if run_kind(path) == "import":
        for kept in verify_import(path, again=False).checks:
            if kept.status == "contradicted":
                yield kept.detail
        return
    whole = verify_seals(path)
    for report in (whole, *whole.trials):
        name = "" if report is whole else f"{Path(report.directory).name}: "
        for check in report.checks:
            if check.status == "fail":
                yield f"{name}{check.detail} ({check.name.replace('_', ' ')})"


def _listed(found: list[str]) -> str:
    more = len(found) - _NAMED
    return ", ".join(found[:_NAMED]) + (f", and {more} more" if more > 0 else "")
