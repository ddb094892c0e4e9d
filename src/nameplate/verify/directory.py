"""The one way in: a directory, whatever it is, to its report."""

from __future__ import annotations

from pathlib import Path

import msgspec
from msgspec import Struct

from nameplate.contract.errors import CallerError, NameplateError
from nameplate.evidence import layout
from nameplate.verify.check import Report
from nameplate.verify.files import document
from nameplate.verify.segment import verify_segment
from nameplate.verify.soak import verify_soak
from nameplate.verify.study import verify_study
from nameplate.verify.trial import verify_trial


def verify_directory(path: Path) -> Report:
    """Verify a trial's or a study's directory; CallerError where it is neither."""
    if (path / layout.HEADER).exists() or (path / layout.HEADER).is_symlink():
        return verify_segment(path).report if _is_segment(path) else verify_trial(path).report
    if _is_soak(path):
        return verify_soak(path)
    if any((path / name).exists() for name in (layout.CONTRACT, layout.STUDY, layout.TRIALS)):
        return verify_study(path)
    raise CallerError(
        f"{path} is neither a trial nor a study: it has no {layout.HEADER} and no {layout.CONTRACT}.",
        hint="Give the directory that --out named, or one below its trials/.",
    )


class _Plan(Struct):
    soak: object = None


class _Header(Struct):
    plan: _Plan


def _is_segment(path: Path) -> bool:
    """Tell whether a trial is a segment of a soak; what cannot be read is the business of a trial's checks."""
    try:
        return msgspec.json.decode(document(path / layout.HEADER), type=_Header).plan.soak is not None
    except (NameplateError, OSError, ValueError, RecursionError, msgspec.MsgspecError):
        return False


def _is_soak(path: Path) -> bool:
    if (path / layout.SOAK).exists():
        return True
    try:
        return msgspec.json.decode(document(path / layout.CONTRACT), type=_Plan).soak is not None
    except (NameplateError, OSError, ValueError, RecursionError, msgspec.MsgspecError):
        return False
