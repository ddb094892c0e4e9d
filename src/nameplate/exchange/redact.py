"""What looks like a key goes out of what is kept of a file's metadata."""

from __future__ import annotations

import re
from typing import Any

REDACTED = "<redacted>"

# Whole words of a name, so that max_tokens and forced_token_id stay.
_NAME = re.compile(
    r"(?:^|[_\-.\s])(?:api[_-]?key|apikey|key|secret|password|passwd|passphrase|authorization|bearer|cookie|"
    r"credentials?|token)$",
    re.IGNORECASE,
)
# Keys by how they look (OpenAI, Hugging Face, GitHub, the benchmark's own site, AWS), a bearer header, and an option
# whose value is a key; the user part of a URL.
_TEXT = re.compile(
    r"\b(?:sk-|hf_|gh[pousr]_|lilb_|xox[abp]-)[A-Za-z0-9_\-]{6,}|\bAKIA[0-9A-Z]{12,}"
    r"|(?<=bearer )[^\s\"']{6,}"
    r"|(?<=--api-key[ =])[^\s\"']+|(?<=--api_key[ =])[^\s\"']+|(?<=--token[ =])[^\s\"']+"
    r"|(?<=api_key=)[^\s&\"']+|(?<=api-key=)[^\s&\"']+",
    re.IGNORECASE,
)
_USER = re.compile(r"(?<=://)[^\s/@]{1,256}(?=@)")


def redact(value: Any, name: str = "") -> Any:
    """Return the value without what looks like a key, by its name or by itself."""
    if isinstance(value, dict):
        return {str(key): redact(inner, str(key)) for key, inner in value.items()}
    if isinstance(value, list):
        return [redact(inner, name) for inner in value]
    if not isinstance(value, str) or not value:
        return value
    if _NAME.search(name):
        return REDACTED
    value = _TEXT.sub(REDACTED, value)
    return _USER.sub(REDACTED, value) if "@" in value else value


def has_secrets(value: Any) -> bool:
    """Say whether redaction would take something out."""
    return bool(redact(value) != value)
