"""A plate in words: in a sentence, in full for whoever cannot see it, and its evidence by digest."""

from __future__ import annotations

from nameplate.ratingplate.model import NOT_STATED, Rating, RatingPlate
from nameplate.report.safe import safe

# More ratings than a title can name are counted.
_NAMED = 3


def said(rating: Rating) -> str:
    """Say a rating: its number with its unit, or the word that stands in its place."""
    if rating.stamp is not None:
        return rating.stamp.lower()
    return " ".join(part for part in (rating.value, rating.unit) if part)


def sentence(held: RatingPlate) -> str:
    """Say what a plate says in a sentence."""
    model = held.machine[0].told if held.machine else NOT_STATED
    named = "; ".join(f"{safe(one.subject)}: {safe(said(one))}" for one in held.ratings[:_NAMED])
    more = len(held.ratings) - _NAMED
    stamps = "".join(f", {stamp.lower()}" for stamp in held.stamps)
    return (
        f"{safe(held.title)} of {safe(model, 120)}{stamps}: {named}{f', and {more} more' if more > 0 else ''}"
    )


def described(held: RatingPlate) -> str:
    """Say everything that stands on a plate, whole, a line a fact."""
    lines = [safe(held.title), *map(safe, held.stamps)]
    lines += [f"{safe(field.name)}: {safe(field.told)}" for field in (*held.machine, *held.terms)]
    for rating in held.ratings:
        parts = [rating.reason, rating.contract, *(f"{note.name}: {note.told}" for note in rating.notes)]
        more = "; ".join(safe(part) for part in parts if part)
        lines.append(f"{safe(rating.subject)}: {safe(said(rating))}{f' ({more})' if more else ''}")
    lines += [f"Date: {safe(held.date or NOT_STATED)}", f"Evidence: {evidence(held) or NOT_STATED}"]
    lines.append(f"Measured by: {safe(held.tool) or NOT_STATED}")
    return "\n".join(lines)


def evidence(held: RatingPlate, digits: int | None = None) -> str | None:
    """Name the evidence by its manifest's digest, of which `digits` are shown; None where there is none."""
    digest = held.evidence_sha256
    if digest is None:
        return None
    digest = safe(digest, 64)
    if digits is None or len(digest) <= digits:
        return f"sha256:{digest}"
    return f"sha256:{digest[:digits]}…"
