"""`plate.md`: the rating plate as tables for a README; foreign text in it is text, whatever it holds."""

from __future__ import annotations

import re
from collections.abc import Iterable

from nameplate.ratingplate.model import Field, RatingPlate
from nameplate.ratingplate.words import evidence, said, sentence
from nameplate.report.safe import safe

_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "@": "&#64;", '"': "&quot;"}
_MARKS = frozenset("\\`*_{}[]|~#$!^")
# What GitHub would make a link of without being asked, up to the mark by which it knows it.
_LINKS = re.compile(r"(?i)(?<=www)\.|:(?=//)")


def as_markdown(held: RatingPlate, image: str | None = None) -> str:
    """Write a plate as Markdown; `image` is the address of its drawing, which then stands first."""
    lines = []
    if image is not None:
        lines += [f"![{escape(sentence(held))}](<{_address(image)}>)", ""]
    stamps = "".join(f" **{escape(stamp)}**" for stamp in held.stamps)
    lines += [f"**{escape(held.title)}**{stamps}", ""]
    lines += _table("Rating plate", held.machine)
    lines += ["", *_ratings(held), ""]
    last = (
        Field("Date", held.date),
        Field("Evidence", evidence(held)),
        Field("Measured by", held.tool or None),
    )
    lines += _table("Contract and evidence", (*held.terms, *last))
    return "\n".join(lines) + "\n"


def escape(text: str) -> str:
    """Write foreign text so that Markdown and HTML show it and nothing else, on one line, also within a table."""
    said_text = _LINKS.sub(lambda mark: f"&#{ord(mark.group())};", _marked(safe(text)))
    return " ".join(said_text.split())


def _marked(text: str) -> str:
    return "".join(
        _ENTITIES.get(letter) or (f"\\{letter}" if letter in _MARKS else letter) for letter in text
    )


def _table(head: str, fields: Iterable[Field]) -> list[str]:
    rows = [f"| {escape(field.name)} | {escape(field.told)} |" for field in fields]
    return [f"| {head} | |", "|---|---|", *rows]


def _ratings(held: RatingPlate) -> list[str]:
    rows = ["| Rating | For | More |", "|---|---|---|"]
    for rating in held.ratings:
        shown = f"**{escape(said(rating).upper() if rating.stamp else said(rating))}**"
        if rating.stamp is not None:
            shown += f", not {held.verb.lower()}"
        more = [rating.reason if rating.stamp is not None else "", rating.contract]
        more += [f"{note.name}: {note.told}" for note in rating.notes]
        rows.append(
            f"| {shown} | {escape(rating.subject)} | {'; '.join(escape(part.rstrip('.')) for part in more if part)} |"
        )
    return rows


def _address(image: str) -> str:
    """Write an address for a link: what could end it is percent-encoded."""
    return "".join(
        f"%{byte:02X}" if byte <= 0x20 or byte >= 0x7F or chr(byte) in '<>\\"' else chr(byte)
        for byte in image.encode("utf-8", "surrogatepass")
    )
