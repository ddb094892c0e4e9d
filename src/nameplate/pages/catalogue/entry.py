"""The catalogue: `catalogue.json` of a site, and `entry.json` beside each run's page.

A JSON object with

`schema`        `nameplate.catalogue/1`
`title`         what the site is called
`entries`       one a run, newest first: see `Entry`
`unreadable`    folders that look like runs and could not be read: `path`, and `what` is the reason
`tool_version`  the program that wrote this

An entry is one run, found at one or several `paths` with the same documents (`fingerprint`, a SHA-256 over them).
`digest` is that of its manifest, null while it is not sealed. `time` is `live` or `simulated`. `terms` are the words
of its contract. A number in `ratings` belongs to one measure, `of` one shape, context or cell, under one `promise`,
`under` everything else that was fixed for it: only numbers that agree in all four, and in `time`, may be ranked
together. Rates are per second. Null is absent: status beats number.

Text that came from servers or people is made harmless and bounded before it is written here.

Version history: 1 - first.
"""

from __future__ import annotations

from typing import Literal

import msgspec
from msgspec import Struct

from nameplate.contract.errors import EvidenceError
from nameplate.measure.study_record import check_schema

CATALOGUE_SCHEMA = "nameplate.catalogue/1"

Kind = Literal["capacity", "rate", "curve", "speed", "soak", "trial", "import"]
Time = Literal["live", "simulated"]
Measure = Literal[
    "capacity",
    "rate",
    "knee",
    "best_output",
    "best_decode",
    "best_prefill",
    "soak_output",
    "output",
    "decode",
    "prefill",
]


class Certificate(Struct, frozen=True, kw_only=True):
    """Say what the sample of a rated level carries: with `confidence` at most a share of `bound` is over a promise.

    Of several promises the weakest: the largest bound, and `holds` only where every one does.
    """

    bound: float | None
    confidence: float
    holds: bool


class Rating(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Hold one number of a run with what it belongs to; the module's text says what may be ranked together.

    `at_least`: the limit lies above, or was not found. `operate_at` is policy and never stands for `value`. `detail`
    are words that go with the number: the cell of a best one, the drift of a soak.
    """

    measure: Measure
    of: str
    promise: str = ""
    under: str = ""
    value: float | None = None
    unit: str = ""
    status: str = ""
    at_least: bool = False
    operate_at: float | None = None
    certificate: Certificate | None = None
    detail: str = ""


class Entry(Struct, frozen=True, kw_only=True):
    """Hold one run as the catalogue shows it; `page` is relative to the site, null where there is none."""

    slug: str
    name: str
    kind: Kind
    status: str
    answer: str
    time: Time | None
    began: str | None
    hardware: str | None
    gpu: str | None
    gpus: int | None
    engine: str | None
    engine_version: str | None
    model: str | None
    quantisation: str | None
    context_limit_tokens: int | None
    terms: tuple[tuple[str, str], ...]
    ratings: tuple[Rating, ...]
    digest: str | None
    fingerprint: str
    paths: tuple[str, ...]
    page: str | None = None
    page_missing: str | None = None
    tool_version: str


class Unreadable(Struct, frozen=True):
    """Hold a folder that could not be read, and why."""

    path: str
    what: str


class Catalogue(Struct, frozen=True, kw_only=True):
    """Hold a whole site; the module's text is the format."""

    schema: str = CATALOGUE_SCHEMA
    title: str
    entries: tuple[Entry, ...]
    unreadable: tuple[Unreadable, ...]
    tool_version: str


def encode_catalogue(catalogue: Catalogue) -> bytes:
    """Encode as readable JSON with a final line feed."""
    return msgspec.json.format(msgspec.json.encode(catalogue)) + b"\n"


def decode_catalogue(data: bytes) -> Catalogue:
    """Decode `catalogue.json`; EvidenceError where it is damaged or of a schema that this program does not know."""
    check_schema(data, CATALOGUE_SCHEMA, "catalogue.json")
    try:
        return msgspec.json.decode(data, type=Catalogue)
    except msgspec.MsgspecError as error:
        raise EvidenceError(f"catalogue.json cannot be read: {error}.") from error


def encode_entry(entry: Entry) -> bytes:
    """Encode an entry as readable JSON with a final line feed."""
    return msgspec.json.format(msgspec.json.encode(entry)) + b"\n"


def decode_entry(data: bytes) -> Entry | None:
    """Decode an entry; None where it is none that this program wrote."""
    try:
        return msgspec.json.decode(data, type=Entry)
    except msgspec.MsgspecError:
        return None
