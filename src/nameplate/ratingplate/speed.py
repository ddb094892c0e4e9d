"""The rating plate of a speed study: how fast prompts are read, what one user reads, and the most in all."""

from __future__ import annotations

from collections.abc import Sequence

from nameplate.contract.matrix import KI
from nameplate.measure.speed_result import CellRow, SpeedResult
from nameplate.ratingplate.machine import machine_of, stamps_of
from nameplate.ratingplate.model import Field, Provenance, Rating, RatingPlate
from nameplate.report import numbers
from nameplate.report.cells import MEANING, WORDS, label_of, middle, per_user, tally, values_of
from nameplate.report.safe import safe

# The context at which single-user speed is stated, where it was measured: long enough to be work for any server.
USUAL_CONTEXT = 8 * KI
_UNIT = "tok/s"


def plate_of_speed(result: SpeedResult, provenance: Provenance) -> RatingPlate:
    """Return the rating plate of a speed study."""
    ratings = [_prefill(result), _one_user(result), _most(result)]
    origin = result.origin
    stamps = ["IMPORTED"] if origin is not None else [] if result.finished else ["UNFINISHED"]
    return RatingPlate(
        title="Measured speed",
        verb="Measured",
        machine=machine_of(result.identity, result.model, result.hosts),
        terms=(Field("Method", _how(result)),),
        ratings=tuple(rating for rating in ratings if rating is not None),
        stamps=(*stamps_of(result.identity, provenance), *stamps),
        date=provenance.date,
        evidence_sha256=provenance.evidence_sha256,
        # Who imported a result has measured none of it.
        tool=safe(result.tool if origin is None else f"{origin.tool} {origin.version}", 80),
    )


def _prefill(result: SpeedResult) -> Rating | None:
    row = _usual(result.rows_of("prefill"))
    if row is None:
        return None
    values = values_of(row)
    notes = () if values is None else (Field("TTFT p50", middle(values.ttft, brief=False)),)
    counted = values.ttft.n if values is not None and values.ttft is not None else 0
    method = "one cold prompt at a time" + (f", n {counted:,}" if counted else "")
    return _rating(
        row, f"Prefill, {label_of(row)} context", values.tokens_per_s if values else None, method, notes
    )


def _one_user(result: SpeedResult) -> Rating | None:
    """Return what each user reads at the lowest concurrency: one user, where that was planned."""
    rows = result.rows_of("decode")
    fewest = min((row.concurrency for row in rows), default=0)
    row = _usual([row for row in rows if row.concurrency == fewest])
    if row is None:
        return None
    values = values_of(row)
    rate = None
    if values is not None:
        rate = per_user(values)
        # One user reads all that there is.
        if rate is None and row.concurrency == 1:
            rate = values.tokens_per_s
    users = "one user" if row.concurrency == 1 else f"each of {row.concurrency:,} users"
    notes = () if values is None else (Field("ITL p50", middle(values.itl, brief=False)),)
    return _rating(row, f"Decode, {users}, {label_of(row)} context", rate, "median over the streams", notes)


def _most(result: SpeedResult) -> Rating | None:
    rows = result.rows_of("decode")
    valid = [
        (values.tokens_per_s, row, values)
        for row in rows
        if (values := values_of(row)) is not None and values.tokens_per_s is not None
    ]
    if not rows or max(row.concurrency for row in rows) == 1:
        return None
    if not valid:
        return Rating(
            subject="Output in all",
            number=None,
            value=None,
            unit=_UNIT,
            stamp="NO RATE",
            reason=f"No decode cell is valid: {tally(rows)}.",
        )
    _, row, values = max(valid, key=lambda one: (one[0], -one[1].concurrency))
    subject = f"Output in all, {numbers.count(row.concurrency, 'user')}, {label_of(row)} context"
    reads = per_user(values)
    notes = () if reads is None else (Field("Each user", numbers.brief_rate(reads) + f" {_UNIT}"),)
    return _rating(row, subject, values.tokens_per_s, "the most of all valid cells", notes)


def _rating(row: CellRow, subject: str, rate: float | None, method: str, notes: tuple[Field, ...]) -> Rating:
    estimated = row.values is not None and row.values.estimated
    if rate is not None:
        return Rating(
            subject=subject,
            number=rate,
            value=("about " if estimated else "") + numbers.brief_rate(rate),
            unit=_UNIT,
            contract=method,
            notes=tuple(note for note in notes if note.text != numbers.ABSENT),
        )
    word = WORDS[row.status].upper() if values_of(row) is None else "NO RATE"
    reason = safe(row.reason, 300) or MEANING[row.status]
    return Rating(
        subject=subject, number=None, value=None, unit=_UNIT, contract=method, stamp=word, reason=reason
    )


def _usual(rows: Sequence[CellRow]) -> CellRow | None:
    """Return the row at the usual context, or at the one nearest to it."""
    return min(
        rows, key=lambda row: (abs(row.context_tokens - USUAL_CONTEXT), row.context_tokens), default=None
    )


def _how(result: SpeedResult) -> str | None:
    contract = result.contract
    if contract is None or contract.speed is None:
        return None
    speed = contract.speed
    window = numbers.rough(speed.window_ns / 1e9)
    sample = f"windows of {window}" if speed.requests is None else f"{speed.requests:,} requests a cell"
    eos = "EOS ignored" if contract.sampling.ignore_eos else "answers stop naturally"
    return (
        f"{sample}, outputs up to {speed.output_tokens:,} tokens, {eos}; {speed.unique_percent:g}% of each prompt "
        f"its own"
    )
