"""What one GPU did at one moment: a line of `gpu.jsonl`.

The file holds one JSON object a line, one line a GPU an interval (a second by default), `t_ns` on CLOCK_MONOTONIC.
What a GPU does not tell is left out, which means null. A failed reading is a line with `error`; without `index` it
concerns all GPUs. A last line without line feed is a torn tail.
"""

from __future__ import annotations

from pathlib import Path

import msgspec
from msgspec import Struct, structs

FILE_NAME = "gpu.jsonl"
_LINE_LIMIT_BYTES = 64 << 10

# nvml.h, nvmlClocksEventReasons (clocks throttle reasons before driver 535), by bit.
_REASONS = (
    "gpu_idle",
    "applications_clocks_setting",
    "sw_power_cap",
    "hw_slowdown",
    "sync_boost",
    "sw_thermal_slowdown",
    "hw_thermal_slowdown",
    "hw_power_brake_slowdown",
    "display_clock_setting",
    "board_limit",
    "reliability",
)


class GpuSample(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Hold one reading; `source` is nvml, nvidia-smi or amdgpu.

    `energy_millijoules` counts since the driver was loaded. `throttle_reasons` are NVML's names of why the clocks are
    not higher, empty where they are not held back; `gpu_idle` among them is no fault.
    """

    t_ns: int
    source: str | None = None
    index: int | None = None
    uuid: str | None = None
    utilisation_percent: int | None = None
    memory_utilisation_percent: int | None = None
    memory_used_bytes: int | None = None
    power_milliwatts: int | None = None
    temperature_c: int | None = None
    sm_clock_mhz: int | None = None
    memory_clock_mhz: int | None = None
    throttle_reasons: tuple[str, ...] | None = None
    energy_millijoules: int | None = None
    error: str | None = None

    @property
    def empty(self) -> bool:
        """Tell whether nothing at all was read."""
        told = structs.asdict(self)
        return all(
            told[name] is None for name in told if name not in ("t_ns", "source", "index", "uuid", "error")
        )


def throttle_names(bits: int) -> tuple[str, ...]:
    """Name the bits of NVML's mask of reasons; one that has no name yet is told by its value."""
    if bits < 0:
        return ()
    return tuple(
        _REASONS[place] if place < len(_REASONS) else f"unknown_{1 << place:#x}"
        for place in range(bits.bit_length())
        if bits >> place & 1
    )


def read_samples(file: Path) -> tuple[list[GpuSample], list[str]]:
    """Read `gpu.jsonl`; return its samples and a sentence for each thing that was dropped. No file: no samples."""
    samples: list[GpuSample] = []
    dropped: list[str] = []
    decoder = msgspec.json.Decoder(GpuSample)
    try:
        with file.open("rb") as lines:
            number = 0
            while line := lines.readline(_LINE_LIMIT_BYTES):
                number += 1
                if not line.endswith(b"\n"):
                    dropped.append(f"{file.name}: line {number} is cut")
                    continue
                try:
                    samples.append(decoder.decode(line))
                except (msgspec.MsgspecError, RecursionError):
                    dropped.append(f"{file.name}: line {number} is no sample")
    except FileNotFoundError:
        return [], []
    except OSError as error:
        dropped.append(f"{file.name} cannot be read: {error.strerror}")
    return samples, dropped
