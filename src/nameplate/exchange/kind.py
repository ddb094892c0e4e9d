"""What kind of run a directory holds, by its files alone: the one answer for all who read directories."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal

from nameplate.contract.errors import CallerError, EvidenceError, NameplateError
from nameplate.evidence import layout
from nameplate.exchange.peers.run import SCHEMA as IMPORT_SCHEMA
from nameplate.measure.curve_result import CURVE_SCHEMA
from nameplate.measure.speed_result import SPEED_SCHEMA

# `rated` is a capacity or rate study, ended or not; `trials` has trials that no study decided by.
RunKind = Literal["trial", "soak", "rated", "import", "curve", "speed", "trials"]

_FAMILIES: dict[str, RunKind] = {
    IMPORT_SCHEMA.partition("/")[0]: "import",
    CURVE_SCHEMA.partition("/")[0]: "curve",
    SPEED_SCHEMA.partition("/")[0]: "speed",
}
# Results are written with their schema first, so one that is cut still says what it is, and its own reader says that
# it is cut. Of a file that is none of ours, however large, no more than this is read.
_HEAD_BYTES = 400
_NAMED = re.compile(rb'\s*\{\s*"schema"\s*:\s*"([^"]{1,80})"')
_HINT = "Give the directory of a study, a trial or an import, as --out named it."


def run_kind(directory: Path) -> RunKind | None:
    """Tell what kind of run a directory holds; None where it holds none of ours."""
    if (directory / layout.HEADER).is_file():
        return "trial"
    if (directory / layout.SOAK).is_file():
        return "soak"
    if (directory / layout.STUDY).is_file():
        return "rated"
    if (directory / layout.RESULT).is_file():
        return _FAMILIES.get(_schema(directory / layout.RESULT).partition("/")[0])
    return "trials" if layout.trials(directory) else None


def required_kind(directory: Path) -> RunKind:
    """Tell what kind of run a directory holds; CallerError where it is none, EvidenceError where it cannot be read."""
    found = run_kind(directory)
    if found is None:
        raise _no_run(directory)
    return found


def only_trial(directory: Path) -> Path:
    """Return the one trial of a directory that is not a study; CallerError where there are several."""
    first, *more = layout.trials(directory)
    if more:
        raise CallerError(
            f"{directory} holds {1 + len(more):,} trials that no study decided by.",
            hint=f"Give one of them, or several: {first} ...",
        )
    return first


def _no_run(directory: Path) -> NameplateError:
    if not directory.is_dir():
        return CallerError(f"{directory} is no directory.", hint="Give the directory that --out named.")
    path = directory / layout.RESULT
    if path.is_file():
        schema = _schema(path)
        said = (
            f"it has the schema {schema!r}, which is not known here"
            if schema
            else "it does not begin with the schema that it is of"
        )
        return EvidenceError(f"{path} cannot be read: {said}.", hint=_HINT)
    if (directory / layout.CONTRACT).is_file():
        return CallerError(
            f"{directory} is a study that ended before its first trial: it has a contract and no {layout.RESULT}.",
            hint="Run it again.",
        )
    return CallerError(
        f"{directory} holds no run: no {layout.HEADER}, {layout.STUDY}, {layout.SOAK} or {layout.RESULT}.",
        hint=_HINT,
    )


def _schema(path: Path) -> str:
    """Return the schema that a result begins with; nothing where it does not."""
    try:
        with path.open("rb") as stream:
            named = _NAMED.match(stream.read(_HEAD_BYTES))
    except OSError as error:
        raise EvidenceError(f"{path} cannot be read: {error.strerror}.") from error
    return named[1].decode("utf-8", "replace") if named else ""
