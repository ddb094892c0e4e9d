"""Whose host this is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nameplate.hosts.place import locate

OWN = {"192.168.7.20", "fe80::1", "gpu-box"}


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "127.8.9.1",
        "::1",
        "[::1]",
        "localhost",
        "LOCALHOST.",
        "a.localhost",
        "0.0.0.0",
        "::ffff:127.0.0.1",
    ],
)
def test_loopback_is_this_machine(host: str) -> None:
    """A target on loopback is taken for this machine, and the reason says what could make that wrong."""
    place = locate(host, None, OWN)
    assert place.which == "server"
    assert "loopback" in place.how and "tunnel" in place.how


@pytest.mark.parametrize(
    "host", ["192.168.7.20", "::ffff:192.168.7.20", "FE80:0:0::1", "fe80::1%eth0", "GPU-Box."]
)
def test_own_addresses_are_this_machine(host: str) -> None:
    """A target that is one of our own addresses or our name, however it is written, is this machine."""
    assert locate(host, None, OWN).which == "server"
    assert "own addresses" in locate(host, None, OWN).how


@pytest.mark.parametrize(
    "host", ["192.168.7.21", "gpu-box.example.com", "api.example.com", "", "127.0.0.1.example.com"]
)
def test_everything_else_is_not(host: str) -> None:
    """A target that nothing ties to this machine leaves it the client's."""
    assert locate(host, None, OWN).which == "client"


@pytest.mark.parametrize(
    ("option", "which"),
    [
        ("this", "server"),
        ("LOCAL", "server"),
        ("localhost", "server"),
        ("192.168.7.20", "server"),
        ("gpu-box", "server"),
        ("other", "client"),
        ("gpu-box-2", "client"),
        ("10.0.0.1", "client"),
    ],
)
def test_option_wins(option: str, which: str) -> None:
    """--server-host decides against what the address suggests, and the reason names it."""
    for target in ("127.0.0.1", "10.0.0.1"):
        place = locate(target, option, OWN)
        assert place.which == which
        assert "--server-host" in place.how


def test_empty_option_is_none() -> None:
    """An empty --server-host says nothing."""
    assert locate("127.0.0.1", " ", ()).which == "server"
    assert locate("10.0.0.1", "", ()).which == "client"


@given(st.text(max_size=40), st.none() | st.text(max_size=20), st.lists(st.text(max_size=20), max_size=3))
def test_any_text_gets_an_answer(host: str, option: str | None, own: list[str]) -> None:
    """Whatever is given, there is an answer with a reason."""
    place = locate(host, option, own)
    assert place.which in ("server", "client") and place.how
