"""A stand-in for pynvml, as text so that a process of its own can load it too, and tools as scripts on PATH."""

from __future__ import annotations

import types
from pathlib import Path
from typing import Any

PYNVML = """
import time

UNSUPPORTED = set()
LOST = set()
COUNT = 2
START_ERROR = None
HANG_IN = None


class NVMLError(Exception):
    def __init__(self, value, words):
        super().__init__(words)
        self.value = value


class Bag:
    def __init__(self, **values):
        self.__dict__.update(values)


def answer(name, handle, value):
    if HANG_IN == name:
        time.sleep(600)
    if name in UNSUPPORTED:
        raise NVMLError(3, "Not Supported")
    if handle in LOST:
        raise NVMLError(15, "GPU is lost")
    return value


def nvmlInit():
    if START_ERROR:
        raise NVMLError(9, START_ERROR)


def nvmlShutdown():
    pass


def nvmlDeviceGetCount():
    return COUNT


def nvmlDeviceGetHandleByIndex(index):
    return index


def nvmlSystemGetDriverVersion():
    return b"570.86.15"


def nvmlSystemGetCudaDriverVersion():
    return 12080


def nvmlDeviceGetTemperature(handle, sensor):
    return answer("nvmlDeviceGetTemperature", handle, 61)


def nvmlDeviceGetClockInfo(handle, kind):
    return answer("nvmlDeviceGetClockInfo", handle, {1: 1980, 2: 2619}[kind])


def make(name, value):
    def function(handle):
        return answer(name, handle, value(handle) if callable(value) else value)

    globals()[name] = function


make("nvmlDeviceGetName", "NVIDIA H100 80GB HBM3")
make("nvmlDeviceGetUUID", lambda handle: f"GPU-0000000{handle}")
make("nvmlDeviceGetPciInfo", lambda handle: Bag(busId=f"0000000{handle}:65:00.0".encode()))
make("nvmlDeviceGetMemoryInfo", Bag(total=85520809984, used=70000000000, free=0))
make("nvmlDeviceGetEnforcedPowerLimit", 700000)
make("nvmlDeviceGetPowerManagementLimit", 650000)
make("nvmlDeviceGetCurrPcieLinkGeneration", 4)
make("nvmlDeviceGetMaxPcieLinkGeneration", 5)
make("nvmlDeviceGetCurrPcieLinkWidth", 8)
make("nvmlDeviceGetMaxPcieLinkWidth", 16)
make("nvmlDeviceGetComputeMode", 0)
make("nvmlDeviceGetEccMode", [1, 1])
make("nvmlDeviceGetPersistenceMode", 0)
make("nvmlDeviceGetUtilizationRates", Bag(gpu=97, memory=41))
make("nvmlDeviceGetPowerUsage", 512345)
make("nvmlDeviceGetCurrentClocksEventReasons", 0x4 | 0x40)
make("nvmlDeviceGetTotalEnergyConsumption", 987654321)
"""


def fake_pynvml(**settings: object) -> Any:
    """Return the module with these settings, for use in this process."""
    module = types.ModuleType("pynvml")
    exec(PYNVML, module.__dict__)
    module.__dict__.update(settings)
    return module


def write_pynvml(directory: Path, **settings: object) -> None:
    """Write the module where a process that has the directory on its PYTHONPATH finds it."""
    lines = [f"{name} = {value!r}" for name, value in settings.items()]
    (directory / "pynvml.py").write_text(PYNVML + "\n".join(lines) + "\n")


def write_tool(directory: Path, name: str, script: str) -> Path:
    """Write a shell script as a tool."""
    path = directory / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path
