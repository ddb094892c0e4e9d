"""NVIDIA's management library, through `pynvml` of the package `nvidia-ml-py`, which is optional and loaded when used.

Every call may say that a card does not support it: such a field is None. `python -m nameplate.hosts.nvml` prints the
GPUs as JSON; a driver that hangs then holds that process and not the one that measures.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import time
from typing import Any

import msgspec

from nameplate.hosts.cpuinfo import clean
from nameplate.hosts.gpu import Gpu
from nameplate.hosts.sample import GpuSample, throttle_names

MODULE = "pynvml"
NOT_INSTALLED = "pynvml is not installed (the package nvidia-ml-py)"

# nvmlReturn_t: what a card or driver does not have, or we may not read, is unknown; the rest is a fault.
_UNKNOWN_CODES = frozenset({3, 4, 6, 13, 25, 26})
# nvml.h: NVML_TEMPERATURE_GPU, NVML_CLOCK_SM, NVML_CLOCK_MEM.
_TEMPERATURE_GPU, _CLOCK_SM, _CLOCK_MEMORY = 0, 1, 2
_COMPUTE_MODES = {0: "Default", 1: "Exclusive_Thread", 2: "Prohibited", 3: "Exclusive_Process"}
# nvml.h: NVML_VALUE_NOT_AVAILABLE, as 32 and 64 bits.
_NOT_AVAILABLE = frozenset({(1 << 32) - 1, (1 << 64) - 1})
_COUNT_LIMIT = 256


class NvmlUnavailable(Exception):  # noqa: N818 - a reason, not a fault
    """Say why nothing can be read through the library."""


def installed() -> bool:
    """Tell whether the module is there, without loading it."""
    try:
        return importlib.util.find_spec(MODULE) is not None
    except (ImportError, ValueError):
        return False


class Nvml:
    """Ask the library; `faults` collects what went wrong beyond "not supported"."""

    def __init__(self, module: Any) -> None:
        self._module = module
        self.faults: list[str] = []
        self._handles: list[Any] = []
        try:
            module.nvmlInit()
        except Exception as error:
            raise NvmlUnavailable(f"NVML could not be started: {_words(error)}") from None
        count = _number(self._ask("nvmlDeviceGetCount"))
        if count is None:
            why = "; ".join(self.faults) or "it tells no number of GPUs"
            raise NvmlUnavailable(f"NVML cannot count the GPUs: {why}")
        self._handles = [
            self._ask("nvmlDeviceGetHandleByIndex", index) for index in range(min(count, _COUNT_LIMIT))
        ]
        self._uuids = [_text(self._of(index, "nvmlDeviceGetUUID")) for index in range(self.count)]

    @classmethod
    def open(cls) -> Nvml:
        """Load and start the library; NvmlUnavailable says why it cannot be used."""
        try:
            module = importlib.import_module(MODULE)
        except ModuleNotFoundError:
            raise NvmlUnavailable(NOT_INSTALLED) from None
        except Exception as error:  # whatever a module does while it is loaded
            raise NvmlUnavailable(f"pynvml cannot be loaded: {_words(error)}") from None
        return cls(module)

    def close(self) -> None:
        self._ask("nvmlShutdown")

    @property
    def count(self) -> int:
        return len(self._handles)

    def gpus(self) -> tuple[Gpu, ...]:
        """Describe every GPU."""
        driver = _text(self._ask("nvmlSystemGetDriverVersion"))
        cuda = _number(self._ask("nvmlSystemGetCudaDriverVersion"))
        # The library writes 12.4 as 12040.
        cuda_version = None if cuda is None else f"{cuda // 1000}.{cuda % 1000 // 10}"
        return tuple(self._gpu(index, driver, cuda_version) for index in range(self.count))

    def _gpu(self, index: int, driver: str | None, cuda: str | None) -> Gpu:
        def number(name: str) -> int | None:
            return _number(self._of(index, name))

        limit_mw = number("nvmlDeviceGetEnforcedPowerLimit")
        if limit_mw is None:
            limit_mw = number("nvmlDeviceGetPowerManagementLimit")
        ecc = self._of(index, "nvmlDeviceGetEccMode")
        mode = number("nvmlDeviceGetComputeMode")
        return Gpu(
            index=index,
            vendor="nvidia",
            name=_text(self._of(index, "nvmlDeviceGetName")),
            uuid=self._uuids[index],
            pci_bus_id=_text(getattr(self._of(index, "nvmlDeviceGetPciInfo"), "busId", None)),
            memory_total_bytes=_number(getattr(self._of(index, "nvmlDeviceGetMemoryInfo"), "total", None)),
            driver_version=driver,
            cuda_driver_version=cuda,
            power_limit_w=None if limit_mw is None else limit_mw / 1000,
            pcie_generation=number("nvmlDeviceGetCurrPcieLinkGeneration"),
            pcie_generation_max=number("nvmlDeviceGetMaxPcieLinkGeneration"),
            pcie_width=number("nvmlDeviceGetCurrPcieLinkWidth"),
            pcie_width_max=number("nvmlDeviceGetMaxPcieLinkWidth"),
            compute_mode=None if mode is None else _COMPUTE_MODES.get(mode),
            ecc=_switch(ecc[0] if isinstance(ecc, list | tuple) and ecc else None),
            persistence=_switch(number("nvmlDeviceGetPersistenceMode")),
        )

    def read(self) -> list[GpuSample]:
        """Read every GPU once; one that answers nothing is a sample with its error."""
        return [self._sample(index) for index in range(self.count)]

    def _sample(self, index: int) -> GpuSample:
        self.faults.clear()
        t_ns = time.monotonic_ns()
        energy = _number(self._of(index, "nvmlDeviceGetTotalEnergyConsumption"))
        use = self._of(index, "nvmlDeviceGetUtilizationRates")
        memory = self._of(index, "nvmlDeviceGetMemoryInfo")
        reasons = self._of(index, "nvmlDeviceGetCurrentClocksEventReasons")
        if reasons is None:  # its name before driver 535
            reasons = self._of(index, "nvmlDeviceGetCurrentClocksThrottleReasons")
        bits = _number(reasons)
        sample = GpuSample(
            t_ns=t_ns,
            source="nvml",
            index=index,
            uuid=self._uuids[index],
            utilisation_percent=_number(getattr(use, "gpu", None)),
            memory_utilisation_percent=_number(getattr(use, "memory", None)),
            memory_used_bytes=_number(getattr(memory, "used", None)),
            power_milliwatts=_number(self._of(index, "nvmlDeviceGetPowerUsage")),
            temperature_c=_number(self._of(index, "nvmlDeviceGetTemperature", _TEMPERATURE_GPU)),
            sm_clock_mhz=_number(self._of(index, "nvmlDeviceGetClockInfo", _CLOCK_SM)),
            memory_clock_mhz=_number(self._of(index, "nvmlDeviceGetClockInfo", _CLOCK_MEMORY)),
            throttle_reasons=None if bits is None else throttle_names(bits),
            energy_millijoules=energy,
        )
        if not sample.empty:
            return sample
        why = self.faults[0] if self.faults else "the driver tells nothing of this GPU"
        return GpuSample(t_ns=t_ns, source="nvml", index=index, uuid=self._uuids[index], error=why)

    def _of(self, index: int, name: str, *args: int) -> Any:
        handle = self._handles[index]
        return None if handle is None else self._ask(name, handle, *args)

    def _ask(self, name: str, *args: Any) -> Any:
        function = getattr(self._module, name, None)
        if function is None:  # an older or newer pynvml
            return None
        try:
            return function(*args)
        except Exception as error:
            if getattr(error, "value", None) not in _UNKNOWN_CODES:
                self.faults.append(f"{name}: {_words(error)}")
            return None


def _words(error: Exception) -> str:
    return clean(f"{error}") or type(error).__name__


def _number(value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int) or value in _NOT_AVAILABLE:
        return None
    return value


def _text(value: object) -> str | None:
    if isinstance(value, bytes):  # what older versions return
        value = value.decode("utf-8", "replace")
    return (clean(value) or None) if isinstance(value, str) else None


def _switch(value: object) -> bool | None:
    number = _number(value)
    return None if number is None else number == 1


def main() -> int:
    """Print the GPUs as JSON; 3 and the reason on stderr where the library cannot be used."""
    try:
        nvml = Nvml.open()
    except NvmlUnavailable as reason:
        print(reason, file=sys.stderr)
        return 3
    gpus = nvml.gpus()
    sys.stdout.buffer.write(msgspec.json.encode(gpus) + b"\n")
    for fault in nvml.faults:
        print(fault, file=sys.stderr)
    nvml.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
