"""Where the server is and how it is spoken to, without its secrets."""

from __future__ import annotations

import re
from typing import Any, Literal
from urllib.parse import urlsplit

from msgspec import Struct, field

from nameplate.contract.errors import CallerError

Api = Literal["chat", "completions"]
_PORTS = {"http": 80, "https": 443}
_PLAIN = re.compile(r"[!-~]*")
# RFC 9110 5.1 and 5.5: a field's name is a token; its value has no control characters but the tab.
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(r"[\t -~\x80-\xff]*")
_GAP = re.compile(r"[\x00-\x20\x7f]")


class Target(Struct, frozen=True):
    """Hold one server's address and dialect. Secrets are not part of it: see `Credentials`.

    `base_path` is what stands before `/v1` (often empty). `stream_usage` and `continuous_usage` say which
    `stream_options` the server was found to accept, `limit_field` under which name it honours the output length.
    `ca_file` and `insecure` concern TLS only.
    """

    scheme: Literal["http", "https"]
    host: str
    port: int
    base_path: str = ""
    api: Api = "chat"
    model: str = ""
    stream_usage: bool = True
    continuous_usage: bool = False
    limit_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    ca_file: str | None = None
    insecure: bool = False
    extra_body: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str) -> Target:
        """Read an http(s) URL, with or without `/v1` or a whole endpoint path; CallerError if it is none."""
        hint = "Write it like http://127.0.0.1:8000 or https://host/prefix/v1."
        try:
            parts = urlsplit(text if "://" in text else f"http://{text}")
            named = parts.username or parts.password
            port = parts.port if not named else None
        except ValueError as error:
            raise CallerError(f"{text!r} is not a URL: {error}.", hint=hint) from None
        # Before any message that would repeat the URL, and the password with it.
        if named:
            raise CallerError(
                "The URL holds a user name or password.",
                why="It would end up in the evidence.",
                hint="Give keys with --api-key-env or --api-key-file.",
            )
        if parts.query or parts.fragment:
            raise CallerError("The URL has a query or fragment.", hint=hint)
        if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
            raise CallerError(f"{text!r} is not an http(s) URL.", hint=hint)
        if not _PLAIN.fullmatch(parts.path) or _GAP.search(parts.hostname):
            raise CallerError(
                f"{text!r} holds a blank or a character that a URL cannot hold.",
                hint="Write such characters as %20 or %C3%A9.",
            )
        path = parts.path.rstrip("/")
        api: Api = "chat"
        if path.endswith("/completions") and not path.endswith("/chat/completions"):
            api = "completions"
        for suffix in ("/chat/completions", "/completions", "/v1"):
            path = path.removesuffix(suffix)
        scheme: Literal["http", "https"] = "https" if parts.scheme == "https" else "http"
        return cls(scheme, parts.hostname, port or _PORTS[scheme], path.rstrip("/"), api)

    @property
    def authority(self) -> str:
        """Return host and port as a Host header and a URL write them; IPv6 in brackets."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def url(self) -> str:
        return f"{self.scheme}://{self.authority}{self.base_path}"

    @property
    def generate_path(self) -> str:
        """Return the path that requests are posted to."""
        return f"{self.base_path}/v1/" + ("chat/completions" if self.api == "chat" else "completions")


class Credentials(Struct, frozen=True):
    """Hold what must never reach disk: headers with keys in them. It has no readable form.

    `headers` are all extra request headers. CallerError, without the value, for one that HTTP cannot carry.
    """

    headers: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        for name, value in self.headers:
            if not _TOKEN.fullmatch(name):
                raise CallerError(f"{name!r} is not the name of a header.", hint="Write NAME: VALUE.")
            if not _VALUE.fullmatch(value):
                raise CallerError(
                    f"The value of the header {name} holds a line end or a character that HTTP cannot carry.",
                    why="It would be sent as something else than was meant.",
                    hint="A key read from a file may end in a line feed: strip it.",
                )

    def __repr__(self) -> str:
        return f"Credentials({', '.join(name for name, _ in self.headers)}: redacted)"
