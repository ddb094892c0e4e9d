"""The machine that the tool ran on, as a host of ours: the client's, since nothing says that the server was there."""

from __future__ import annotations

from typing import Any

from nameplate.exchange.inference_bench.foreign import TOOL, Hardware
from nameplate.hosts.cpuinfo import clean
from nameplate.hosts.description import HostDescription
from nameplate.hosts.diagnostic import Diagnostic, harmless
from nameplate.hosts.machine import Cpu, Memory, System
from nameplate.hosts.p2p import EXPECTED, MODPROBE_PATH, PARAMS_PATH, Mismatch, P2pOverride, of_texts
from nameplate.hosts.place import Place
from nameplate.hosts.tools import gpus_told

HOW = f"{TOOL} records the machine that it runs on; whether that is the server's host, its file does not say"
_OUTPUT_LIMIT = 64 << 10


def host_of(hardware: Hardware | None) -> tuple[HostDescription, ...]:
    """Describe the tool's own machine; nothing where the file has no diagnostics."""
    if hardware is None:
        return ()
    told = (("nvidia_smi_query", hardware.gpu_query), ("nvidia_smi_topo", hardware.topology))
    diagnostics = tuple(
        Diagnostic(
            name=name,
            command=said[0],
            returncode=said[1],
            stdout=harmless(said[2][:_OUTPUT_LIMIT].encode("utf-8", "replace")),
            stderr=harmless(said[3][:_OUTPUT_LIMIT].encode("utf-8", "replace")),
            did_not_run=_did_not_run(said[1], said[3]),
        )
        for name, said in told
        if said is not None
    )
    gpus, source = gpus_told(diagnostics)
    return (
        HostDescription(
            place=_place(hardware.described),
            cpu=Cpu(),
            memory=Memory(),
            system=System(hostname=hardware.hostname or None, name=hardware.uname or None),
            gpus=gpus,
            gpus_source=source,
            gpus_note=None if gpus else "the file's diagnostics name no GPU",
            p2p=p2p_of(hardware.p2p),
            diagnostics=diagnostics,
        ),
    )


def _place(described: str) -> Place:
    which, colon, how = described.partition(": ")
    return Place("server", how) if colon and which == "server" else Place("client", how or HOW)


def _did_not_run(code: int | None, stderr: str) -> str | None:
    """Say why there is no answer; -1 is what we write for a command that was not run."""
    if code is None:
        return "the file has no return code"
    return (clean(stderr, 200) or "it was not run") if code == -1 else None


def p2p_of(value: Any) -> P2pOverride:
    """Read the P2P settings; what is absent or of another type is as if the driver's files were not there."""
    empty = of_texts(None, None)
    if not isinstance(value, dict) or not value:
        return empty
    mismatched = value.get("mismatched")
    pairs = mismatched.items() if isinstance(mismatched, dict) else ()
    expected = _names(value.get("expected")) or dict(EXPECTED)
    missing = value.get("missing")
    return P2pOverride(
        effective=value.get("effective") is True,
        configured=value.get("configured") is True,
        params_path=_text(value.get("params_path")) or PARAMS_PATH,
        params_available=value.get("params_available") is True,
        modprobe_path=_text(value.get("modprobe_path")) or MODPROBE_PATH,
        modprobe_available=value.get("modprobe_available") is True,
        runtime=_names(value.get("runtime")) or empty.runtime,
        expected=expected,
        missing=tuple(_text(name) for name in missing) if isinstance(missing, list) else (),
        mismatched={
            _text(name): Mismatch(_text(pair.get("expected")), _text(pair.get("actual")))
            for name, pair in pairs
            if isinstance(pair, dict)
        },
        registry_dwords=_text(value.get("registry_dwords")),
        suggested_modprobe_line=_text(value.get("suggested_modprobe_line")) or empty.suggested_modprobe_line,
        suggested_reload=_text(value.get("suggested_reload")) or empty.suggested_reload,
    )


def _names(value: Any) -> dict[str, str]:
    return {_text(key): _text(inner) for key, inner in value.items()} if isinstance(value, dict) else {}


def _text(value: Any) -> str:
    return clean(value, 4096) if isinstance(value, str) else ""
