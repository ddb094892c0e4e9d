"""From a study's directory to its rating plate."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from nameplate.contract.errors import CallerError, EvidenceError
from nameplate.contract.identity import Identity
from nameplate.evidence import layout, manifest
from nameplate.evidence.header import TrialHeader
from nameplate.evidence.reader import headers_of
from nameplate.exchange.kind import required_kind
from nameplate.measure.curve_result import decode_curve
from nameplate.measure.plate import Plate, decode_plate
from nameplate.measure.soak_record import decode_soak_record
from nameplate.measure.speed_result import decode_speed
from nameplate.ratingplate.boundary import plate_of_boundary
from nameplate.ratingplate.curve import plate_of_curve
from nameplate.ratingplate.model import Provenance, RatingPlate
from nameplate.ratingplate.soak import plate_of_soak
from nameplate.ratingplate.speed import plate_of_speed


def read_rating_plate(directory: Path) -> RatingPlate:
    """Return the rating plate of whatever study a directory holds.

    CallerError where it holds none that has one, EvidenceError where its files are damaged or contradict each other.
    """
    headers = headers_of(directory)
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
    match required_kind(directory):
        case "soak":
            record = decode_soak_record((directory / layout.SOAK).read_bytes())
            return plate_of_soak(record, headers[-1].identity if headers else Identity(), provenance)
        case "curve":
            return plate_of_curve(decode_curve((directory / layout.RESULT).read_bytes()), provenance)
        case "speed":
            return plate_of_speed(decode_speed((directory / layout.RESULT).read_bytes()), provenance)
        case "rated":
            raise CallerError(
                f"{directory} has no plate yet: its study has not ended.",
                hint="Go on with it by --resume; the plate is written at its end.",
            )
        case "trial":
            raise CallerError(
                f"{directory} is a trial, and a plate belongs to a study.",
                hint="Give the study's directory: the one above trials/.",
            )
        case "import" | "trials":
            raise CallerError(
                f"{directory} holds no study that has a plate.",
                hint="Give the directory that --out of capacity, rate, speed, curve or soak named.",
            )


def read_plate(directory: Path) -> Plate:
    """Read a study's `plate.json`; EvidenceError where it is damaged."""
    return decode_plate((directory / layout.PLATE).read_bytes())


def _provenance(directory: Path, headers: Sequence[TrialHeader]) -> Provenance:
    return Provenance(
        date=_day(headers[-1].started.wall_ns) if headers else None,
        virtual=any(header.clock == "virtual" for header in headers),
        evidence_sha256=manifest.digest_of(directory),
    )


def _day(wall_ns: int) -> str | None:
    try:
        return datetime.fromtimestamp(wall_ns / 1e9, UTC).date().isoformat()
    except (OverflowError, ValueError, OSError):
        return None
