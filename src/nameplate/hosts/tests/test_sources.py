"""Where samples come from."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nameplate.hosts.diagnostic import Probe
from nameplate.hosts.nvml import Nvml
from nameplate.hosts.sample import GpuSample, read_samples, throttle_names
from nameplate.hosts.sources import AmdGpuSource, NvidiaSmiSource, Unavailable, open_source, smi_samples
from nameplate.hosts.tests.fakes import fake_pynvml

SMI = """0, GPU-aaaa, 98, 40, 30123, 575.31, 66, 2437, 14001, 0x0000000000000004
1, GPU-bbbb, [N/A], [N/A], [N/A], [N/A], [N/A], [N/A], [N/A], [N/A]
"""


def test_throttle_names() -> None:
    """Bits are told by name; one that has none yet is told by its value."""
    assert throttle_names(0) == ()
    assert throttle_names(0x1 | 0x8 | 0x80) == ("gpu_idle", "hw_slowdown", "hw_power_brake_slowdown")
    assert throttle_names(1 << 40) == ("unknown_0x10000000000",)
    assert throttle_names(-1) == ()


def test_nvidia_smi_samples() -> None:
    """MiB, watts and the mask become bytes, milliwatts and names; a GPU that tells nothing is an error."""
    first, second = smi_samples(SMI, 5)
    assert first == GpuSample(
        t_ns=5,
        source="nvidia-smi",
        index=0,
        uuid="GPU-aaaa",
        utilisation_percent=98,
        memory_utilisation_percent=40,
        memory_used_bytes=30123 << 20,
        power_milliwatts=575310,
        temperature_c=66,
        sm_clock_mhz=2437,
        memory_clock_mhz=14001,
        throttle_reasons=("sw_power_cap",),
    )
    assert second.index == 1 and second.error is not None


def test_older_nvidia_smi_is_asked_again() -> None:
    """A tool that does not know the newer name of a field is asked for the older one, and then that one is kept."""
    asked: list[str] = []

    def ask(probe: Probe, _: float) -> tuple[int | None, str, str]:
        asked.append(probe.command[1])
        if "clocks_event_reasons" in probe.command[1]:
            return 2, 'Field "clocks_event_reasons.active" is not a valid field to query.', ""
        return 0, SMI, ""

    source = NvidiaSmiSource(ask)
    assert source.read()[0].throttle_reasons == ("sw_power_cap",)
    source.read()
    assert ["clocks_event" in query for query in asked] == [True, False, False]


@pytest.mark.parametrize(
    ("code", "out", "why", "said"),
    [
        (None, "", "it was killed after 3 s without an end", "killed"),
        (9, "NVIDIA-SMI has failed because it couldn't communicate", "", "has failed"),
        (0, "No devices were found", "", "no GPU"),
        (2, "is not a valid field to query", "", "valid field"),
    ],
)
def test_failing_nvidia_smi_is_an_error_line(code: int | None, out: str, why: str, said: str) -> None:
    """Whatever goes wrong is one sample that says it."""
    (sample,) = NvidiaSmiSource(lambda _, __: (code, out, why)).read()
    assert sample.error is not None and said in sample.error and sample.index is None


def test_amdgpu_files(tmp_path: Path) -> None:
    """AMD's GPUs are read from the kernel's files, in the order of their cards; other cards are not GPUs of theirs."""
    for card, files in {
        "card2": {
            "vendor": "0x1002",
            "gpu_busy_percent": "88",
            "mem_info_vram_used": "123456789",
            "unique_id": "ab",
        },
        "card10": {"vendor": "0x1002", "gpu_busy_percent": ""},
        "card0": {"vendor": "0x1a03"},
        "card1": {"vendor": "0x1002"},
        "card2-DP-1": {"vendor": "0x1002", "gpu_busy_percent": "1"},
    }.items():
        device = tmp_path / "sys/class/drm" / card / "device"
        device.mkdir(parents=True)
        for name, text in files.items():
            (device / name).write_text(text + "\n")
    sensor = tmp_path / "sys/class/drm/card2/device/hwmon/hwmon4"
    sensor.mkdir(parents=True)
    for name, text in {
        "power1_average": "250000000",
        "temp1_input": "61000",
        "freq1_input": "2100000000",
        "freq2_input": "1300000000",
    }.items():
        (sensor / name).write_text(text)
    source = AmdGpuSource(tmp_path)
    first, second = source.read()
    assert source.count == 2
    assert (first.utilisation_percent, first.memory_used_bytes, first.uuid) == (88, 123456789, "ab")
    assert (first.power_milliwatts, first.temperature_c) == (250000, 61)
    assert (first.sm_clock_mhz, first.memory_clock_mhz) == (2100, 1300)
    assert second.error is not None and second.index == 1
    assert AmdGpuSource(tmp_path / "none").read() == []


def test_nvml_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where NVML lists GPUs it is the source."""
    monkeypatch.setitem(sys.modules, "pynvml", fake_pynvml())
    assert isinstance(open_source(), Nvml)


def test_no_source_says_what_was_tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without any source is told with all that was tried."""
    monkeypatch.setitem(sys.modules, "pynvml", None)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(
        Unavailable, match=r"pynvml is not installed.*nvidia-smi is not installed.*no AMD GPU"
    ):
        open_source(tmp_path)


@given(st.text(alphabet=st.sampled_from(list("0123456789,. GPU-x[N/A]\n")), max_size=200))
def test_any_table_is_survived(text: str) -> None:
    """Whatever nvidia-smi prints, there is at least one sample, and none without a reading or an error."""
    samples = smi_samples(text, 1)
    assert samples and all((sample.error is None) != sample.empty for sample in samples)


def test_reading_the_file_back(tmp_path: Path) -> None:
    """Lines that are no sample and a torn tail are dropped and said; a missing file has no samples."""
    file = tmp_path / "gpu.jsonl"
    assert read_samples(file) == ([], [])
    file.write_bytes(
        b'{"t_ns": 1, "index": 0, "power_milliwatts": 5, "new_field": 1}\n[]\n\xff\n{"t_ns": 2, "error": "x"}\n{"t_n'
    )
    samples, dropped = read_samples(file)
    assert samples == [GpuSample(t_ns=1, index=0, power_milliwatts=5), GpuSample(t_ns=2, error="x")]
    assert dropped == [
        "gpu.jsonl: line 2 is no sample",
        "gpu.jsonl: line 3 is no sample",
        "gpu.jsonl: line 5 is cut",
    ]
