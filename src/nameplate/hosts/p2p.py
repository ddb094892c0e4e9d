"""NVIDIA's settings for peer-to-peer copies between consumer GPUs: what the driver runs with and what is configured.

Field names are those of llm-inference-bench's result files (`nvidia_p2p_override`, version 0.4), so that an export can
write them as they are; so are the expected values.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from nameplate.hosts.cpuinfo import clean
from nameplate.hosts.machine import read_text

PARAMS_PATH = "/proc/driver/nvidia/params"
MODPROBE_PATH = "/etc/modprobe.d/nvidia-p2p-override.conf"

# What that tool expects of a host whose GPUs copy to each other over PCIe (its version 0.4.30).
EXPECTED = {
    "ForceP2P": "0x11",
    "RMForceP2PType": "1",
    "RMPcieP2PType": "2",
    "GrdmaPciTopoCheckOverride": "1",
    "EnableResizableBar": "1",
}
# Read beside the expected ones: peer memory mapped through the IOMMU.
_ALSO_READ = ("DmaRemapPeerMmio",)

SUGGESTED_RELOAD = (
    "stop GPU workloads, then reload NVIDIA modules or reboot; the modprobe file alone is not enough until the nvidia "
    "module is reloaded"
)
# Later versions of the same tool leave these two out and call them unsafe.
CAUTION = (
    "RMForceP2PType and RMPcieP2PType are reported to break peer copies on some drivers, although the driver says that "
    "peers are reachable: check with a peer-to-peer copy test before relying on them"
)

_TEXT_LIMIT_BYTES = 64 << 10
_PAIR = re.compile(r"\s*([A-Za-z0-9_]{1,64})\s*=\s*([0-9A-Za-z]{1,18})\s*")
_OPTION = re.compile(r"NVreg_([A-Za-z0-9_]{1,64})=(\"[^\"]*\"|'[^']*'|\S+)")


class Mismatch(Struct, frozen=True):
    """Hold a setting that the driver runs with and that is not the expected one."""

    expected: str
    actual: str


class P2pOverride(Struct, frozen=True, kw_only=True):
    """Hold the settings. `effective`: the running driver has all of them; `configured`: the modprobe file sets them.

    An empty text in `runtime` is a setting that the driver does not name. `missing` lists expected settings that are
    not there at run time, `mismatched` those with another value.
    """

    effective: bool
    configured: bool
    params_path: str = PARAMS_PATH
    params_available: bool
    modprobe_path: str = MODPROBE_PATH
    modprobe_available: bool
    runtime: Mapping[str, str]
    expected: Mapping[str, str]
    missing: tuple[str, ...]
    mismatched: Mapping[str, Mismatch]
    registry_dwords: str
    suggested_modprobe_line: str
    suggested_reload: str = SUGGESTED_RELOAD
    caution: str = CAUTION


def of_texts(params: str | None, modprobe: str | None) -> P2pOverride:
    """Compare the driver's parameters and the modprobe file with what is expected; None is a file that is not there."""
    plain, dwords = _parameters(params or "")
    registry = _pairs(dwords)
    runtime = {name: registry.get(name, plain.get(name, "")) for name in (*EXPECTED, *_ALSO_READ)}
    configured = _configured(modprobe or "")
    return P2pOverride(
        effective=all(_same(runtime[name], value) for name, value in EXPECTED.items()),
        configured=all(_same(configured.get(name, ""), value) for name, value in EXPECTED.items()),
        params_available=params is not None,
        modprobe_available=modprobe is not None,
        runtime=runtime,
        expected=dict(EXPECTED),
        missing=tuple(name for name in EXPECTED if not runtime[name]),
        mismatched={
            name: Mismatch(value, runtime[name])
            for name, value in EXPECTED.items()
            if runtime[name] and not _same(runtime[name], value)
        },
        registry_dwords=dwords,
        suggested_modprobe_line='options nvidia NVreg_RegistryDwords="'
        + ";".join(f"{name}={value}" for name, value in EXPECTED.items())
        + '"',
    )


def read_p2p(root: Path = Path("/")) -> P2pOverride:
    """Read the settings of this machine."""
    return of_texts(
        read_text(root / PARAMS_PATH.lstrip("/"), _TEXT_LIMIT_BYTES),
        read_text(root / MODPROBE_PATH.lstrip("/"), _TEXT_LIMIT_BYTES),
    )


def _parameters(text: str) -> tuple[dict[str, str], str]:
    """Read the driver's `Name: value` lines; the registry's own settings are one of them, in quotes."""
    plain: dict[str, str] = {}
    dwords = ""
    for line in text.splitlines():
        name, colon, value = line.partition(":")
        name, value = name.strip(), clean(value.strip().strip('"'), 4096)
        if not colon:
            continue
        if name == "RegistryDwords":
            dwords = value
        else:
            plain[name] = value
    return plain, dwords


def _pairs(text: str) -> dict[str, str]:
    matches = (_PAIR.fullmatch(part) for part in text.split(";"))
    return {match[1]: match[2] for match in matches if match is not None}


def _configured(text: str) -> dict[str, str]:
    """Read the settings of `options nvidia` lines; a later line wins."""
    found: dict[str, str] = {}
    for line in text.replace("\\\n", " ").splitlines():
        words = line.partition("#")[0].split(None, 2)
        if len(words) < 3 or words[0] != "options" or words[1] != "nvidia":
            continue
        for name, value in _OPTION.findall(words[2]):
            value = value.strip("\"'")
            found |= _pairs(value) if name == "RegistryDwords" else {name: value}
    return found


def _same(actual: str, expected: str) -> bool:
    """Compare as numbers where both are: the driver may write 0x11 as 17."""
    try:
        return int(actual, 0) == int(expected, 0)
    except ValueError:
        return bool(actual) and actual == expected
