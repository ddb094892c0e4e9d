"""A host's description as facts of an identity."""

from __future__ import annotations

from nameplate.hosts.description import HostDescription
from nameplate.hosts.facts import facts
from nameplate.hosts.gpu import Gpu
from nameplate.hosts.machine import Cpu, Memory, System
from nameplate.hosts.p2p import of_texts
from nameplate.hosts.place import Place, Which


def host(which: Which, *gpus: Gpu, cpu: str | None = "EPYC") -> HostDescription:
    """Return a host with these GPUs."""
    return HostDescription(
        place=Place(which, "because"),
        cpu=Cpu(model=cpu, threads=64),
        memory=Memory(),
        system=System(),
        gpus=gpus,
        gpus_source="nvml" if gpus else None,
        p2p=of_texts(None, None),
    )


H100 = Gpu(index=0, vendor="nvidia", name="NVIDIA H100", driver_version="570.86.15")


def test_the_clients_hardware_is_no_fact_of_the_server() -> None:
    """Hardware of the client's machine never becomes the server's."""
    assert facts(host("client", H100)) == {}


def test_gpus_are_counted_by_name() -> None:
    """GPUs of one name are counted together, drivers are told once, and the source says how this host was decided."""
    found = facts(host("server", H100, H100, Gpu(index=2, vendor="amd")))
    assert found["hardware"].value == "2 x NVIDIA H100, 1 x an amd GPU"
    assert found["driver"].value == "570.86.15"
    assert found["hardware"].source == "nvml on this machine; because"


def test_no_gpu_told() -> None:
    """Without a GPU the processor is the hardware, and that no tool lists one is said."""
    assert facts(host("server"))["hardware"].value == "EPYC, 64 threads; no tool lists a GPU"
    assert facts(host("server", cpu=None)) == {}
