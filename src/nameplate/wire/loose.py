"""Read JSON that no schema fits: tolerant parsing, counts, and the text of errors in any vendor's shape."""

import html
import json
import re
from typing import Any

from nameplate.wire.events import StreamError

# What a person needs of an error; whole stack traces stay in the raw reads.
MESSAGE_LIMIT_CHARS = 500
# JavaScript's safe integers: no server counts more tokens than this.
COUNT_LIMIT = 2**53
# Error objects are wrapped a few times by gateways; more is not an error's shape.
_DEPTH_LIMIT = 6
_DIGITS_LIMIT = 30
_TEXT_KEYS = ("message", "detail", "error", "msg", "error_msg", "error_message", "errors", "title", "reason")
_KIND_KEYS = ("type", "error_type", "kind", "status")
_CODE_KEYS = ("code", "error_code", "status_code")


class LooseJsonError(ValueError):
    """Say why a text is not JSON; ``truncated`` if it is the beginning of some, ``trailing`` if more follows it."""

    def __init__(self, message: str, truncated: bool = False, trailing: bool = False) -> None:
        super().__init__(message)
        self.truncated = truncated
        self.trailing = trailing


def _integer(digits: str) -> int | float:
    return int(digits) if len(digits) <= _DIGITS_LIMIT else float("inf")


def parse(data: bytes) -> Any:
    """Parse JSON as servers write it, with NaN, broken UTF-8, raw control characters and huge numbers.

    Raises LooseJsonError.
    """
    text = data.decode("utf-8", "replace")
    try:
        return json.loads(text, strict=False, parse_int=_integer)
    except json.JSONDecodeError as problem:
        truncated = problem.pos >= len(text.rstrip()) or problem.msg.startswith("Unterminated")
        trailing = problem.msg.startswith("Extra data")
        raise LooseJsonError(f"{problem.msg} at character {problem.pos}", truncated, trailing) from None
    except RecursionError:
        raise LooseJsonError("nested too deeply") from None
    except ValueError as problem:
        raise LooseJsonError(str(problem)) from None


def clean(text: str) -> str:
    """Return text that UTF-8 can hold: surrogate pairs joined, lone halves replaced by U+FFFD."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def bounded(text: str) -> str:
    """Return a message on one line within MESSAGE_LIMIT_CHARS."""
    line = " ".join(clean(text[: 4 * MESSAGE_LIMIT_CHARS]).split())
    return line if len(line) <= MESSAGE_LIMIT_CHARS else line[: MESSAGE_LIMIT_CHARS - 1] + "…"


def count(value: Any) -> int | None:
    """Return a token count, or None for everything that is none (negative, boolean, infinite, a word)."""
    if isinstance(value, bool):
        return None
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= _DIGITS_LIMIT:
        value = int(value)
    if isinstance(value, float):
        if not value.is_integer():
            return None
        value = int(value)
    if isinstance(value, int) and 0 <= value <= COUNT_LIMIT:
        return value
    return None


def dump(value: Any) -> str:
    """Return parsed JSON as text again; empty if it is nested too deeply for that."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    except RecursionError:
        return ""


def _scalar(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return ""
    return str(value) if isinstance(value, str | int | float) else ""


def _first(source: dict[Any, Any], keys: tuple[str, ...]) -> str:
    for key in keys:
        word = _scalar(source.get(key))
        if word:
            return word
    return ""


def _message(value: Any, depth: int) -> str:
    if depth > _DEPTH_LIMIT:
        return ""
    if isinstance(value, list):
        return "; ".join(part for part in (_message(item, depth + 1) for item in value[:4]) if part)
    if isinstance(value, dict):
        for key in _TEXT_KEYS:
            found = _message(value.get(key), depth + 1)
            if found:
                return found
        return ""
    return _scalar(value)


def _innermost(value: Any) -> dict[Any, Any]:
    for _ in range(_DEPTH_LIMIT):
        if isinstance(value, list) and value:
            value = value[0]
        elif isinstance(value, dict) and isinstance(value.get("error"), dict | list):
            value = value["error"]
        else:
            break
    return value if isinstance(value, dict) else {}


def describe_error(value: Any) -> StreamError:
    """Return what an error document says, whatever its vendor's shape."""
    inner = _innermost(value)
    outer = value if isinstance(value, dict) else {}
    message = _message(value, 0)
    if not message:
        message = dump(value)
    kind = _first(inner, _KIND_KEYS) or _first(outer, _KIND_KEYS)
    code = _first(inner, _CODE_KEYS) or _first(outer, _CODE_KEYS)
    return StreamError(bounded(message), bounded(kind)[:80], bounded(code)[:80])


def is_error(value: Any) -> bool:
    """Say whether a document without choices reports an error, and not merely some status."""
    if isinstance(value, list):
        return bool(value) and is_error(value[0])
    if not isinstance(value, dict):
        return False
    if value.get("error") or value.get("errors") or value.get("detail"):
        return True
    if value.get("object") == "error" or value.get("type") == "error":
        return True
    if not isinstance(value.get("message"), str):
        return False
    kind = _first(value, _KIND_KEYS).lower()
    code = count(_first(value, _CODE_KEYS))
    return "error" in kind or "exception" in kind or (code is not None and code >= 400)


def describe_error_text(data: bytes) -> StreamError:
    """Return what an error's text says, be it JSON or words."""
    try:
        value = parse(data)
    except LooseJsonError:
        return StreamError(bounded(data[: 8 * MESSAGE_LIMIT_CHARS].decode("utf-8", "replace")))
    return describe_error(value)


_TITLE = re.compile(r"<title[^>]*>(.*?)</title", re.IGNORECASE | re.DOTALL)
_TAGS = re.compile(r"<(script|style)\b.*?</\1\s*>|<[^>]*>", re.IGNORECASE | re.DOTALL)


def describe_page(data: bytes) -> str:
    """Return an HTML page's title, or its first words."""
    text = data[:65536].decode("utf-8", "replace")
    title = _TITLE.search(text)
    return bounded(html.unescape(title.group(1) if title else _TAGS.sub(" ", text)))
