"""What the catalogue's script works on: the entries as they are shown, and the numbers by which they can be ranked."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from msgspec import Struct

from nameplate.pages.catalogue.entry import Catalogue, Entry, Measure, Rating, Time
from nameplate.pages.words import tone
from nameplate.report import numbers
from nameplate.report.certainty import percent

# In the order in which they are offered, with what people call them.
MEASURES: Mapping[Measure, str] = {
    "capacity": "Capacity",
    "rate": "Sustained rate",
    "soak_output": "Output kept over a soak",
    "knee": "Knee of the curve",
    "best_decode": "Decode for one user, best",
    "best_output": "Output of all, best",
    "best_prefill": "Prefill, best",
    "decode": "Decode for one user",
    "output": "Output of all",
    "prefill": "Prefill",
}


class Choice(Struct, frozen=True, omit_defaults=True):
    """Hold all that numbers must agree in to be ranked together; `id` is the same in every catalogue."""

    id: str
    measure: Measure
    of: str
    promise: str = ""
    under: str = ""
    time: Time | None = None


class Number(Struct, frozen=True, omit_defaults=True):
    """Hold a number as it is shown: `choice` counts the catalogue's choices, `note` are words that go with it."""

    choice: int
    value: float | None = None
    said: str = ""
    status: str = ""
    tone: str = "none"
    note: str = ""


class Shown(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Hold one entry as the script shows it."""

    slug: str
    name: str
    kind: str
    status: str
    tone: str
    answer: str = ""
    time: str | None = None
    began: str | None = None
    gpu: str | None = None
    gpus: int | None = None
    hardware: str | None = None
    engine: str | None = None
    version: str | None = None
    model: str | None = None
    quantisation: str | None = None
    context: int | None = None
    terms: tuple[tuple[str, str], ...] = ()
    numbers: tuple[Number, ...] = ()
    digest: str | None = None
    paths: tuple[str, ...] = ()
    page: str | None = None


class Data(Struct, frozen=True):
    """Hold everything that the script needs."""

    measures: Mapping[Measure, str]
    choices: tuple[Choice, ...]
    runs: tuple[Shown, ...]


def data_of(catalogue: Catalogue) -> Data:
    """Return the entries in the catalogue's order, and every choice that at least one of them has."""
    choices: dict[Choice, int] = {}
    runs = tuple(_shown(entry, choices) for entry in catalogue.entries)
    return Data(MEASURES, tuple(choices), runs)


def _shown(entry: Entry, choices: dict[Choice, int]) -> Shown:
    shown = []
    for rating in entry.ratings:
        choice = choice_of(rating, entry.time)
        position = choices.setdefault(choice, len(choices))
        shown.append(
            Number(position, rating.value, said(rating), rating.status, tone(rating.status), note_of(rating))
        )
    return Shown(
        slug=entry.slug,
        name=entry.name,
        kind=entry.kind,
        status=entry.status,
        tone=tone_of(entry.status),
        answer=entry.answer,
        time=entry.time,
        began=entry.began,
        gpu=entry.gpu,
        gpus=entry.gpus,
        hardware=entry.hardware,
        engine=entry.engine,
        version=entry.engine_version,
        model=entry.model,
        quantisation=entry.quantisation,
        context=entry.context_limit_tokens,
        terms=entry.terms,
        numbers=tuple(shown),
        digest=entry.digest,
        paths=entry.paths,
        page=entry.page,
    )


def tone_of(status: str) -> str:
    """Return the tone of a run's status."""
    return tone("unfinished" if status == "not ended" else status)


def choice_of(rating: Rating, time: Time | None) -> Choice:
    """Return what a number may be ranked by."""
    words = (rating.measure, rating.of, rating.promise, rating.under, time or "")
    digest = hashlib.sha256("\0".join(words).encode("utf-8", "replace")).hexdigest()[:10]
    return Choice(digest, rating.measure, rating.of, rating.promise, rating.under, time)


def headline(entry: Entry) -> Rating | None:
    """Return the number that stands for a run where no other is asked for: its first one that has a value."""
    return next(
        (one for one in entry.ratings if one.value is not None), entry.ratings[0] if entry.ratings else None
    )


def said(rating: Rating) -> str:
    """Write a number with its unit; empty where there is none."""
    if rating.value is None:
        return ""
    whole = rating.measure == "capacity" or rating.unit == "clients"
    number = f"{rating.value:,.0f}" if whole else _rate(rating)
    return f"{'at least ' if rating.at_least else ''}{number} {rating.unit}".rstrip()


def _rate(rating: Rating) -> str:
    # A rate of the grid, or of a curve, is what was asked for: it has no digits that were measured.
    return f"{rating.value:g}" if rating.unit == "req/s" else numbers.rate(rating.value)


def note_of(rating: Rating) -> str:
    """Say what goes with a number: the policy, what the sample carries, the cell of a best one."""
    told = [rating.detail] if rating.detail else []
    if rating.operate_at is not None:
        told.append(f"operate at {rating.operate_at:g}")
    held = rating.certificate
    if held is not None:
        bound = "" if held.bound is None else f", at most {numbers.share(held.bound)} over"
        told.append(f"{'certified' if held.holds else 'not certified'} at {percent(held.confidence)}{bound}")
    return "; ".join(told)
