"""A load process: reads its order from standard input, obeys the pipe, reports on standard output.

Standard input carries the order as one JSON line, then commands, one a line: `stop` (start nothing more), `cancel` (end
what is in flight) and `release` (let the arrival beside held streams start). When the pipe closes, the parent is gone:
the load is cancelled and what it recorded is written. The terminal's interrupt, and whatever else ends a whole process
group politely, is the parent's business and is ignored here.
"""

from __future__ import annotations

import gc
import os
import resource
import signal
import sys
import time
from pathlib import Path

import msgspec
from msgspec import structs

from nameplate.client.asks import StoredAsks
from nameplate.client.bodies import Bodies
from nameplate.client.counter import SharedCounter
from nameplate.client.endurance import Endurance
from nameplate.client.load import Load
from nameplate.client.loop import Loop
from nameplate.client.order import Finished, LoadOrder
from nameplate.client.recorder import Recorder
from nameplate.client.self_sample import clock_pair
from nameplate.client.standing import lock_memory, peak_memory_bytes, raise_scheduling
from nameplate.contract.errors import ClientError, NameplateError
from nameplate.evidence.writer import EvidenceWriter
from nameplate.prompts.store import PromptStore

REPORT_EVERY_NS = 200_000_000
FLUSH_EVERY_NS = 1_000_000_000
# The writer thread holds the interpreter for microseconds at a time; at the default of 5 ms the loop could wait that
# long for its turn.
SWITCH_INTERVAL_S = 0.0005


class Worker:
    """Tie one load to its pipes and its files."""

    def __init__(self, order: LoadOrder, commands: bytes = b"") -> None:
        # First of all, so that the writer's thread has the same standing: it shares the interpreter's lock.
        self._scheduling = raise_scheduling() if order.raise_scheduling else "normal"
        suffix = "" if order.workers == 1 else f".{order.worker}"
        self._writer = EvidenceWriter(Path(order.directory), suffix)
        self._recorder = Recorder(self._writer.put, order.keeping)
        counter = SharedCounter(Path(order.counter_path)) if order.counter_path else None
        store = PromptStore.open(Path(order.prompts_path))
        self._load = Load(order, self._recorder, counter, StoredAsks(store) if order.soak else None)
        self._endurance = (
            Endurance(order, self._load, self._recorder, self._writer, store, clock_pair)
            if order.soak
            else None
        )
        bodies = Bodies(store, order.target, order.credentials, order.workers)
        self._loop = Loop(order, self._load, bodies, self._keep_house)
        self._encode = msgspec.json.Encoder().encode
        self._commands = commands
        self._unreported = b""
        self._reported_ns = self._flushed_ns = time.monotonic_ns()
        os.set_blocking(0, False)
        os.set_blocking(1, False)

    def run(self) -> Finished:
        """Run the load to its end and close its files."""
        startup_cpu_s = time.process_time()
        locked = lock_memory()
        gc.collect()
        gc.freeze()
        gc.disable()
        try:
            self._loop.run()
        finally:
            self._recorder.flush()
            self._writer.close()
        failure = self._failure
        usage = resource.getrusage(resource.RUSAGE_SELF)
        self._report(time.monotonic_ns(), last=True)
        return Finished(
            cancelled=self._load.cancelled,
            overrun=self._load.overrun,
            failure=failure,
            reads=self._load.reads,
            cpu_s=usage.ru_utime + usage.ru_stime,
            startup_cpu_s=startup_cpu_s,
            major_faults=usage.ru_majflt,
            memory_locked=locked,
            scheduling=self._scheduling,
            peak_memory_bytes=peak_memory_bytes(),
        )

    def _keep_house(self, now_ns: int) -> None:
        self._obey()
        if now_ns - self._flushed_ns >= FLUSH_EVERY_NS:
            self._flushed_ns = now_ns
            self._recorder.flush()
        if self._endurance is not None:
            self._endurance.look(now_ns)
        if self._load.broke_off and self._load.flights:
            self._loop.cancel()
        if self._failure and not self._load.stopping:
            self._loop.cancel()
        if now_ns - self._reported_ns >= REPORT_EVERY_NS:
            self._reported_ns = now_ns
            self._report(now_ns)

    @property
    def _failure(self) -> str | None:
        return self._writer.failure or self._loop.failure or self._load.failure

    def _obey(self) -> None:
        try:
            data = os.read(0, 4096)
            if not data:
                self._loop.cancel()
                return
            self._commands += data
        except BlockingIOError:
            pass
        *lines, self._commands = self._commands.split(b"\n")
        for line in lines:
            if line == b"stop":
                self._load.stop(time.monotonic_ns())
            elif line == b"cancel":
                self._loop.cancel()
            elif line == b"release":
                self._load.agenda.release(time.monotonic_ns())

    def _report(self, now_ns: int, last: bool = False) -> None:
        progress = self._load.take_progress(now_ns)
        if self._endurance is not None:
            progress = structs.replace(progress, kept=self._endurance.take_changes())
        self._unreported += self._encode(progress) + b"\n"
        if last:
            os.set_blocking(1, True)
        try:
            while self._unreported:
                self._unreported = self._unreported[os.write(1, self._unreported) :]
        except BlockingIOError:
            pass  # The parent is busy; the report waits with the next one.
        except BrokenPipeError:
            self._unreported = b""


def main() -> int:
    """Run one order; the exit status is the error tree's, the last line of output says why."""
    for ignored in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(ignored, signal.SIG_IGN)
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    given = bytearray()
    while b"\n" not in given[-(1 << 16) :]:
        data = os.read(0, 1 << 16)
        if not data:
            return 0
        given += data
    # Commands may follow the order at once.
    line, _, commands = bytes(given).partition(b"\n")
    try:
        raise_descriptor_limit()
        order = msgspec.json.decode(line, type=LoadOrder)
        finished = Worker(order, commands).run()
    except NameplateError as error:
        _last_word({"error": error.what, "hint": error.hint, "exit_code": error.exit_code})
        return error.exit_code
    except OSError as error:
        _last_word(
            {"error": f"The load process failed: {error}.", "hint": "", "exit_code": ClientError.exit_code}
        )
        return ClientError.exit_code
    _last_word({"finished": msgspec.to_builtins(finished)})
    return 0


def _last_word(value: dict[str, object]) -> None:
    os.set_blocking(1, True)
    try:
        os.write(1, msgspec.json.encode(value) + b"\n")
    except BrokenPipeError:
        pass


def raise_descriptor_limit() -> None:
    """Raise the soft limit of open files to the hard one: each stream needs a descriptor."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard if hard != resource.RLIM_INFINITY else 65536, hard))


if __name__ == "__main__":
    sys.exit(main())
