"""The rating plate of a soak: which load was kept up for how long, and whether it stayed as it began."""

from __future__ import annotations

from nameplate.contract.identity import Identity
from nameplate.measure.soak.result import SoakResult
from nameplate.measure.soak_record import SoakRecord
from nameplate.ratingplate.boundary import subject_of
from nameplate.ratingplate.machine import machine_of, stamps_of
from nameplate.ratingplate.model import Field, Provenance, Rating, RatingPlate
from nameplate.report import numbers
from nameplate.report.safe import safe
from nameplate.report.soak_words import conclusion, sums
from nameplate.report.words import promise
from nameplate.verdict.drift import of_server, worst_of

_STAMPS = {"fail": "FAILED", "inconclusive": "INCONCLUSIVE", "invalid": "INVALID"}


def plate_of_soak(record: SoakRecord, identity: Identity, provenance: Provenance) -> RatingPlate:
    """Return the rating plate of a soak, whose server is known by `identity`."""
    contract = record.contract
    terms = [Field("Promise", promise(contract.slos) if contract.slos else "no SLO, gates alone")]
    terms.append(Field("Load", _load(record)))
    return RatingPlate(
        title="Endurance",
        verb="Kept",
        machine=machine_of(identity, contract.target.model),
        terms=tuple(terms),
        ratings=(_rating(record),),
        stamps=(*stamps_of(identity, provenance), *_drift(record.result)),
        date=provenance.date,
        evidence_sha256=provenance.evidence_sha256,
        tool=f"nameplate {safe(record.tool_version, 40)}".strip(),
    )


def _rating(record: SoakRecord) -> Rating:
    terms, shape, result = record.contract.soak, record.contract.shapes[0], record.result
    subject = subject_of(shape)
    number: float | None = None
    if terms is not None:
        number = terms.concurrency if terms.arrivals is None else terms.arrivals.rate
    unit = "concurrent requests" if terms is None or terms.arrivals is None else "requests/s"
    if result is None:
        return Rating(
            subject=subject,
            number=None,
            value=None,
            unit=unit,
            stamp="NO RESULT",
            reason="Nothing was measured yet.",
        )
    stamp, reason = _standing(record, result)
    lasted = numbers.rough(result.submitted_s)
    planned = numbers.rough(result.planned_s)
    unit = f"{unit} for {lasted}"
    notes = [] if lasted == planned else [Field("Kept up", f"{lasted} of {planned}")]
    notes += [
        Field("Over time", conclusion(result.drift)),
        Field("Requests", sums(result)),
    ]
    notes += [Field("Judged", safe(slo.detail, 200)) for slo in result.verdict.slos]
    notes += [
        Field("Output", numbers.rate(rate.per_s, "tok/s")) for rate in result.rates if "token" in rate.of
    ][:1]
    return Rating(
        subject=subject,
        number=None if stamp else number,
        value=None if stamp or number is None else _written(number),
        unit=unit,
        stamp=stamp,
        reason=reason,
        notes=tuple(notes),
    )


def _written(load: float) -> str:
    """Write a load: clients as a count, a rate with the digits it was asked for with."""
    return numbers.count(load) if isinstance(load, int) else f"{load:g}"


def _standing(record: SoakRecord, result: SoakResult) -> tuple[str | None, str]:
    """Return the word that takes the number's place, and why; None where the load was kept to the end."""
    if record.exit_code is None:
        return "RUNNING", "The soak is not over."
    verdict = result.verdict
    if verdict.status != "pass":
        return _STAMPS.get(verdict.status, verdict.status.upper()), "; ".join(
            safe(reason, 200) for reason in verdict.reasons
        )
    if record.left_ns:
        return "CUT SHORT", f"{numbers.rough(record.left_ns / 1e9)} of its duration are left."
    return None, ""


def _drift(result: SoakResult | None) -> tuple[str, ...]:
    """Return the stamp of a load that was kept by a server which did not stay as it began."""
    if result is None:
        return ()
    found = worst_of(of_server(result.drift))
    return () if found in ("steady", "undecided") else (found.upper(),)


def _load(record: SoakRecord) -> str:
    terms = record.contract.soak
    loop = "closed loop" if terms is None or terms.arrivals is None else f"open loop, {terms.arrivals}"
    cache = record.contract.cache
    warm = f"prompts that share a warm prefix of {cache.shared_prefix_tokens:,} tokens"
    return f"{loop}; {'cold prompts' if cache.cold else warm}"
