"""Keys in texts that people paste: a launch command, a note, a command line. What looks like one is left out."""

from __future__ import annotations

import re

HIDDEN = "<redacted>"

# Options, variables, fields and headers that hold a secret, by the last words of their names.
_SECRET_WORDS = {
    "token", "secret", "password", "passwd", "passphrase", "pwd", "credential", "credentials", "authorization",
    "apikey", "apitoken", "authtoken", "accesstoken", "secretkey", "accesskey",
}  # fmt: skip
# A key is one where it is somebody's; and `key` alone as an option or in a query.
_KEY_OWNERS = {
    "api", "access", "secret", "private", "auth", "account", "master", "license", "subscription", "signing",
    "encryption", "openai", "hf", "admin", "service", "shared",
}  # fmt: skip
# Tokens of text and not of access: --max-token, --pad-token.
_TEXT_TOKENS = {
    "max", "min", "pad", "eos", "bos", "stop", "per", "mask", "unk", "sep", "cls", "image", "audio", "video", "first",
    "second", "next", "last", "start", "end", "think", "special", "draft", "of", "a", "each", "output", "prompt",
}  # fmt: skip

_NAME = re.compile(r"(?<![\w-])-{0,2}[A-Za-z_][\w.-]*")
_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_QUOTED = r"\\\"(?:(?!\\\").)*\\\"|\"(?:\\.|[^\"\\])*\"|'[^']*'"
# A quoted value that something closes, or words and quotes grown together as a shell joins them.
_VALUE = rf"(?:{_QUOTED})(?=[\s,;:}}\])]|$)|(?:{_QUOTED}|[^\s\"'&\\]|\\(?!\"))+"
_ASSIGNED = re.compile(rf"(?P<before>\\?[\"']?\s*[=:]\s*)(?P<value>{_VALUE})", re.DOTALL)
_FOLLOWS = re.compile(rf"(?P<before>[\"']?\s*,?\s+)(?P<value>(?!--)(?:{_VALUE}))", re.DOTALL)
_VARIABLE = re.compile(r"[A-Z][A-Z0-9]*_[A-Z0-9_]+")
# Prose has tokens, too ("first token: 12 ms"); what is shorter than this is a number or a word.
_SHORTEST_TOKEN = 8

# What is a secret wherever it stands: after the scheme of an Authorization header, in a URL, by its own shape.
_SHAPES = (
    re.compile(r"(?i)(\bbearer\s+)[^\s\"'\\]+"),
    re.compile(r"(?i)(\bauthorization[\"']?\s*[:=]\s*[\"']?(?:basic|token|apikey|digest)\s+)[^\s\"'\\]+"),
    re.compile(r"(://[^/\s:@]*:)[^\s/]+(?=@)"),
    re.compile(r"(://)[^/\s:@]{16,}(?=@)"),
    re.compile(r"([?&](?:key|sig|signature)=)[^\s&\"']+"),
    re.compile(
        r"()\b(?:sk-[\w-]{8,}|hf_[A-Za-z0-9]{16,}|gh[pousr]_[A-Za-z0-9]{16,}|github_pat_\w{16,}|xox[abprs]-[\w-]{8,}"
        r"|glpat-[\w-]{16,}|nvapi-[\w-]{16,}|gsk_[A-Za-z0-9]{16,}|AKIA[0-9A-Z]{16}|AIza[\w-]{30,}"
        r"|eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]+)"
    ),
)


def redacted(text: str) -> str:
    """Return a text with what looks like a key, token or password replaced by <redacted>."""
    for shape in _SHAPES:
        text = shape.sub(lambda match: match[1] + HIDDEN, text)
    parts: list[str] = []
    done = 0
    for name in _NAME.finditer(text):
        if name.start() < done or not _names_secret(name[0]):
            continue
        match = _value_after(text, name)
        if match is None:
            continue
        parts += (text[done : name.end()], match["before"], _hidden(match["value"]))
        done = match.end()
    return "".join((*parts, text[done:]))


def redacted_words(words: tuple[str, ...]) -> tuple[str, ...]:
    """Return the words of a command line, each redacted: an option's value is often a text with keys of its own."""
    return tuple(redacted(word) for word in words)


def _names_secret(name: str) -> bool:
    words = [word.lower() for word in _PARTS.findall(name)]
    if not words:
        return False
    *before, last = words
    if last == "key":
        return (before[-1] in _KEY_OWNERS) if before else name.startswith("-")
    if last == "token":
        return not before or before[-1] not in _TEXT_TOKENS
    return last in _SECRET_WORDS


def _value_after(text: str, name: re.Match[str]) -> re.Match[str] | None:
    option = name[0].startswith("-") or _VARIABLE.fullmatch(name[0]) is not None
    assigned = _ASSIGNED.match(text, name.end())
    if assigned is not None:
        # A plain `token: 12` is a figure; a quoted name is a field of JSON.
        plain = name[0].lower() == "token" and assigned["before"].strip() == ":"
        return None if plain and len(assigned["value"]) < _SHORTEST_TOKEN else assigned
    return _FOLLOWS.match(text, name.end()) if option else None


def _hidden(value: str) -> str:
    """Return what stands for a value, in its quotes."""
    for quote in ('\\"', '"', "'"):
        if len(value) >= 2 * len(quote) and value.startswith(quote) and value.endswith(quote):
            return f"{quote}{HIDDEN}{quote}"
    return HIDDEN
