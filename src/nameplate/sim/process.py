"""Run a simulated server in a process of its own, and end it."""

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from select import select

import msgspec

_READY_S = 20.0
_END_S = 5.0


class SimProcess(msgspec.Struct, frozen=True):
    """Name a running simulated server."""

    url: str
    pid: int
    log: Path | None
    process: subprocess.Popen[bytes]

    @property
    def port(self) -> int:
        """Return the port that it listens on."""
        return int(self.url.rpartition(":")[2])

    def stop(self) -> int:
        """End the server in order, so that its log is complete; kill it if it does not end. Return its exit code."""
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(_END_S)
            except subprocess.TimeoutExpired:
                self.process.kill()
        return self.process.wait()


@contextlib.contextmanager
def running(preset: str, *arguments: str, log: Path | None = None) -> Iterator[SimProcess]:
    """Start `python -m nameplate.sim PRESET ...` on a free port of the loopback and end it on leaving.

    Raises RuntimeError with what it printed if it does not say its URL within 20 s.
    """
    command = [sys.executable, "-m", "nameplate.sim", preset, "--port", "0", "--until-eof", *arguments]
    if log is not None:
        command += ["--log", str(log)]
    # A session of its own, so that a terminal's interrupt reaches the study alone, which still needs its server; and
    # a pipe, so that a study that is killed takes its server along.
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    assert process.stdin is not None and process.stdout is not None and process.stderr is not None
    try:
        ready, _, _ = select([process.stdout], [], [], _READY_S)
        line = process.stdout.readline() if ready else b""
        if not line.startswith(b"http"):
            process.kill()
            _, errors = process.communicate()
            raise RuntimeError(
                f"the simulated server did not start: {errors.decode(errors='replace').strip()}"
            )
        simulated = SimProcess(line.decode().strip(), process.pid, log, process)
        try:
            yield simulated
        finally:
            simulated.stop()
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        process.stdin.close()
        process.stdout.close()
        process.stderr.close()
