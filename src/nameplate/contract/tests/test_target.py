"""Targets are read from what people paste; secrets have no readable form."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nameplate.contract.errors import CallerError
from nameplate.contract.target import Credentials, Target


@pytest.mark.parametrize(
    ("text", "scheme", "host", "port", "base", "path"),
    [
        ("http://h:8000", "http", "h", 8000, "", "/v1/chat/completions"),
        ("h:8000", "http", "h", 8000, "", "/v1/chat/completions"),
        ("HTTP://H/", "http", "h", 80, "", "/v1/chat/completions"),
        ("https://h", "https", "h", 443, "", "/v1/chat/completions"),
        ("http://h:8000/v1", "http", "h", 8000, "", "/v1/chat/completions"),
        ("http://h:8000/v1/", "http", "h", 8000, "", "/v1/chat/completions"),
        ("http://h/v1/chat/completions", "http", "h", 80, "", "/v1/chat/completions"),
        ("http://h/v1/completions", "http", "h", 80, "", "/v1/completions"),
        ("http://h/completions", "http", "h", 80, "", "/v1/completions"),
        ("https://h/openai/v1", "https", "h", 443, "/openai", "/openai/v1/chat/completions"),
        ("https://h/a/b/v1/completions/", "https", "h", 443, "/a/b", "/a/b/v1/completions"),
        ("http://[::1]:8000/v1", "http", "::1", 8000, "", "/v1/chat/completions"),
        ("[2001:db8::1]:80", "http", "2001:db8::1", 80, "", "/v1/chat/completions"),
    ],
)
def test_urls_as_people_paste_them(
    text: str, scheme: str, host: str, port: int, base: str, path: str
) -> None:
    """With or without scheme, `/v1` or the whole endpoint, the same server comes out."""
    target = Target.parse(text)
    assert (target.scheme, target.host, target.port, target.base_path) == (scheme, host, port, base)
    assert target.generate_path == path


def test_ipv6_is_bracketed_again() -> None:
    """Host headers and URLs write IPv6 addresses in brackets, and leave out a scheme's own port."""
    assert Target.parse("http://[::1]:8000").authority == "[::1]:8000"
    assert Target.parse("http://[::1]").authority == "[::1]"
    assert Target.parse("https://h:443/x").url == "https://h/x"


@pytest.mark.parametrize(
    "text",
    [
        "http://u:hunter2@h",
        "u:hunter2@h:1",
        "http://:hunter2@h:99999",
        "ftp://u:hunter2@h",
        "http://h/?key=hunter2",
    ],
)
def test_secrets_in_a_url_are_refused_and_not_repeated(text: str) -> None:
    """A password or key in the URL would end up in the evidence; the message does not repeat it either."""
    with pytest.raises(CallerError) as caught:
        Target.parse(text)
    assert "hunter2" not in str(caught.value) and caught.value.hint


@pytest.mark.parametrize(
    "text",
    ["", "http://", "ftp://h", "sim:demo", "http://h:0", "http://h:70000", "http://h:x", "::1", "http://[::1", "http:///p",
     "http://ho st", "http://h/a b", "http://h/v1 ", "http://h/\N{EURO SIGN}", "http://h/v1#x"],
)  # fmt: skip
def test_what_is_no_server_is_refused(text: str) -> None:
    """What could not be sent as a request line is refused before anything is sent."""
    with pytest.raises(CallerError):
        Target.parse(text)


@given(st.text(max_size=40))
def test_any_text_is_a_target_or_a_caller_error(text: str) -> None:
    """Whatever is typed, a target that is accepted can be written as a request line."""
    try:
        target = Target.parse(text)
    except CallerError:
        return
    assert not set(target.generate_path) & set(" \r\n\t") and target.generate_path.isascii()
    assert Target.parse(target.url) == msgspec.structs.replace(target, api="chat")


def test_credentials_have_no_readable_form() -> None:
    """Neither printing nor formatting shows a header's value."""
    secret = Credentials((("Authorization", "Bearer hunter2"),))
    assert "hunter2" not in repr(secret) and "hunter2" not in f"{secret}" and "Authorization" in repr(secret)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("X-A", "one\r\nX-B: hunter2"),
        ("X-A", "hunter2\n"),
        ("X-A", "hunter2\N{EURO SIGN}"),
        ("X A", "v"),
        ("", "v"),
        ("X:", "v"),
    ],
)
def test_headers_that_http_cannot_carry_are_refused(name: str, value: str) -> None:
    """A line end in a key cannot smuggle in another header, and the message does not show the key."""
    with pytest.raises(CallerError) as caught:
        Credentials(((name, value),))
    assert "hunter2" not in str(caught.value)
