"""The one way in: a directory, whatever it is, to its report."""

from __future__ import annotations

from pathlib import Path

from nameplate.contract.errors import CallerError
from nameplate.evidence import layout
from nameplate.verify.check import Report
from nameplate.verify.study import verify_study
from nameplate.verify.trial import verify_trial


def verify(path: Path) -> Report:
    """Verify a trial's or a study's directory; CallerError where it is neither."""
    if (path / layout.HEADER).exists() or (path / layout.HEADER).is_symlink():
        return verify_trial(path).report
    if any((path / name).exists() for name in (layout.CONTRACT, layout.STUDY, layout.TRIALS)):
        return verify_study(path)
    raise CallerError(
        f"{path} is neither a trial nor a study: it has no {layout.HEADER} and no {layout.CONTRACT}.",
        hint="Give the directory that --out named, or one below its trials/.",
    )
