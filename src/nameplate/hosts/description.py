"""The hardware of one host as one value that always says which host it is."""

from __future__ import annotations

from msgspec import Struct

from nameplate.hosts.diagnostic import Diagnostic
from nameplate.hosts.gpu import Gpu
from nameplate.hosts.machine import Cpu, Memory, System
from nameplate.hosts.p2p import P2pOverride
from nameplate.hosts.place import Place, Which


class HostDescription(Struct, frozen=True, kw_only=True):
    """Hold what one machine is. `place` says whose host it is and how that was decided.

    `gpus_source` names what told of the GPUs (`nvml`, `nvidia-smi`, ...); None where nothing did, which is not the same
    as a machine without GPUs: `gpus_note` then says what was tried. `faults` are sentences about what went wrong.
    Neither environment nor other processes' command lines are in it.
    """

    place: Place
    cpu: Cpu
    memory: Memory
    system: System
    gpus: tuple[Gpu, ...] = ()
    gpus_source: str | None = None
    gpus_note: str | None = None
    p2p: P2pOverride
    diagnostics: tuple[Diagnostic, ...] = ()
    faults: tuple[str, ...] = ()

    @property
    def which(self) -> Which:
        return self.place.which

    def diagnostic(self, name: str) -> Diagnostic | None:
        """Return the diagnostic of that name."""
        return next((entry for entry in self.diagnostics if entry.name == name), None)
