"""Whose host is this? The client's machine is not the server's until something says so, and what said so is kept.

A tunnel or a proxy makes a distant server answer on loopback; therefore the reason stays with the answer, and
`--server-host other` overrides what the address suggests.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Collection
from typing import Literal

from msgspec import Struct

Which = Literal["server", "client"]

# What `--server-host` can say in a word; anything else is read as a name or an address.
HERE = frozenset({"this", "local", "here"})
ELSEWHERE = frozenset({"other", "remote", "elsewhere"})


class Place(Struct, frozen=True):
    """Tell whose host this machine is, and how that was decided, in words."""

    which: Which
    how: str


def locate(target_host: str, server_host_option: str | None, local_addresses: Collection[str]) -> Place:
    """Decide whether this machine is the server's host.

    `server_host_option` is what `--server-host` says: `this`, `other`, or a name or address of the server's host;
    None where it was not given. `local_addresses` are this machine's own addresses and names.
    """
    own = {_plain(address) for address in local_addresses}
    if server_host_option is not None and (option := server_host_option.strip()):
        word = option.lower()
        if word in HERE:
            return Place("server", "--server-host says that it is this machine")
        if word in ELSEWHERE:
            return Place("client", "--server-host says that the server is on another machine")
        if _is_loopback(word) or _plain(word) in own:
            return Place("server", f"--server-host names {option}, which is this machine")
        return Place("client", f"--server-host names {option}, which is not this machine")
    if _is_loopback(target_host):
        return Place(
            "server", "the target is a loopback address (a tunnel or proxy there would make this wrong)"
        )
    if _plain(target_host) in own:
        return Place("server", f"the target {target_host} is one of this machine's own addresses")
    return Place("client", f"the target {target_host} is not known to be this machine")


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        found = ipaddress.ip_address(host.strip().strip("[]").partition("%")[0])
    except ValueError:
        return None
    if isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped is not None:
        return found.ipv4_mapped
    return found


def _plain(host: str) -> str:
    """Write an address or a name in one way only."""
    address = _address(host)
    return str(address) if address is not None else host.strip().rstrip(".").lower()


def _is_loopback(host: str) -> bool:
    address = _address(host)
    if address is not None:
        # A client that connects to 0.0.0.0 or :: reaches itself.
        return address.is_loopback or address.is_unspecified
    name = host.strip().rstrip(".").lower()
    return name == "localhost" or name.endswith(".localhost")
