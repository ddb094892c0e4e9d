"""GPUs from the vendors' tools: outputs as they are printed, and as they should not be."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nameplate.hosts import tools
from nameplate.hosts.diagnostic import Diagnostic
from nameplate.hosts.gpu import Gpu

NVIDIA = """0, NVIDIA GeForce RTX 5090, 595.79, 00000000:01:00.0, 2, 16, 600.00
1, NVIDIA H100 80GB HBM3, 595.79, 00000000:02:00.0, 5, 16, [N/A]
"""
NVIDIA_MORE = """0, GPU-aaaa, 32607, 5, 16, Default, [N/A], Disabled
1, GPU-bbbb, [N/A], 5, 16, Exclusive_Process, Enabled, Enabled
"""

AMD = """{"gpu_data": [{"gpu": 0,
  "asic": {"market_name": "AMD Instinct MI300X", "asic_serial": "0x1", "num_compute_units": 304},
  "bus": {"bdf": "0000:05:00.0", "max_pcie_width": 16, "max_pcie_speed": {"value": 32, "unit": "GT/s"},
          "pcie_interface_version": "Gen 5", "slot_type": "OAM"},
  "limit": {"max_power": {"value": 750, "unit": "W"}, "socket_power": {"value": 700, "unit": "W"}},
  "driver": {"name": "amdgpu", "version": "6.12.12"},
  "vram": {"type": "HBM", "size": {"value": 196592, "unit": "MB"}}}]}"""
# The oldest versions print a bare list; the newest put each controller's limit apart.
AMD_PPT = """[{"gpu": 3, "asic": {"market_name": "N/A"}, "board": {"product_name": "MI350X OAM"},
  "bus": {"bdf": "N/A", "max_pcie_width": "N/A", "pcie_interface_version": "N/A"},
  "limit": {"ppt0": {"socket_power_limit": {"value": 1000, "unit": "W"}}, "ppt1": {"socket_power_limit": "N/A"}},
  "driver": "N/A", "vram": {"size": {"value": 288, "unit": "GB"}}}]"""

ROCM = """WARNING: AMD GPU device(s) is/are in a low-power state. Check power control/runtime_status

{"card1": {"VRAM Total Memory (B)": "17163091968", "VRAM Total Used Memory (B)": "1", "Card series": "Navi 21"},
 "card0": {"VRAM Total Memory (B)": "68702699520", "Card Series": "AMD Instinct MI250X", "Card Model": "0x740c"},
 "system": {"Driver version": "6.8.5"}}"""

XPU = """{"device_list": [
 {"device_function_type": "physical", "device_id": 0, "device_name": "Intel(R) Arc(TM) Pro B60 Graphics",
  "device_type": "GPU", "drm_device": "/dev/dri/card0", "pci_bdf_address": "0000:4d:00.0", "pci_device_id": "0xe211",
  "uuid": "00000000-0000-004d-0000-0000e2118086", "vendor_name": "Intel(R) Corporation"},
 {"device_function_type": "virtual", "device_id": 1, "device_name": "Intel(R) Arc(TM) Pro B60 Graphics"}]}"""


def said(name: str, stdout: str, returncode: int | None = 0, did_not_run: str | None = None) -> Diagnostic:
    """Return a tool's answer."""
    return Diagnostic(
        name=name, command=("tool",), returncode=returncode, stdout=stdout, did_not_run=did_not_run
    )


def test_nvidia_smi() -> None:
    """Both queries are put together by index; what is in brackets is unknown."""
    first, second = tools.nvidia_smi_gpus(NVIDIA, NVIDIA_MORE)
    assert first == Gpu(
        index=0,
        vendor="nvidia",
        name="NVIDIA GeForce RTX 5090",
        uuid="GPU-aaaa",
        pci_bus_id="00000000:01:00.0",
        memory_total_bytes=32607 << 20,
        driver_version="595.79",
        power_limit_w=600.0,
        pcie_generation=2,
        pcie_generation_max=5,
        pcie_width=16,
        pcie_width_max=16,
        compute_mode="Default",
        ecc=None,
        persistence=False,
    )
    assert second.power_limit_w is None and second.memory_total_bytes is None
    assert (second.ecc, second.persistence, second.compute_mode) == (True, True, "Exclusive_Process")


def test_nvidia_smi_without_the_second_query() -> None:
    """Where only the first query is answered, the rest is unknown."""
    first = tools.nvidia_smi_gpus(NVIDIA)[0]
    assert first.name == "NVIDIA GeForce RTX 5090" and first.memory_total_bytes is None and first.ecc is None


def test_nvidia_errors_in_brackets() -> None:
    """A GPU that fell off or a limit that cannot be read leaves its fields open."""
    gpu = tools.nvidia_smi_gpus(
        "0, [Unknown Error], 595.79, [GPU requires reset], ERR!, 16, [Unknown Error]"
    )[0]
    assert (gpu.name, gpu.pci_bus_id, gpu.pcie_generation, gpu.power_limit_w) == (None, None, None, None)
    assert gpu.pcie_width == 16


def test_nvidia_name_with_a_comma() -> None:
    """A comma inside a name moves no column."""
    gpu = tools.nvidia_smi_gpus("0, NVIDIA X, rev 2, 595.79, 0:1, 2, 16, 600.00")[0]
    assert gpu.name == "NVIDIA X, rev 2" and gpu.power_limit_w == 600.0


@pytest.mark.parametrize(
    "text",
    [
        "",
        "No devices were found",
        "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.",
        "x, y, z, a, b, c, d",
        "-1, n, d, b, 1, 1, 1",
        "9" * 5000 + ", n, d, b, 1, 1, 1",
    ],
)
def test_no_nvidia_gpu(text: str) -> None:
    """A sentence instead of a table is no GPU."""
    assert tools.nvidia_smi_gpus(text) == ()


def test_amd_smi() -> None:
    """The nested document of AMD's tool gives name, address, memory, driver, limit and link."""
    assert tools.amd_smi_gpus(AMD) == (
        Gpu(
            index=0,
            vendor="amd",
            name="AMD Instinct MI300X",
            pci_bus_id="0000:05:00.0",
            memory_total_bytes=196592 << 20,
            driver_version="6.12.12",
            power_limit_w=700.0,
            pcie_generation_max=5,
            pcie_width_max=16,
        ),
    )


def test_amd_smi_other_shapes() -> None:
    """A bare list, limits by controller, other units and N/A are read as well."""
    gpu = tools.amd_smi_gpus(AMD_PPT)[0]
    assert (gpu.index, gpu.name, gpu.power_limit_w, gpu.memory_total_bytes) == (
        3,
        "MI350X OAM",
        1000.0,
        288 << 30,
    )
    assert (gpu.pci_bus_id, gpu.driver_version, gpu.pcie_width_max, gpu.pcie_generation_max) == (None,) * 4


def test_rocm_smi() -> None:
    """Warnings before the document and other cases of the names do no harm; bytes stay bytes."""
    first, second = tools.rocm_smi_gpus(ROCM)
    assert (first.index, first.name, first.memory_total_bytes) == (0, "AMD Instinct MI250X", 68702699520)
    assert (second.index, second.name, second.driver_version) == (1, "Navi 21", "6.8.5")


def test_xpu_smi() -> None:
    """Intel's list gives its physical devices."""
    (gpu,) = tools.xpu_smi_gpus(XPU)
    assert (gpu.vendor, gpu.name, gpu.pci_bus_id) == (
        "intel",
        "Intel(R) Arc(TM) Pro B60 Graphics",
        "0000:4d:00.0",
    )
    assert gpu.memory_total_bytes is None


def test_xpu_smi_of_one_device() -> None:
    """The longer answer for one device is read too, with its numbers as texts."""
    one = (
        '{"device_id": 0, "device_name": "Max 1550", "memory_physical_size_byte": "68719476736", '
        '"pcie_generation": "5", "pcie_max_link_width": "16", "driver_version": "I915_23.10.32"}'
    )
    (gpu,) = tools.xpu_smi_gpus(one)
    assert (gpu.memory_total_bytes, gpu.pcie_generation_max, gpu.pcie_width_max) == (64 << 30, 5, 16)


def test_all_vendors_together() -> None:
    """A host with several vendors lists all; AMD's older tool is asked only where the newer told nothing."""
    answers = [
        said("nvidia_smi_query", NVIDIA),
        said("amd_smi_static", AMD),
        said("rocm_smi", ROCM),
        said("xpu_smi_discovery", XPU),
    ]
    gpus, source = tools.gpus_told(answers)
    assert [gpu.vendor for gpu in gpus] == ["nvidia", "nvidia", "amd", "intel"]
    assert source == "nvidia-smi and amd-smi and xpu-smi"
    gpus, source = tools.gpus_told([said("amd_smi_static", "", 1), said("rocm_smi", ROCM)])
    assert len(gpus) == 2 and source == "rocm-smi"


def test_failed_tools_tell_nothing() -> None:
    """What a tool printed before it failed or was killed counts for nothing."""
    failed = [said("nvidia_smi_query", NVIDIA, 9), said("amd_smi_static", AMD, None, "it was killed")]
    assert tools.gpus_told(failed) == ((), None)


NAMES = (
    *(
        "gpu_data",
        "gpu",
        "asic",
        "bus",
        "limit",
        "ppt0",
        "vram",
        "size",
        "value",
        "unit",
        "driver",
        "card0",
        "board",
    ),
    *("device_list", "device_id", "market_name", "max_pcie_width", "system", "socket_power"),
)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.sampled_from(["N/A", "16", "Gen 5"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=5),
    max_leaves=20,
)


@given(JSON)
def test_any_document_is_survived(document: object) -> None:
    """Whatever JSON a tool prints, its parser answers with GPUs that have an index."""
    text = msgspec.json.encode(document).decode()
    for parse in (tools.amd_smi_gpus, tools.rocm_smi_gpus, tools.xpu_smi_gpus, tools.nvidia_smi_gpus):
        assert all(gpu.index >= 0 for gpu in parse(text))


@given(st.text(max_size=200))
def test_any_text_is_survived(text: str) -> None:
    """Whatever a tool prints, no parser raises."""
    for parse in (tools.amd_smi_gpus, tools.rocm_smi_gpus, tools.xpu_smi_gpus, tools.nvidia_smi_gpus):
        parse(text)
