"""Where samples of GPUs come from: NVML; without it nvidia-smi; for AMD the kernel's own files."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from nameplate.hosts.cpuinfo import whole
from nameplate.hosts.diagnostic import Probe, run
from nameplate.hosts.machine import read_text
from nameplate.hosts.nvml import Nvml, NvmlUnavailable
from nameplate.hosts.sample import GpuSample, throttle_names

# A reading that takes longer tells of another moment than its line says.
READ_LIMIT_S = 3.0

_FIELDS = "index,uuid,utilization.gpu,utilization.memory,memory.used,power.draw,temperature.gpu,clocks.sm,clocks.mem"
# Newest name first; nvidia-smi refuses a query as a whole for one field that it does not know.
_REASON_FIELDS = ("clocks_event_reasons.active", "clocks_throttle_reasons.active", "")
_MIB = 1 << 20
_AMD_VENDOR = "0x1002"


class Source(Protocol):
    """Read all GPUs of this machine once."""

    def read(self) -> list[GpuSample]: ...


class Unavailable(Exception):  # noqa: N818 - a reason, not a fault
    """Say why this machine's GPUs cannot be sampled."""


class NvidiaSmiSource:
    """Sample by running nvidia-smi each time, where NVML cannot be loaded; it has no energy counter."""

    def __init__(self, ask: Callable[[Probe, float], tuple[int | None, str, str]] | None = None) -> None:
        self._ask = ask or _ask_tool
        self._reasons = list(_REASON_FIELDS)

    def read(self) -> list[GpuSample]:
        why = ""
        while self._reasons:
            fields = ",".join(part for part in (_FIELDS, self._reasons[0]) if part)
            t_ns = time.monotonic_ns()
            probe = Probe(
                "nvidia_smi_sample", ("nvidia-smi", f"--query-gpu={fields}", "--format=csv,noheader,nounits")
            )
            code, out, why = self._ask(probe, READ_LIMIT_S)
            if code == 0:
                return smi_samples(out, t_ns)
            if len(self._reasons) == 1 or "not a valid field" not in (out + why).lower():
                why = why or out.partition("\n")[0]
                break
            self._reasons.pop(0)
        return [GpuSample(t_ns=time.monotonic_ns(), source="nvidia-smi", error=f"nvidia-smi: {why[:200]}")]


def _ask_tool(probe: Probe, deadline_s: float) -> tuple[int | None, str, str]:
    said = run(probe, deadline_s)
    return said.returncode, said.stdout, said.did_not_run or said.stderr


def smi_samples(text: str, t_ns: int) -> list[GpuSample]:
    """Read the CSV of one nvidia-smi query: memory is MiB, power is watts, reasons are a mask in hexadecimal."""
    samples = []
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.split(",")]
        if len(cells) not in (9, 10) or (index := whole(cells[0])) is None:
            continue
        power_w = _decimal(cells[5])
        memory_mib = whole(cells[4])
        mask = cells[9] if len(cells) == 10 else ""
        sample = GpuSample(
            t_ns=t_ns,
            source="nvidia-smi",
            index=index,
            uuid=cells[1] if cells[1].startswith("GPU-") else None,
            utilisation_percent=whole(cells[2]),
            memory_utilisation_percent=whole(cells[3]),
            memory_used_bytes=None if memory_mib is None else memory_mib * _MIB,
            power_milliwatts=None if power_w is None else round(power_w * 1000),
            temperature_c=whole(cells[6]),
            sm_clock_mhz=whole(cells[7]),
            memory_clock_mhz=whole(cells[8]),
            throttle_reasons=throttle_names(int(mask, 16))
            if re.fullmatch("0x[0-9A-Fa-f]{1,16}", mask)
            else None,
        )
        if sample.empty:
            error = "nvidia-smi tells nothing of this GPU"
            sample = GpuSample(t_ns=t_ns, source="nvidia-smi", index=index, uuid=sample.uuid, error=error)
        samples.append(sample)
    return samples or [GpuSample(t_ns=t_ns, source="nvidia-smi", error="nvidia-smi lists no GPU")]


class AmdGpuSource:
    """Sample AMD's GPUs from /sys/class/drm (kernel documentation, "AMDGPU driver, power and thermal")."""

    def __init__(self, root: Path = Path("/")) -> None:
        cards = root / "sys/class/drm"
        try:
            names = sorted(path.name for path in cards.iterdir() if re.fullmatch(r"card\d{1,4}", path.name))
        except OSError:
            names = []
        devices = [cards / name / "device" for name in sorted(names, key=lambda name: int(name[4:]))]
        # A display adapter without a load figure is no GPU that could serve.
        self._devices = [
            device
            for device in devices
            if _word(device / "vendor") == _AMD_VENDOR and (device / "gpu_busy_percent").exists()
        ]

    @property
    def count(self) -> int:
        return len(self._devices)

    def read(self) -> list[GpuSample]:
        return [self._sample(index, device) for index, device in enumerate(self._devices)]

    def _sample(self, index: int, device: Path) -> GpuSample:
        t_ns = time.monotonic_ns()
        try:
            sensor = next(iter(sorted((device / "hwmon").iterdir())), device)
        except OSError:
            sensor = device
        power_uw = _count(sensor / "power1_average")
        power_uw = _count(sensor / "power1_input") if power_uw is None else power_uw
        celsius = _count(sensor / "temp1_input")
        hertz = [_count(sensor / f"freq{place}_input") for place in (1, 2)]
        mhz = [None if value is None else value // 1_000_000 for value in hertz]
        sample = GpuSample(
            t_ns=t_ns,
            source="amdgpu",
            index=index,
            uuid=_word(device / "unique_id"),
            utilisation_percent=_count(device / "gpu_busy_percent"),
            memory_utilisation_percent=_count(device / "mem_busy_percent"),
            memory_used_bytes=_count(device / "mem_info_vram_used"),
            power_milliwatts=None if power_uw is None else power_uw // 1000,
            temperature_c=None if celsius is None else celsius // 1000,
            sm_clock_mhz=mhz[0],
            memory_clock_mhz=mhz[1],
        )
        if not sample.empty:
            return sample
        error = "the driver's files tell nothing of this GPU"
        return GpuSample(t_ns=t_ns, source="amdgpu", index=index, uuid=sample.uuid, error=error)


def open_source(root: Path = Path("/")) -> Source:
    """Return the best source that this machine has; Unavailable says why there is none."""
    reasons = []
    try:
        nvml = Nvml.open()
        if nvml.count:
            return nvml
        reasons.append("NVML lists no GPU")
    except NvmlUnavailable as reason:
        reasons.append(str(reason))
    smi = NvidiaSmiSource()
    first = smi.read()
    if any(sample.error is None for sample in first):
        return smi
    reasons.append(first[0].error or "")
    amd = AmdGpuSource(root)
    if amd.count:
        return amd
    reasons.append("/sys/class/drm has no AMD GPU")
    raise Unavailable("; ".join(reasons))


def _word(path: Path) -> str | None:
    words = (read_text(path, 256) or "").split()
    return words[0] if len(words) == 1 and words[0].isascii() and words[0].isprintable() else None


def _count(path: Path) -> int | None:
    return whole(read_text(path, 256) or "")


def _decimal(text: str) -> float | None:
    return float(text) if re.fullmatch(r"\d{1,9}(\.\d{1,6})?", text) else None
