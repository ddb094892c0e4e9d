"""Facts that a person gives: `--fact key=value` and `--kv-tokens N`."""

from __future__ import annotations

import re
from collections.abc import Iterable

from nameplate.contract.errors import CallerError
from nameplate.contract.identity import PORTABLE, Fact, Value

_NAME = re.compile(r"[a-z][a-z0-9_.-]{0,63}")
_TEXT_LIMIT = 1_000
# These are compared and computed with, so a word in their place is a mistake.
_WHOLE = frozenset(
    {
        "context_limit_tokens",
        "kv_tokens",
        "block_size_tokens",
        "running_limit_requested",
        "running_limit_effective",
        "accepted_connections",
    }
)
_TRUTH = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


def parse_facts(texts: Iterable[str]) -> dict[str, Fact]:
    """Read `name=value` texts; the source is `--fact`. CallerError for one that is none, or names a fact twice."""
    found: dict[str, Fact] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        name, value = name.strip().replace("-", "_"), value.strip()
        if not equals or not _NAME.fullmatch(name) or not value or len(value) > _TEXT_LIMIT:
            raise CallerError(
                f"--fact {text[:80]!r} is not name=value.",
                hint=f"For example --fact hardware='4 x B70'. Names that plates ask for: {', '.join(PORTABLE)}.",
            )
        if name in found:
            raise CallerError(f"--fact {name} is given twice.", hint="Give each fact once.")
        found[name] = Fact(_value(name, value), "--fact")
    return found


def kv_tokens_fact(tokens: int) -> dict[str, Fact]:
    """Return the KV pool as a person states it: it wins over the engine's own count, and says that it is manual."""
    if tokens <= 0:
        raise CallerError(
            f"--kv-tokens {tokens} is not a number of tokens.", hint="Leave it out if it is unknown."
        )
    return {"kv_tokens": Fact(tokens, "--kv-tokens (manual)")}


def _value(name: str, text: str) -> Value:
    if name in _WHOLE:
        digits = text.replace("_", "").replace(",", "")
        if not digits.isascii() or not digits.isdigit() or not int(digits):
            raise CallerError(
                f"--fact {name} must be a whole number above 0, not {text[:40]!r}.",
                hint="Leave it out if it is unknown.",
            )
        return int(digits)
    if name == "process_start_time_s":
        try:
            return float(text)
        except ValueError:
            raise CallerError(f"--fact {name} must be a number of seconds.") from None
    if name == "prefix_caching":
        if text.lower() not in _TRUTH:
            raise CallerError(f"--fact {name} must be true or false, not {text[:40]!r}.")
        return _TRUTH[text.lower()]
    return text
