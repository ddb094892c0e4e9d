"""Sample a machine's GPUs over time in a process of its own, so that a driver's call never disturbs the client.

`python -m nameplate.hosts.watch FILE INTERVAL_S` appends a `GpuSample` a line a GPU, and ends when its stdin closes. A
call that hangs inside the driver holds a thread there: each interval it is a line with `error`, and the end is not
delayed by it.
"""

from __future__ import annotations

import os
import queue
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import msgspec

from nameplate.companion import Companion, beats
from nameplate.hosts.sample import GpuSample
from nameplate.hosts.sources import READ_LIMIT_S, Source, Unavailable, open_source

INTERVAL_S = 1.0
_SHORTEST_INTERVAL_S = 0.05  # a driver takes some milliseconds a GPU for a reading
_LONGEST_INTERVAL_S = 3600.0
_STOP_S = READ_LIMIT_S + 2.0


class Reader:
    """Ask a source from another thread, so that whoever asks waits a bounded time.

    `done` becomes true when the source says that it will never have anything.
    """

    def __init__(self, open_: Callable[[], Source], limit_s: float = READ_LIMIT_S) -> None:
        self.done = False
        self._open = open_
        self._limit_s = limit_s
        self._asked: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._answers: queue.SimpleQueue[list[GpuSample]] = queue.SimpleQueue()
        self._pending_since_ns: int | None = None
        threading.Thread(target=self._work, name="gpu-reader", daemon=True).start()

    def read(self) -> list[GpuSample]:
        """Return the samples of one reading; where it does not come in time, one sample that says so."""
        if self._pending_since_ns is None:
            self._pending_since_ns = time.monotonic_ns()
            self._asked.put(None)
        try:
            rows = self._answers.get(timeout=self._limit_s)
        except queue.Empty:
            now_ns = time.monotonic_ns()
            waited_s = (now_ns - self._pending_since_ns) / 1e9
            return [GpuSample(t_ns=now_ns, error=f"the reading has not returned for {waited_s:.0f} s")]
        self._pending_since_ns = None
        return rows

    def _work(self) -> None:
        source: Source | None = None
        while True:
            self._asked.get()
            try:
                source = source or self._open()
                rows = source.read()
            except Unavailable as reason:
                self.done = True
                rows = [GpuSample(t_ns=time.monotonic_ns(), error=str(reason))]
            except Exception as error:  # a sampler that dies would look like GPUs that fell silent
                text = f"the reading failed inside: {type(error).__name__}"
                rows = [GpuSample(t_ns=time.monotonic_ns(), error=text)]
            self._answers.put(rows)


def watch(reader: Reader, file: BinaryIO, stdin: int, interval_s: float = INTERVAL_S) -> int:
    """Append samples each interval until `stdin` closes; return the number of lines written."""
    interval_s = min(_LONGEST_INTERVAL_S, max(_SHORTEST_INTERVAL_S, interval_s))
    encoder = msgspec.json.Encoder()
    lines = 0
    for _ in beats(stdin, interval_s):
        if not reader.done:
            rows = reader.read()
            file.write(b"".join(encoder.encode(row) + b"\n" for row in rows))
            file.flush()
            lines += len(rows)
    return lines


class GpuWatcher:
    """Start and stop one sampling process; it ends its own child and no other."""

    def __init__(self, file: Path, interval_s: float = INTERVAL_S) -> None:
        self._companion = Companion(
            "nameplate.hosts.watch",
            os.fspath(file.absolute()),
            repr(interval_s),
            task="samples the GPUs",
            stop_s=_STOP_S,
        )

    @property
    def running(self) -> bool:
        return self._companion.running

    def start(self) -> None:
        """Start the child; ClientError where it cannot be started."""
        self._companion.start()

    def stop(self) -> int | None:
        """Close its stdin and wait; return its exit status, None if it was never started or cannot be ended."""
        return self._companion.stop()


def main() -> int:
    """Run as the child: `python -m nameplate.hosts.watch FILE INTERVAL_S`."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        path, interval_s = Path(sys.argv[1]), float(sys.argv[2])
    except (IndexError, ValueError):
        return 2
    with path.open("ab") as file:
        watch(Reader(open_source), file, 0, interval_s)
    return 0


if __name__ == "__main__":
    status = main()
    # Not sys.exit: the interpreter's own end would wait for a thread that the driver holds.
    os._exit(status)
