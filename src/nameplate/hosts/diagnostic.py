"""Run a vendor's tool under a deadline and keep what it said.

Without a shell, in a process group of its own, with an environment that holds no keys; output is bounded and loses its
terminal control characters. A tool that hangs is killed with its whole group, and one that cannot be killed (a driver
that holds it in the kernel) is left behind rather than waited for.
"""

from __future__ import annotations

import os
import re
import selectors
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence

from msgspec import Struct, field

DEADLINE_S = 10.0
OUTPUT_LIMIT_BYTES = 256 << 10  # `amd-smi static --json` of eight GPUs is about 100 KB
_REAP_S = 0.5
_POLL_S = 0.01

# Where vendors install without touching PATH: Windows' subsystem for Linux, ROCm.
_BESIDE_PATH = os.pathsep.join(("/usr/lib/wsl/lib", "/opt/rocm/bin"))

# What a tool may need of our environment; everything else, and with it every key, stays here.
_PASSED = (
    "PATH", "HOME", "LD_LIBRARY_PATH", "PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "ROCM_PATH", "ROCM_HOME", "TMPDIR",
    "SYSTEMROOT",
)  # fmt: skip

# ECMA-48 sequences: CSI, OSC and the other strings up to their terminator, two-character escapes.
_SEQUENCE = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?|[ -/]*[0-~])|\x9b[0-?]*[ -/]*[@-~]"
)
# What is left of C0 (but for tab and line feed), DEL, C1, and the characters that turn text round.
_CONTROL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff]"
)


class Probe(Struct, frozen=True):
    """Name a command that is worth running: its first word is looked up on PATH."""

    name: str
    command: tuple[str, ...]


class Diagnostic(Struct, frozen=True, kw_only=True):
    """Hold what one command said, or in `did_not_run` why there is no whole answer.

    `returncode` is negative for a signal, as Python counts it; None where the command did not end by itself.
    """

    name: str
    command: tuple[str, ...]
    returncode: int | None = None
    stdout: str = ""
    stderr: str = ""
    did_not_run: str | None = None

    @property
    def ok(self) -> bool:
        return self.did_not_run is None and self.returncode == 0


def harmless(raw: bytes) -> str:
    """Decode a tool's output and take out what would control a terminal."""
    text = _SEQUENCE.sub("", raw.decode("utf-8", "replace").replace("\r\n", "\n"))
    return _CONTROL.sub("", text).rstrip()


def environment(source: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the environment that a tool is given: few names, and a language that its parser knows."""
    source = os.environ if source is None else source
    return {name: source[name] for name in _PASSED if name in source} | {"LC_ALL": "C", "NO_COLOR": "1"}


class _Child(Struct):
    """Hold one running command and what it wrote so far."""

    probe: Probe
    process: subprocess.Popen[bytes]
    kept: dict[str, bytearray] = field(default_factory=lambda: {"stdout": bytearray(), "stderr": bytearray()})
    dropped: dict[str, int] = field(default_factory=lambda: {"stdout": 0, "stderr": 0})

    def take(self, name: str, data: bytes) -> None:
        room = OUTPUT_LIMIT_BYTES - len(self.kept[name])
        self.kept[name] += data[:room]
        self.dropped[name] += max(0, len(data) - room)

    def text(self, name: str) -> str:
        said = harmless(bytes(self.kept[name]))
        dropped = self.dropped[name]
        return f"{said}\n... ({dropped:,} more bytes were not kept)" if dropped else said

    def diagnostic(self, did_not_run: str | None = None) -> Diagnostic:
        return Diagnostic(
            name=self.probe.name,
            command=self.probe.command,
            returncode=None if did_not_run else self.process.returncode,
            stdout=self.text("stdout"),
            stderr=self.text("stderr"),
            did_not_run=did_not_run,
        )


def run_all(probes: Sequence[Probe], deadline_s: float = DEADLINE_S) -> tuple[Diagnostic, ...]:
    """Run commands side by side, each at most `deadline_s` seconds; return their answers in the same order."""
    end_s = time.monotonic() + deadline_s
    answers: dict[int, Diagnostic] = {}
    children: dict[int, _Child] = {}
    try:
        for index, probe in enumerate(probes):
            started = _start(probe)
            if isinstance(started, _Child):
                children[index] = started
            else:
                answers[index] = started
        _read(list(children.values()), end_s)
    except BaseException:
        end_s = time.monotonic()  # a person who interrupts does not wait for a tool
        raise
    finally:
        for index, child in children.items():
            answers[index] = _end(child, end_s, deadline_s)
    return tuple(answers[index] for index in range(len(probes)))


def run(probe: Probe, deadline_s: float = DEADLINE_S) -> Diagnostic:
    """Run one command, at most `deadline_s` seconds."""
    return run_all((probe,), deadline_s)[0]


def _start(probe: Probe) -> _Child | Diagnostic:
    def refused(why: str) -> Diagnostic:
        return Diagnostic(name=probe.name, command=probe.command, did_not_run=why)

    found = shutil.which(probe.command[0]) or shutil.which(probe.command[0], path=_BESIDE_PATH)
    if found is None:
        return refused(f"{probe.command[0]} is not installed")
    try:
        process = subprocess.Popen(
            [found, *probe.command[1:]],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(),
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        return refused(
            f"{probe.command[0]} could not be started: {getattr(error, 'strerror', None) or error}"
        )
    return _Child(probe, process)


def _read(children: list[_Child], end_s: float) -> None:
    """Take what the commands write until all have closed their outputs or the deadline passes."""
    with selectors.DefaultSelector() as selector:
        for child in children:
            for name in ("stdout", "stderr"):
                selector.register(getattr(child.process, name), selectors.EVENT_READ, (child, name))
        while selector.get_map():
            left_s = end_s - time.monotonic()
            if left_s <= 0:
                return
            # Not only the outputs: a command's own children may hold them open after it ended.
            ready = selector.select(min(left_s, 0.2))
            for key, _ in ready:
                child, name = key.data
                data = os.read(key.fd, 1 << 16)
                if data:
                    child.take(name, data)
                else:
                    selector.unregister(key.fileobj)
            if not ready:
                for key in list(selector.get_map().values()):
                    if _ended(key.data[0].process):
                        selector.unregister(key.fileobj)


def _ended(process: subprocess.Popen[bytes]) -> bool:
    """Tell whether a command ended, without reaping it: its process group's number stays taken that long."""
    if not hasattr(os, "waitid"):
        return process.poll() is not None
    try:
        return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        return True


def _end(child: _Child, end_s: float, deadline_s: float) -> Diagnostic:
    """Wait for a command that closed its outputs, or kill its group; answer in either case."""
    process = child.process
    did_not_run = None
    while not _ended(process):
        if time.monotonic() >= end_s:
            did_not_run = f"it was killed after {deadline_s:g} s without an end"
            break
        time.sleep(_POLL_S)
    # The group also where the command ended: what it left behind is ours to end.
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except OSError:
        pass
    try:
        process.wait(_REAP_S)
    except subprocess.TimeoutExpired:
        did_not_run = f"it did not end within {deadline_s:g} s and cannot be killed: its driver hangs"
    for pipe in (process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()
    return child.diagnostic(did_not_run)
