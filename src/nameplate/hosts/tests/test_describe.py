"""A whole host, with tools and a module that are made up."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest

from nameplate.hosts import nvml
from nameplate.hosts.describe import describe, place_of, without_output
from nameplate.hosts.description import HostDescription
from nameplate.hosts.tests.fakes import write_pynvml, write_tool
from nameplate.hosts.tests.test_tools import AMD, NVIDIA

TOOLS = ("nvidia-smi", "amd-smi", "rocm-smi", "xpu-smi", "lscpu")


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a directory that stands first on PATH, and first where modules are looked for."""
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}/bin{os.pathsep}/usr/bin")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
    monkeypatch.setattr(nvml, "installed", lambda: False)
    return tmp_path


@pytest.mark.live
def test_a_machine_without_gpus(tools: Path) -> None:
    """Nothing installed: the machine is described, no GPU is claimed, and every tool says that it did not run."""
    host = describe("client", "the target 10.0.0.1 is not known to be this machine", root=tools)
    assert host.which == "client" and host.place.how.startswith("the target 10.0.0.1")
    assert host.gpus == () and host.gpus_source is None
    assert "pynvml is not installed" in (host.gpus_note or "")
    assert (
        host.diagnostic("nvidia_smi_topo") or host.diagnostics[0]
    ).did_not_run == "nvidia-smi is not installed"
    assert (host.diagnostic("nvml") or host.diagnostics[0]).did_not_run == nvml.NOT_INSTALLED
    assert msgspec.json.decode(msgspec.json.encode(host), type=HostDescription) == host


@pytest.mark.live
def test_nvml_wins(tools: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """NVML's GPUs are the NVIDIA ones; another vendor's tool adds its own; all outputs are kept."""
    monkeypatch.setattr(nvml, "installed", lambda: True)
    write_pynvml(tools)
    write_tool(tools, "nvidia-smi", f"cat <<'END'\n{NVIDIA}END")
    write_tool(tools, "amd-smi", f"cat <<'END'\n{AMD}\nEND")
    host = describe("server", "the target is a loopback address")
    assert host.which == "server"
    assert [gpu.name for gpu in host.gpus] == ["NVIDIA H100 80GB HBM3"] * 2 + ["AMD Instinct MI300X"]
    assert host.gpus_source == "nvml and amd-smi" and host.gpus_note is None
    query = host.diagnostic("nvidia_smi_query")
    assert query is not None and query.ok and "RTX 5090" in query.stdout


@pytest.mark.live
def test_tools_stand_in_for_nvml(tools: Path) -> None:
    """Without pynvml the GPUs come from nvidia-smi, and a topology that fails is kept with its code."""
    script = f"case $1 in topo) echo 'ERROR: Option -m'; exit 255;; *) cat <<'END'\n{NVIDIA}END\n;; esac"
    write_tool(tools, "nvidia-smi", script)
    host = describe("server")
    assert host.gpus_source == "nvidia-smi" and len(host.gpus) == 2
    assert "pynvml is not installed" in (host.gpus_note or "")
    topology = host.diagnostic("nvidia_smi_topo")
    assert topology is not None and (topology.returncode, topology.stdout) == (255, "ERROR: Option -m")


@pytest.mark.live
def test_everything_hangs(tools: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With every tool and the driver's library hanging, the description is there after one deadline."""
    monkeypatch.setattr(nvml, "installed", lambda: True)
    write_pynvml(tools, HANG_IN="nvmlDeviceGetUUID")
    for name in TOOLS:
        write_tool(tools, name, "exec sleep 600")
    start_s = time.monotonic()
    host = describe("server", deadline_s=0.7)
    assert time.monotonic() - start_s < 6
    assert host.gpus == () and "killed after 0.7 s" in (host.gpus_note or "")
    assert all("killed" in (entry.did_not_run or "") for entry in host.diagnostics)


@pytest.mark.live
def test_no_key_in_the_description(tools: Path) -> None:
    """A tool that prints its whole environment tells no key of ours."""
    write_tool(tools, "nvidia-smi", "env")
    raw = msgspec.json.encode(describe("server"))
    assert b"sk-very-secret" not in raw and b"OPENAI_API_KEY" not in raw


@pytest.mark.live
def test_without_output(tools: Path) -> None:
    """The short form keeps what ran and how it ended, and drops what it printed."""
    write_tool(tools, "nvidia-smi", "echo text")
    short = without_output(describe("server"))
    assert all(not entry.stdout and not entry.stderr for entry in short.diagnostics)
    assert any(entry.returncode == 0 for entry in short.diagnostics)


def test_place_of_this_machine() -> None:
    """Loopback is here, a documentation address is not."""
    assert place_of("127.0.0.1").which == "server"
    assert place_of("192.0.2.1").which == "client"
    assert place_of("192.0.2.1", "this").which == "server"


@pytest.mark.live
def test_import_loads_no_library() -> None:
    """Importing the room loads neither NVML nor anything that starts."""
    code = (
        "import sys, nameplate.hosts.describe, nameplate.hosts.summary, nameplate.hosts.watch;"
        "print('pynvml' in sys.modules, 'asyncio' in sys.modules)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert out.stdout.split() == ["False", "False"]
