"""GPUs through NVML, with a stand-in for its module."""

from __future__ import annotations

import importlib
import sys

import pytest

from nameplate.hosts.nvml import Nvml, NvmlUnavailable
from nameplate.hosts.tests.fakes import fake_pynvml


def test_gpus_are_described() -> None:
    """Every field is read, texts that come as bytes are decoded, milliwatts become watts."""
    first, second = Nvml(fake_pynvml()).gpus()
    assert first.name == "NVIDIA H100 80GB HBM3" and first.uuid == "GPU-00000000"
    assert second.index == 1 and second.pci_bus_id == "00000001:65:00.0"
    assert first.memory_total_bytes == 85520809984
    assert (first.driver_version, first.cuda_driver_version) == ("570.86.15", "12.8")
    assert first.power_limit_w == 700.0
    assert (first.pcie_generation, first.pcie_generation_max) == (4, 5)
    assert (first.pcie_width, first.pcie_width_max) == (8, 16)
    assert (first.compute_mode, first.ecc, first.persistence) == ("Default", True, False)


def test_unsupported_is_null_never_zero() -> None:
    """A call that a card does not support leaves its field open, and that is no fault."""
    unsupported = {
        "nvmlDeviceGetMemoryInfo", "nvmlDeviceGetEnforcedPowerLimit", "nvmlDeviceGetEccMode",
        "nvmlDeviceGetPersistenceMode", "nvmlDeviceGetCurrPcieLinkGeneration", "nvmlDeviceGetPowerUsage",
        "nvmlDeviceGetUtilizationRates", "nvmlDeviceGetTotalEnergyConsumption",
        "nvmlDeviceGetCurrentClocksEventReasons",
    }  # fmt: skip
    library = Nvml(fake_pynvml(UNSUPPORTED=unsupported))
    gpu = library.gpus()[0]
    assert (gpu.memory_total_bytes, gpu.ecc, gpu.persistence, gpu.pcie_generation) == (None, None, None, None)
    assert gpu.power_limit_w == 650.0  # what was set stands in for what is enforced
    sample = library.read()[0]
    assert (sample.power_milliwatts, sample.utilisation_percent, sample.memory_used_bytes) == (
        None,
        None,
        None,
    )
    assert (sample.energy_millijoules, sample.throttle_reasons) == (None, None)
    assert sample.error is None and sample.temperature_c == 61
    assert library.faults == []


def test_absent_functions_are_null() -> None:
    """An older module without a function is the same as a card that does not support it; the older name is tried."""
    module = fake_pynvml()
    module.nvmlDeviceGetCurrentClocksThrottleReasons = module.nvmlDeviceGetCurrentClocksEventReasons
    del module.nvmlDeviceGetCurrentClocksEventReasons
    del module.nvmlDeviceGetPciInfo
    library = Nvml(module)
    assert library.read()[0].throttle_reasons == ("sw_power_cap", "hw_thermal_slowdown")
    assert library.gpus()[0].pci_bus_id is None


def test_sample() -> None:
    """A sample has all readings of one GPU at one time."""
    sample = Nvml(fake_pynvml()).read()[1]
    assert (sample.index, sample.uuid, sample.source) == (1, "GPU-00000001", "nvml")
    assert (sample.utilisation_percent, sample.memory_utilisation_percent) == (97, 41)
    assert (sample.sm_clock_mhz, sample.memory_clock_mhz, sample.temperature_c) == (1980, 2619, 61)
    assert (sample.power_milliwatts, sample.energy_millijoules) == (512345, 987654321)
    assert sample.throttle_reasons == ("sw_power_cap", "hw_thermal_slowdown")


def test_lost_gpu_is_an_error_of_its_own() -> None:
    """A GPU that fell off the bus is a line with the driver's words; the other one is read as ever."""
    first, second = Nvml(fake_pynvml(LOST={1})).read()
    assert first.error is None
    assert second.error is not None and "GPU is lost" in second.error and second.index == 1


def test_value_not_available_is_null() -> None:
    """The library's mark for "not available" is no number."""
    module = fake_pynvml()
    module.make("nvmlDeviceGetPowerUsage", (1 << 32) - 1)
    assert Nvml(module).read()[0].power_milliwatts is None


def test_start_failure_says_why() -> None:
    """A driver that is not loaded is said in the library's words."""
    with pytest.raises(NvmlUnavailable, match="Driver Not Loaded"):
        Nvml(fake_pynvml(START_ERROR="Driver Not Loaded"))


def test_absent_module_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without pynvml the reason names the package that has it."""
    monkeypatch.setitem(sys.modules, "pynvml", None)
    with pytest.raises(NvmlUnavailable, match="pynvml is not installed"):
        Nvml.open()


def test_broken_module_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """A module that fails while it is loaded is a reason, not a traceback."""

    def fail(_: str) -> None:
        raise RuntimeError("odd build")

    monkeypatch.setattr(importlib, "import_module", fail)
    with pytest.raises(NvmlUnavailable, match="odd build"):
        Nvml.open()
