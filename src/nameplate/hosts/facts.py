"""A host's description as facts of the server's identity, each with its source."""

from __future__ import annotations

from collections import Counter

from nameplate.contract.identity import Fact
from nameplate.hosts.description import HostDescription


def facts(description: HostDescription) -> dict[str, Fact]:
    """Return `hardware` and `driver` as the plate wants them; nothing where the host is not the server's.

    A machine on which nothing could look for GPUs says so in the value, for that is not a machine without them.
    """
    if description.which != "server":
        return {}
    gpus = description.gpus
    source = f"{description.gpus_source or 'the kernel'} on this machine; {description.place.how}"
    if not gpus:
        cpu = description.cpu
        model = cpu.model or description.system.architecture
        if model is None:
            return {}
        threads = "" if cpu.threads is None else f", {cpu.threads} threads"
        return {"hardware": Fact(f"{model}{threads}; no tool lists a GPU", source)}
    counts = Counter(gpu.name or f"an {gpu.vendor} GPU" for gpu in gpus)
    found = {"hardware": Fact(", ".join(f"{count} x {name}" for name, count in counts.items()), source)}
    drivers = sorted({gpu.driver_version for gpu in gpus if gpu.driver_version is not None})
    if drivers:
        found["driver"] = Fact(", ".join(drivers), source)
    return found
