"""Read JSON answers of servers that may send anything."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from nameplate.contract.identity import Fact, Value
from nameplate.engines.transport import Reply

_TEXT_LIMIT = 500


def json_value(body: bytes) -> Any:
    """Return the decoded body, or None where it is not JSON."""
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def json_object(reply: Reply) -> Mapping[str, Any]:
    """Return the object of a successful answer; an empty one where it is anything else."""
    value = json_value(reply.body) if reply.ok else None
    return value if isinstance(value, dict) else {}


def child(value: Any, *path: str) -> Any:
    """Return what lies at a path of keys, or None where any of them is missing."""
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def whole(value: Any) -> int | None:
    """Return a positive whole number, or None: limits of 0 or -1 mean "not told" on several servers."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if 0 < value < 2**62 and value == int(value) else None


def facts(source: str, **values: Any) -> dict[str, Fact]:
    """Return a fact for each value that is known and plain; texts are bounded."""
    found: dict[str, Fact] = {}
    for name, value in values.items():
        if isinstance(value, str):
            value = value[:_TEXT_LIMIT].strip()
        if value is None or value == "" or not isinstance(value, str | int | float | bool):
            continue
        plain: Value = value
        found[name] = Fact(plain, source)
    return found


def error_message(body: bytes) -> str:
    """Return an error answer's own words, from any of the usual places."""
    value = json_value(body)
    for path in (("error", "message"), ("error",), ("message",), ("detail",)):
        text = child(value, *path)
        if isinstance(text, str) and text:
            return text[:_TEXT_LIMIT]
    detail = child(value, "detail")
    if isinstance(detail, list) and detail and isinstance(message := child(detail[0], "msg"), str):
        return message[:_TEXT_LIMIT]
    return ""
