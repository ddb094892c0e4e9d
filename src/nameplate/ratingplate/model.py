"""What stands on a rating plate, whatever it is drawn with: every drawing knows these values and nothing else."""

from __future__ import annotations

from msgspec import Struct

NOT_STATED = "not stated"
RATINGPLATE_SCHEMA = "nameplate.ratingplate/1"


class Field(Struct, frozen=True):
    """Hold one fact with its name; a text of None is a fact that nobody stated."""

    name: str
    text: str | None

    @property
    def told(self) -> str:
        return NOT_STATED if self.text is None else self.text


class Rating(Struct, frozen=True, kw_only=True):
    """Hold one rated number: of what (`subject`), its `number`, how that is written (`value`), and its `unit`.

    Status beats number: where `stamp` has a word there is neither number nor value, and `reason` says why; `notes`
    may then tell what was seen all the same. `contract` is the promise or method that belongs to this number alone.
    """

    subject: str
    number: float | None
    value: str | None
    unit: str
    contract: str = ""
    stamp: str | None = None
    reason: str = ""
    notes: tuple[Field, ...] = ()


class RatingPlate(Struct, frozen=True, kw_only=True):
    """Hold a whole plate: what was rated, by which numbers, under which contract, when, and on what evidence.

    `machine` says what was rated. `terms` are what all ratings have in common: promise, kind of load, cache.
    `stamps` are words about the whole plate (`SIMULATED`). `date` is that of the evidence, as YYYY-MM-DD in UTC, and
    `evidence_sha256` the digest of the study's manifest. `tool` is the program that measured. `verb` says what was done
    with the numbers: a promise makes them rated.
    """

    schema: str = RATINGPLATE_SCHEMA
    title: str
    verb: str = "Rated"
    machine: tuple[Field, ...]
    terms: tuple[Field, ...]
    ratings: tuple[Rating, ...]
    stamps: tuple[str, ...] = ()
    date: str | None = None
    evidence_sha256: str | None = None
    tool: str = ""


class Provenance(Struct, frozen=True, kw_only=True):
    """Hold when and on which clock a study's evidence was made, and its manifest's digest; None where unknown."""

    date: str | None = None
    virtual: bool = False
    evidence_sha256: str | None = None
