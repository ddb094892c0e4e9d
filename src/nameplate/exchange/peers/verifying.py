"""An import verified: its files are those that were read, and reading them again gives what was published."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from nameplate.contract.errors import EvidenceError, NameplateError
from nameplate.evidence import layout
from nameplate.exchange.opening import digest, open_result
from nameplate.exchange.peers.importing import import_runs
from nameplate.exchange.peers.run import Check, Imported, decode

_UNVERIFIED = 3


class Verified(Struct, frozen=True):
    """Hold the checks of an imported directory."""

    directory: str
    kind: str
    checks: tuple[Check, ...]

    @property
    def exit_code(self) -> int:
        """Return 4 where something contradicts, else 3 where something was not kept, else 0."""
        statuses = {check.status for check in self.checks}
        if "contradicted" in statuses:
            return EvidenceError.exit_code
        return _UNVERIFIED if "unverified" in statuses else 0


def verify_import(directory: Path, *, again: bool = True) -> Verified:
    """Compare the kept files with their digests, and what is published with what they give `again`."""
    document = decode((directory / layout.RESULT).read_bytes())
    checks = [_kept(directory, "original", document.file, document.sha256)]
    if document.summary is not None:
        checks.append(_kept(directory, "summary", document.summary, document.summary_sha256 or ""))
    if not again:
        return Verified(str(directory), "import", tuple(checks))
    if all(check.status == "holds" for check in checks):
        checks.append(_published(directory, document))
    else:
        checks.append(
            Check("published numbers", "unverified", "what they were computed from is not here as it was")
        )
    return Verified(str(directory), "import", tuple(checks))


def _kept(directory: Path, name: str, file: str, sha256: str) -> Check:
    path = directory / file
    if path.parent != directory or not path.is_file() or path.is_symlink():
        return Check(name, "unverified", f"{file} was not kept")
    if digest(path) != sha256:
        return Check(name, "contradicted", f"{file} is not what was imported: its SHA-256 is another")
    return Check(name, "holds", f"{file} is what was imported")


def _published(directory: Path, document: Imported) -> Check:
    judged = next((run.judged for run in document.runs if run.judged is not None), None)
    slos = tuple(found.slo for found in judged.verdict.slos) if judged is not None else ()
    beside = directory / document.summary if document.summary is not None else None
    try:
        again = import_runs(open_result(directory / document.file), slos, beside)
    except NameplateError as error:
        return Check("published numbers", "contradicted", f"the file cannot be imported again: {error.what}")
    wrong = [name for name in ("format", "bytes") if getattr(again, name) != getattr(document, name)]
    if len(again.runs) != len(document.runs):
        wrong.append("runs")
    for at, (one, other) in enumerate(zip(document.runs, again.runs, strict=False)):
        wrong += [
            f"runs[{at}].{name}"
            for name in one.__struct_fields__
            if getattr(one, name) != getattr(other, name)
        ]
    if wrong:
        return Check(
            "published numbers", "contradicted", f"recomputed, these are other: {', '.join(wrong[:8])}"
        )
    numbers = sum(len(run.measures) + len(run.recomputed) for run in document.runs)
    return Check("published numbers", "holds", f"{numbers:,} measures, all checks and the verdict recompute")
