"""The vendors' tools: which commands are asked, and the GPUs that their outputs tell of.

Options as documented: nvidia-smi (`nvidia-smi --help-query-gpu`), AMD SMI (ROCm documentation, "AMD SMI CLI tool
usage"), ROCm SMI, Intel XPU Manager ("xpu-smi discovery", "xpu-smi topology"). Output changes between versions, so that
a field that is not found is None and a text that is not understood gives no GPU.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

import msgspec

from nameplate.hosts.cpuinfo import clean
from nameplate.hosts.diagnostic import Diagnostic, Probe
from nameplate.hosts.gpu import Gpu

T = TypeVar("T")

_QUERY = "index,name,driver_version,pci.bus_id,pcie.link.gen.current,pcie.link.width.current,power.limit"
_QUERY_MORE = (
    "index,uuid,memory.total,pcie.link.gen.max,pcie.link.width.max"  # what the first leaves out
    ",compute_mode,ecc.mode.current,persistence_mode"
)

NVIDIA_SMI = Probe(
    "nvidia_smi_query", ("nvidia-smi", f"--query-gpu={_QUERY}", "--format=csv,noheader,nounits")
)
# Its own command, so that the other stays the one that result files of other tools hold.
NVIDIA_SMI_MORE = Probe(
    "nvidia_smi_memory",
    (
        "nvidia-smi",
        f"--query-gpu={_QUERY_MORE}",
        "--format=csv,noheader,nounits",
    ),
)
AMD_SMI = Probe("amd_smi_static", ("amd-smi", "static", "--json"))
ROCM_SMI = Probe(
    "rocm_smi",
    ("rocm-smi", "--showproductname", "--showmeminfo", "vram", "--showdriverversion", "--json"),
)
XPU_SMI = Probe("xpu_smi_discovery", ("xpu-smi", "discovery", "-j"))
PROBES = (
    NVIDIA_SMI,
    NVIDIA_SMI_MORE,
    Probe("nvidia_smi_topo", ("nvidia-smi", "topo", "-m")),
    AMD_SMI,
    ROCM_SMI,
    Probe("amd_smi_topology", ("amd-smi", "topology")),
    XPU_SMI,
    Probe("xpu_smi_topology", ("xpu-smi", "topology", "-m")),
)

# More GPUs than any host has; a longer list was not written by the tool.
_GPUS_LIMIT = 256
_NUMBER = re.compile(r"[-+]?\d{1,18}(?:\.\d{1,9})?")
_MIB = 1 << 20
_BYTES = {"B": 1, "KB": 1 << 10, "MB": _MIB, "GB": 1 << 30, "TB": 1 << 40}


def gpus_told(diagnostics: Iterable[Diagnostic]) -> tuple[tuple[Gpu, ...], str | None]:
    """Return the GPUs that the tools told of, and which tools; AMD's older tool only where the newer has nothing."""
    answers = {entry.name: entry.stdout for entry in diagnostics if entry.ok}
    found: list[Gpu] = []
    sources: list[str] = []
    nvidia = nvidia_smi_gpus(answers.get(NVIDIA_SMI.name, ""), answers.get(NVIDIA_SMI_MORE.name, ""))
    amd, amd_source = amd_smi_gpus(answers.get(AMD_SMI.name, "")), "amd-smi"
    if not amd:
        amd, amd_source = rocm_smi_gpus(answers.get(ROCM_SMI.name, "")), "rocm-smi"
    intel = xpu_smi_gpus(answers.get(XPU_SMI.name, ""))
    for gpus, source in ((nvidia, "nvidia-smi"), (amd, amd_source), (intel, "xpu-smi")):
        if gpus:
            found += gpus
            sources.append(source)
    return tuple(found), " and ".join(sources) or None


def nvidia_smi_gpus(query: str, more: str = "") -> tuple[Gpu, ...]:
    """Read the two queries of nvidia-smi (CSV without header and units; memory is MiB, power is watts)."""
    extras = {row[0]: row for row in _rows(more, 8)}
    found = []
    for index, name, driver, bus, generation, width, limit in _rows(query, 7):
        number = _whole(index)
        if number is None or number < 0:
            continue
        _, uuid, memory, generation_max, width_max, mode, ecc, persistence = extras.get(index, [""] * 8)
        memory_mib = _whole(memory)
        found.append(
            Gpu(
                index=number,
                vendor="nvidia",
                name=_text(name),
                uuid=_text(uuid),
                pci_bus_id=_text(bus),
                memory_total_bytes=None if memory_mib is None else memory_mib * _MIB,
                driver_version=_text(driver),
                power_limit_w=_float(limit),
                pcie_generation=_whole(generation),
                pcie_generation_max=_whole(generation_max),
                pcie_width=_whole(width),
                pcie_width_max=_whole(width_max),
                compute_mode=_text(mode),
                ecc=_switch(ecc),
                persistence=_switch(persistence),
            )
        )
    return tuple(found)


def amd_smi_gpus(text: str) -> tuple[Gpu, ...]:
    """Read `amd-smi static --json`: a list of GPUs, in newer versions under `gpu_data`."""
    document = _json(text)
    entries = document.get("gpu_data") if isinstance(document, dict) else document
    found = []
    for entry in _mappings(entries):
        number = _whole(entry.get("gpu"))
        if number is None or number < 0:
            continue
        asic, bus, driver = _inner(entry, "asic"), _inner(entry, "bus"), _inner(entry, "driver")
        limit = _inner(entry, "limit")
        # Versions since 7.1 put the limits of the two controllers apart; the first is the board's.
        board = _inner(limit, "ppt0") or limit
        found.append(
            Gpu(
                index=number,
                vendor="amd",
                name=_text(asic.get("market_name")) or _text(_inner(entry, "board").get("product_name")),
                pci_bus_id=_text(bus.get("bdf")),
                memory_total_bytes=_size(_inner(entry, "vram").get("size")),
                driver_version=_text(driver.get("version")) or _text(driver.get("driver_version")),
                power_limit_w=_first(
                    _quantity(board.get(name), {"W": 1.0}) for name in ("socket_power_limit", "socket_power")
                ),
                pcie_generation_max=_whole(
                    re.sub(r"^Gen\s*", "", str(bus.get("pcie_interface_version", "")))
                ),
                pcie_width_max=_whole(bus.get("max_pcie_width")),
            )
        )
    return tuple(found)


def rocm_smi_gpus(text: str) -> tuple[Gpu, ...]:
    """Read `rocm-smi ... --json`: an object a card, and one for the system; names differ in case by version."""
    document = _json(text)
    found: list[Gpu] = []
    cards = document if isinstance(document, dict) else {}
    lowered = {
        str(key).lower(): {str(name).lower(): value for name, value in card.items()}
        for key, card in cards.items()
        if isinstance(card, dict)
    }
    driver = _text(lowered.get("system", {}).get("driver version"))
    for key, card in lowered.items():
        match = re.fullmatch(r"card:?(\d{1,4})", key)
        if match is None or len(found) >= _GPUS_LIMIT:
            continue
        found.append(
            Gpu(
                index=int(match[1]),
                vendor="amd",
                name=_first(_text(card.get(name)) for name in ("card series", "device name", "card model")),
                memory_total_bytes=_whole(card.get("vram total memory (b)")),
                driver_version=_text(card.get("driver version")) or driver,
            )
        )
    return tuple(sorted(found, key=lambda gpu: gpu.index))


def xpu_smi_gpus(text: str) -> tuple[Gpu, ...]:
    """Read `xpu-smi discovery -j`: `device_list`, or one device where one was asked for."""
    document = _json(text)
    entries = document.get("device_list", [document]) if isinstance(document, dict) else document
    found = []
    for entry in _mappings(entries):
        number = _whole(entry.get("device_id"))
        if number is None or number < 0 or entry.get("device_function_type") == "virtual":
            continue
        found.append(
            Gpu(
                index=number,
                vendor="intel",
                name=_text(entry.get("device_name")),
                uuid=_text(entry.get("uuid")),
                pci_bus_id=_text(entry.get("pci_bdf_address")),
                memory_total_bytes=_whole(entry.get("memory_physical_size_byte")),
                driver_version=_text(entry.get("driver_version")),
                pcie_generation_max=_whole(entry.get("pcie_generation")),
                pcie_width_max=_whole(entry.get("pcie_max_link_width")),
            )
        )
    return tuple(found)


def _rows(text: str, columns: int) -> list[list[str]]:
    """Split CSV lines of exactly so many columns; a name with a comma in it is put together again."""
    rows = []
    for line in text.splitlines()[:_GPUS_LIMIT]:
        cells = [cell.strip() for cell in line.split(",")]
        if len(cells) > columns:
            extra = len(cells) - columns + 1
            cells = [cells[0], ", ".join(cells[1 : 1 + extra]), *cells[1 + extra :]]
        if len(cells) == columns:
            rows.append(cells)
    return rows


def _json(text: str) -> Any:
    """Decode the first JSON document of a text; tools print warnings before it."""
    starts = [at for mark in "{[" if (at := text.find(mark)) >= 0]
    for start in sorted(starts):
        try:
            return msgspec.json.decode(text[start:].encode())
        except (msgspec.MsgspecError, RecursionError, UnicodeEncodeError):
            continue
    return None


def _mappings(entries: object) -> list[Mapping[str, Any]]:
    listed = entries if isinstance(entries, list) else []
    return [entry for entry in listed[:_GPUS_LIMIT] if isinstance(entry, dict)]


def _inner(entry: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    inner = entry.get(name)
    return inner if isinstance(inner, dict) else {}


def _text(value: object) -> str | None:
    """Return a text of sense; the words that tools write for "unknown" are None."""
    if not isinstance(value, str):
        return None
    text = clean(value)
    # nvidia-smi puts whatever is no value into brackets: [N/A], [Unknown Error], [GPU requires reset].
    bracketed = text.startswith("[") and text.endswith("]")
    return (
        None if bracketed or text.lower() in ("", "n/a", "not supported", "unknown", "none", "err!") else text
    )


def _float(value: object) -> float | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return float(value) if abs(value) < 1e18 else None
    return float(value) if isinstance(value, str) and _NUMBER.fullmatch(value.strip()) else None


def _whole(value: object) -> int | None:
    number = _float(value)
    return int(number) if number is not None and number.is_integer() else None


def _quantity(value: object, units: Mapping[str, float]) -> float | None:
    """Read `{"value": 300, "unit": "W"}`, or a bare number, which has the first of the units."""
    unit = next(iter(units))
    if isinstance(value, dict):
        unit, value = str(value.get("unit", unit)), value.get("value")
    number = _float(value)
    return number * units[unit] if number is not None and unit in units else None


def _size(value: object) -> int | None:
    size = _quantity(value, {"MB": _BYTES["MB"], **_BYTES})
    return None if size is None else int(size)


def _switch(value: str) -> bool | None:
    return {"enabled": True, "disabled": False}.get(value.strip("[]").lower())


def _first(values: Iterable[T | None]) -> T | None:
    return next((value for value in values if value is not None), None)
