"""From a study's directory to its rating plate."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

import msgspec
from msgspec import Struct

from nameplate.contract.errors import CallerError, EvidenceError
from nameplate.contract.identity import Identity
from nameplate.evidence import layout, manifest
from nameplate.evidence.header import Clock, ClockPair
from nameplate.measure.curve_result import decode_curve, is_curve
from nameplate.measure.plate import Plate, decode_plate
from nameplate.measure.soak_record import decode_soak_record
from nameplate.measure.speed_result import SPEED_SCHEMA, decode_speed
from nameplate.ratingplate.boundary import plate_of_boundary
from nameplate.ratingplate.curve import plate_of_curve
from nameplate.ratingplate.model import Provenance, RatingPlate
from nameplate.ratingplate.soak import plate_of_soak
from nameplate.ratingplate.speed import plate_of_speed


def read_rating_plate(directory: Path) -> RatingPlate:
    """Return the rating plate of whatever study a directory holds.

    CallerError where it holds none that has one, EvidenceError where its files are damaged or contradict each other.
    """
    if (directory / layout.HEADER).exists():
        raise CallerError(
            f"{directory} is a trial, and a plate belongs to a study.",
            hint="Give the study's directory: the one above trials/.",
        )
    headers = _headers(directory)
    provenance = _provenance(directory, headers)
    if (directory / layout.PLATE).exists():
        plate = read_plate(directory)
        told, found = plate.study_manifest_sha256, provenance.evidence_sha256
        if told is not None and found is not None and told != found:
            raise EvidenceError(
                f"{directory / layout.PLATE} names another manifest than the one beside it.",
                why="The plate belongs to other evidence, or the evidence was changed after it was sealed.",
                hint=f"Run nameplate verify {directory}.",
            )
        return plate_of_boundary(plate, provenance)
    if (directory / layout.SOAK).exists():
        record = decode_soak_record((directory / layout.SOAK).read_bytes())
        return plate_of_soak(record, headers[-1].identity if headers else Identity(), provenance)
    if (directory / layout.STUDY).exists():
        raise CallerError(
            f"{directory} has no plate yet: its study has not ended.",
            hint="Go on with it by --resume; the plate is written at its end.",
        )
    data = (directory / layout.RESULT).read_bytes() if (directory / layout.RESULT).exists() else b""
    if is_curve(data):
        return plate_of_curve(decode_curve(data), provenance)
    if _schema(data).partition("/")[0] == SPEED_SCHEMA.partition("/")[0]:
        return plate_of_speed(decode_speed(data), provenance)
    raise CallerError(
        f"{directory} holds no study that has a plate.",
        hint="Give the directory that --out of capacity, rate, speed, curve or soak named.",
    )


def read_plate(directory: Path) -> Plate:
    """Read a study's `plate.json`; EvidenceError where it is damaged."""
    return decode_plate((directory / layout.PLATE).read_bytes())


class _Header(Struct):
    """Hold what a plate needs of a trial's header."""

    clock: Clock
    started: ClockPair
    identity: Identity


class _Document(Struct):
    schema: str = ""


def _schema(data: bytes) -> str:
    try:
        return msgspec.json.decode(data, type=_Document).schema
    except msgspec.MsgspecError:
        return ""


def _headers(directory: Path) -> list[_Header]:
    """Read the headers of a study's trials, the earliest first."""
    found = []
    for path in (directory / layout.TRIALS).glob(f"*/{layout.HEADER}"):
        try:
            found.append(msgspec.json.decode(path.read_bytes(), type=_Header))
        except (OSError, msgspec.MsgspecError) as error:
            raise EvidenceError(f"{path} cannot be read: {error}.") from error
    return sorted(found, key=lambda header: header.started.wall_ns)


def _provenance(directory: Path, headers: Iterable[_Header]) -> Provenance:
    held = list(headers)
    sealed = directory / layout.MANIFEST
    return Provenance(
        date=_day(held[-1].started.wall_ns) if held else None,
        virtual=any(header.clock == "virtual" for header in held),
        evidence_sha256=manifest.digest_file(sealed).sha256 if sealed.exists() else None,
    )


def _day(wall_ns: int) -> str | None:
    try:
        return datetime.fromtimestamp(wall_ns / 1e9, UTC).date().isoformat()
    except (OverflowError, ValueError, OSError):
        return None
