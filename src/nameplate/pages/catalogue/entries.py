"""From a run to its entry: what it is, how it ended, its machine, its terms and its numbers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime

from msgspec import structs

from nameplate import __version__
from nameplate.contract.identity import Identity
from nameplate.evidence import manifest
from nameplate.measure.soak_record import SoakRecord
from nameplate.pages.catalogue.entry import Entry, Kind, Rating, Time
from nameplate.pages.catalogue.machine import Machine, machine
from nameplate.pages.catalogue.ratings import ratings_of
from nameplate.pages.catalogue.terms import terms
from nameplate.pages.subject import (
    CurveSubject,
    ImportedSubject,
    RatedSubject,
    SoakSubject,
    SpeedSubject,
    StudySubject,
    Subject,
    TrialSubject,
)
from nameplate.report import numbers
from nameplate.report.safe import safe
from nameplate.report.words import answer

CONTRADICTED = "contradicted"
_ANSWER_LIMIT = 320
_NAME_LIMIT = 120


def entry_of(
    subject: Subject,
    name: str,
    slug: str,
    fingerprint: str,
    paths: tuple[str, ...],
    broken: Sequence[str] = (),
) -> Entry:
    """Return a run's entry, without a page; with `broken` seals, which say what was changed, it has no number."""
    known, ratings = _machine(subject), ratings_of(subject)
    began = _began(subject)
    if broken:
        ratings = tuple(map(_void, ratings))
    return Entry(
        slug=slug,
        name=safe(name, _NAME_LIMIT),
        kind=_kind(subject),
        status=CONTRADICTED if broken else _status(subject),
        answer=safe(
            f"Not as it was sealed: {broken[0]}" if broken else _answer(subject, ratings), _ANSWER_LIMIT
        ),
        time=_time(subject),
        began=None if began is None else f"{began:%Y-%m-%dT%H:%M:%SZ}",
        hardware=known.hardware,
        gpu=known.gpu,
        gpus=known.gpus,
        engine=known.engine,
        engine_version=known.engine_version,
        model=known.model,
        quantisation=known.quantisation,
        context_limit_tokens=known.context_limit_tokens,
        terms=_terms(subject),
        ratings=ratings,
        digest=manifest.digest_of(subject.directory),
        fingerprint=fingerprint,
        paths=paths,
        tool_version=__version__,
    )


def slug_of(name: str, fingerprint: str) -> str:
    """Return a name for a folder and an address: letters that are safe everywhere, and digits of the documents."""
    plain = re.sub(r"[^a-z0-9]+", "-", name.lower())[:48].strip("-")
    return f"{plain or 'run'}-{fingerprint[:12]}"


def _void(rating: Rating) -> Rating:
    """Return what is left of a number whose evidence was changed: what it was of."""
    return structs.replace(
        rating, value=None, status=CONTRADICTED, at_least=False, operate_at=None, certificate=None
    )


def _kind(subject: Subject) -> Kind:
    if isinstance(subject, RatedSubject):
        return "capacity" if subject.plate.contract.rate is None else "rate"
    if isinstance(subject, SpeedSubject):
        return "speed"
    if isinstance(subject, CurveSubject):
        return "curve"
    if isinstance(subject, SoakSubject):
        return "soak"
    return "trial" if isinstance(subject, TrialSubject) else "import"


def _status(subject: Subject) -> str:
    if isinstance(subject, RatedSubject):
        statuses = [str(shape.status) for shape in subject.plate.shapes]
        worst = next((status for status in statuses if status != "confirmed"), "confirmed")
        return worst if subject.finished else "not ended"
    if isinstance(subject, SpeedSubject | CurveSubject):
        return "finished" if subject.result.finished else "not ended"
    if isinstance(subject, SoakSubject):
        result = subject.record.result
        ended = result is not None and subject.record.exit_code is not None
        return str(result.verdict.status) if ended and result is not None else "not ended"
    if isinstance(subject, TrialSubject):
        return "not ended" if subject.result is None else str(subject.result.verdict.status)
    runs = subject.document.runs
    return CONTRADICTED if any(run.contradictions for run in runs) else "imported"


def _time(subject: Subject) -> Time | None:
    """Say which clock the evidence is of; null where no trial is there to tell."""
    if isinstance(subject, TrialSubject):
        return "simulated" if subject.header.clock == "virtual" else "live"
    if isinstance(subject, StudySubject):
        told = bool(subject.trials)
    elif isinstance(subject, SoakSubject):
        told = bool(subject.identity.facts) or subject.simulated
    else:
        return None
    if not told:
        return None
    return "simulated" if subject.simulated else "live"


def _began(subject: Subject) -> datetime | None:
    if isinstance(subject, SoakSubject):
        return _first_of(subject.record)
    if isinstance(subject, ImportedSubject):
        return next((when for run in subject.document.runs if (when := _moment(run.started_at))), None)
    return subject.began


def _first_of(record: SoakRecord) -> datetime | None:
    if record.result is None:
        return None
    return datetime.fromtimestamp(record.result.began_wall_ns / 1e9, UTC)


def _moment(text: str | None) -> datetime | None:
    if not text:
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)


def _machine(subject: Subject) -> Machine:
    if isinstance(subject, RatedSubject):
        return machine(Identity(subject.plate.identity.facts), subject.plate.contract.target.model)
    if isinstance(subject, SpeedSubject):
        return machine(subject.result.identity, subject.result.model, subject.result.hosts)
    if isinstance(subject, CurveSubject):
        return machine(subject.result.identity, subject.result.contract.target.model)
    if isinstance(subject, SoakSubject):
        return machine(subject.identity, subject.record.contract.target.model)
    if isinstance(subject, TrialSubject):
        return machine(subject.identity, subject.contract.target.model)
    first = subject.document.runs[0] if subject.document.runs else None
    told = machine(Identity(), (first.model or "") if first else "")
    if first is None or not first.engine:
        return told
    return Machine(
        hardware=None,
        gpu=None,
        gpus=None,
        engine=safe(first.engine, 80),
        engine_version=None,
        model=told.model,
        quantisation=None,
        context_limit_tokens=None,
    )


def _terms(subject: Subject) -> tuple[tuple[str, str], ...]:
    if isinstance(subject, ImportedSubject):
        document = subject.document
        return (
            ("measured by", safe(document.tool, 80)),
            ("format", safe(document.format, 80)),
            ("runs", str(len(document.runs))),
        )
    if isinstance(subject, RatedSubject):
        return terms(subject.plate.contract)
    if isinstance(subject, TrialSubject):
        return terms(subject.contract)
    if isinstance(subject, SoakSubject):
        return terms(subject.record.contract)
    if subject.result.contract is not None:
        return terms(subject.result.contract)
    origin = subject.result.origin if isinstance(subject, SpeedSubject) else None
    return () if origin is None else (("measured by", safe(f"{origin.tool} {origin.version}", 80)),)


def _answer(subject: Subject, ratings: tuple[Rating, ...]) -> str:
    """Say in a sentence what the run came to, as its own page does first."""
    if isinstance(subject, RatedSubject):
        return " ".join(answer(shape, subject.plate.contract) for shape in subject.plate.shapes)
    if isinstance(subject, CurveSubject):
        return " ".join(subject.result.sentences) or subject.result.reason
    if isinstance(subject, TrialSubject):
        return "" if subject.result is None else "; ".join(subject.result.verdict.reasons)
    if isinstance(subject, SoakSubject) and subject.record.result is not None:
        return "; ".join(subject.record.result.verdict.reasons)
    best = {rating.measure: rating for rating in ratings if rating.measure.startswith("best_")}
    said = [
        f"{words} {numbers.rate(best[measure].value, 'tok/s')} ({best[measure].detail})"
        for measure, words in (
            ("best_decode", "one user"),
            ("best_output", "all together"),
            ("best_prefill", "prefill"),
        )
        if measure in best
    ]
    return f"At best {', '.join(said)}." if said else ""
