"""`startup_diagnostics` and `nvidia_p2p_override` from a host description of ours."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from nameplate.hosts.description import HostDescription
from nameplate.hosts.p2p import P2pOverride, of_texts
from nameplate.hosts.tools import PROBES

_COMMANDS = {probe.name: list(probe.command) for probe in PROBES}


class CommandOut(Struct, frozen=True):
    """Hold what one command said."""

    cmd: list[str]
    returncode: int
    stdout: str
    stderr: str


class StatusOut(Struct, frozen=True):
    """Hold a test that this program does not run."""

    status: str = "not_run"


class P2pOut(Struct, frozen=True, kw_only=True):
    """Hold the P2P settings; field names and order are that tool's."""

    effective: bool
    configured: bool
    params_path: str
    params_available: bool
    modprobe_path: str
    modprobe_available: bool
    runtime: Mapping[str, str]
    expected: Mapping[str, str]
    missing: tuple[str, ...]
    mismatched: Mapping[str, Mapping[str, str]]
    registry_dwords: str
    suggested_modprobe_line: str
    suggested_reload: str


class StartupOut(Struct, frozen=True, kw_only=True):
    """Hold `startup_diagnostics`; `described_host` says whose machine this is, which that tool leaves open."""

    version: str
    server_url: str
    hostname: str
    uname: str
    env: dict[str, str]
    args: Mapping[str, object]
    nvidia_p2p_override: P2pOut
    p2pmark: StatusOut
    amd_fabric: StatusOut
    nvidia_smi_query: CommandOut
    nvidia_smi_topo: CommandOut
    described_host: str


def chosen_host(hosts: tuple[HostDescription, ...]) -> HostDescription | None:
    """Return the server's host where it is described, else the first."""
    return next((host for host in hosts if host.which == "server"), hosts[0] if hosts else None)


def p2p_out(host: HostDescription | None) -> P2pOut:
    """Return the settings; of an unknown host as that tool writes them where no file can be read."""
    p2p: P2pOverride = host.p2p if host is not None else of_texts(None, None)
    return P2pOut(
        effective=p2p.effective,
        configured=p2p.configured,
        params_path=p2p.params_path,
        params_available=p2p.params_available,
        modprobe_path=p2p.modprobe_path,
        modprobe_available=p2p.modprobe_available,
        runtime=p2p.runtime,
        expected=p2p.expected,
        missing=p2p.missing,
        mismatched={
            name: {"expected": pair.expected, "actual": pair.actual} for name, pair in p2p.mismatched.items()
        },
        registry_dwords=p2p.registry_dwords,
        suggested_modprobe_line=p2p.suggested_modprobe_line,
        suggested_reload=p2p.suggested_reload,
    )


def startup_out(
    host: HostDescription | None, version: str, server_url: str, args: Mapping[str, object]
) -> StartupOut:
    """Return the diagnostics of one host."""
    system = host.system if host is not None else None
    words = (system.name, system.hostname, system.kernel, system.architecture) if system else ()
    return StartupOut(
        version=version,
        server_url=server_url,
        hostname=(system.hostname or "") if system else "",
        uname=" ".join(word for word in words if word) if system and system.kernel else "",
        env={},
        args=args,
        nvidia_p2p_override=p2p_out(host),
        p2pmark=StatusOut(),
        amd_fabric=StatusOut(),
        nvidia_smi_query=_command(host, "nvidia_smi_query"),
        nvidia_smi_topo=_command(host, "nvidia_smi_topo"),
        described_host=f"{host.which}: {host.place.how}" if host is not None else "no host is described",
    )


def _command(host: HostDescription | None, name: str) -> CommandOut:
    """Return what a command said; -1 is what a command that did not run has here, with the reason."""
    said = host.diagnostic(name) if host is not None else None
    if said is None:
        return CommandOut(_COMMANDS[name], -1, "", "it was not run")
    code = said.returncode if said.returncode is not None else -1
    return CommandOut(list(said.command), code, said.stdout, said.stderr or said.did_not_run or "")
