"""Load processes seen from their parent: started, steered through a pipe, and always reaped."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct, structs

from nameplate.client.order import Finished, LoadOrder, Progress
from nameplate.contract.errors import CallerError, ClientError, NameplateError, ServerError

Command = Literal["stop", "cancel", "release"]
Steer = Callable[[Progress], Command | None]

# After `cancel` a load only has to write what it holds; a disk may take its time over that.
REAP_S = 90.0


class _LastWord(Struct, frozen=True):
    finished: Finished | None = None
    error: str | None = None
    hint: str = ""
    exit_code: int = 4


class LoadProcess:
    """Hold one running load process; as a context manager it leaves none behind."""

    def __init__(self, order: LoadOrder) -> None:
        # The terminal's interrupt must not reach a child that has not yet come as far as to ignore it: a blocked
        # signal stays blocked in the child.
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "nameplate.client.worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
            )
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        self.last_word: _LastWord | None = None
        self._drains = order.soak is not None
        self._buffer = bytearray()
        assert self.process.stdin is not None and self.process.stdout is not None
        try:
            self.process.stdin.write(msgspec.json.encode(order) + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # It died at once; the end of its output says so.

    @property
    def output(self) -> int:
        assert self.process.stdout is not None
        return self.process.stdout.fileno()

    def tell(self, command: Command) -> None:
        """Send a command; a process that is gone already needs none."""
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(command.encode() + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass

    @property
    def broke_off(self) -> bool:
        """Say whether the process ended before its load did, through a fault or at the outstanding limit.

        A soak that came to its limit has drained, and the others drain as well: their parent stops them.
        """
        word = self.last_word
        if word is None or word.finished is None:
            return word is not None
        return word.finished.failure is not None or (word.finished.overrun and not self._drains)

    def reports(self) -> list[Progress]:
        """Read what it has said; sets `last_word` at the end of its output."""
        data = os.read(self.output, 1 << 20)
        if not data:
            self.process.wait()
            if self.last_word is None:
                self.last_word = _LastWord(
                    error=f"A load process died with status {self.process.returncode}."
                )
            return []
        self._buffer += data
        *lines, rest = self._buffer.split(b"\n")
        self._buffer = rest
        reports = []
        for line in lines:
            if line.startswith(b'{"t_ns"'):
                reports.append(msgspec.json.decode(line, type=Progress))
            elif line:
                self.last_word = msgspec.json.decode(line, type=_LastWord)
        return reports

    def hang_up(self) -> None:
        """Close the pipe to the process: it cancels its load, writes what it holds, and ends."""
        assert self.process.stdin is not None
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass

    def close(self) -> None:
        """Hang up, wait, and end the process if it does not end by itself within `REAP_S`."""
        assert self.process.stdout is not None
        self.hang_up()
        deadline = time.monotonic() + REAP_S
        with selectors.DefaultSelector() as selector:
            selector.register(self.output, selectors.EVENT_READ)
            while (left_s := deadline - time.monotonic()) > 0:
                if selector.select(left_s) and not os.read(self.output, 1 << 20):
                    break
        try:
            self.process.wait(max(0.1, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()


def carry(order: LoadOrder, steer: Steer) -> Finished:
    """Run a load on its workers and return how it ended.

    `steer` sees every report and may answer with a command. It may raise: the processes then cancel what is in
    flight, write what they hold, and end. Raises ServerError or ClientError as the load processes said.
    """
    counter = Path(order.directory) / ".counter"
    workers = order.workers
    orders = [
        structs.replace(order, worker=k, counter_path=str(counter) if workers > 1 else None)
        for k in range(workers)
    ]
    processes: list[LoadProcess] = []
    try:
        processes.extend(LoadProcess(one) for one in orders)
        _relay(processes, steer)
    finally:
        for process in processes:
            process.hang_up()
        for process in processes:
            process.close()
        counter.unlink(missing_ok=True)
    return _combine([process.last_word for process in processes])


def _relay(processes: list[LoadProcess], steer: Steer) -> None:
    latest: dict[int, Progress] = {}
    with selectors.DefaultSelector() as selector:
        for number, process in enumerate(processes):
            selector.register(process.output, selectors.EVENT_READ, (number, process))
        while selector.get_map():
            for key, _mask in selector.select(1.0):
                number, process = key.data
                for report in process.reports():
                    latest[number] = report
                    command = steer(_sum(report, [r for k, r in latest.items() if k != number]))
                    if command is not None:
                        for one in processes:
                            one.tell(command)
                if process.process.returncode is not None:
                    selector.unregister(process.output)
                    if process.broke_off:
                        # The others would wait for it, or carry a load that is not what was asked for.
                        for one in processes:
                            one.tell("cancel")


def _sum(report: Progress, others: list[Progress]) -> Progress:
    if not others:
        return report
    return structs.replace(
        report,
        started=report.started + sum(other.started for other in others),
        ended=report.ended + sum(other.ended for other in others),
        overrun=report.overrun or any(other.overrun for other in others),
        in_flight=report.in_flight + sum(other.in_flight for other in others),
        waiting_since=report.waiting_since + tuple(pair for other in others for pair in other.waiting_since),
    )


def _combine(words: list[_LastWord | None]) -> Finished:
    finished = []
    for word in words:
        assert word is not None
        if word.error is not None:
            raise _error(word)
        assert word.finished is not None
        finished.append(word.finished)
    return Finished(
        cancelled=any(one.cancelled for one in finished),
        overrun=any(one.overrun for one in finished),
        failure=next((one.failure for one in finished if one.failure), None),
        reads=sum(one.reads for one in finished),
        cpu_s=sum(one.cpu_s for one in finished),
        startup_cpu_s=sum(one.startup_cpu_s for one in finished),
        major_faults=sum(one.major_faults for one in finished),
        memory_locked=all(one.memory_locked for one in finished),
        scheduling=finished[0].scheduling,
        peak_memory_bytes=sum(one.peak_memory_bytes for one in finished),
    )


def _error(word: _LastWord) -> NameplateError:
    kind = {ServerError.exit_code: ServerError, CallerError.exit_code: CallerError}.get(
        word.exit_code, ClientError
    )
    return kind(word.error or "", hint=word.hint)
