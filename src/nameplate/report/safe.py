"""Text from elsewhere, made harmless: a model, a header or an error message must not control the terminal."""

from __future__ import annotations

import unicodedata

from rich.text import Text

# Enough for any name or message of sense; what a hostile server adds beyond is counted, not shown.
LINE_LIMIT = 400

# Control, format (directions, zero width, tags), surrogate, private and unassigned characters; odd separators.
_HARMFUL = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
# Joiners shape Persian, Indic and emoji text, and move nothing.
_JOINERS = frozenset("\u200c\u200d")
# A letter with more marks than any script stacks climbs over the lines around it.
_MARKS_LIMIT = 4


def safe(value: object, limit: int | None = LINE_LIMIT, *, lines: bool = False) -> str:
    """Return text that moves no cursor, hides nothing and changes no direction; harmful characters are spelled out.

    With `lines` line feeds stay and tabs become blanks; without, both are spelled out like the rest. Beyond `limit`
    characters the rest is counted. None means no limit.
    """
    text = value if isinstance(value, str) else str(value)
    rest = 0
    if limit is not None and len(text) > limit:
        text, rest = text[:limit], len(text) - limit
    if lines:
        text = text.replace("\r\n", "\n").expandtabs(4)
    if not text.isascii() or not text.isprintable():
        text = _spelled(text, lines)
    return f"{text}... ({rest:,} more characters)" if rest else text


def safe_text(value: object, style: str = "", limit: int | None = LINE_LIMIT, *, lines: bool = False) -> Text:
    """Return the same as a rich text, in which square brackets are no markup."""
    return Text(safe(value, limit, lines=lines), style=style)


def _spelled(text: str, lines: bool) -> str:
    said: list[str] = []
    marks = 0
    for letter in text:
        category = unicodedata.category(letter)
        if category in ("Mn", "Me"):
            marks += 1
            said.append(letter if marks <= _MARKS_LIMIT else _escape(letter))
            continue
        marks = 0
        harmless = category not in _HARMFUL or letter in _JOINERS or (lines and letter == "\n")
        said.append(letter if harmless else _escape(letter))
    return "".join(said)


def _escape(letter: str) -> str:
    known = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}.get(letter)
    if known is not None:
        return known
    number = ord(letter)
    if number < 0x100:
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"
