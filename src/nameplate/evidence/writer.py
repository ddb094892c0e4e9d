"""The writer: a thread that packs, compresses, writes and syncs, so that the load's loop never waits for a disk."""

from __future__ import annotations

import os
import queue
import shutil
import threading
import time
from pathlib import Path

from nameplate.evidence import layout
from nameplate.evidence.frames import FrameFile

# A queue this long of 1 MiB blocks is a disk some minutes behind; more would only hide it.
QUEUE_BLOCKS = 128
SYNC_EVERY_S = 1.0
# Room that stays free for sealing a trial: result, manifest, and the journal's last lines.
RESERVE_BYTES = 32 << 20


def _open_lines(path: Path) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)


class EvidenceWriter:
    """Append to a trial's files from one background thread.

    `failure` is None while all is well; otherwise a sentence that says why nothing more is written (disk full,
    disk too slow). What was written before stays whole. The caller looks at it; nothing is raised in the loop.
    `free_bytes` is what the disk had left when it was last looked at.
    """

    def __init__(self, directory: Path, suffix: str = "") -> None:
        self.failure: str | None = None
        self.free_bytes: int | None = None
        self._directory = directory
        self._frames = {
            name: FrameFile(directory / (name + suffix)) for name in (layout.READS, layout.EVENTS)
        }
        # Only a soak has looks at the client: that file is opened with the first of them.
        self._paths = {name: directory / (name + suffix) for name in (layout.REQUESTS, layout.CLIENT)}
        self._lines = {layout.REQUESTS: _open_lines(self._paths[layout.REQUESTS])}
        self._queue: queue.Queue[tuple[str, bytes] | None] = queue.Queue(QUEUE_BLOCKS)
        self._thread = threading.Thread(target=self._run, name="evidence-writer", daemon=True)
        self._thread.start()

    def put(self, name: str, block: bytes) -> None:
        """Hand over one block for a file; never waits. A full queue is a failure with a name."""
        try:
            self._queue.put_nowait((name, block))
        except queue.Full:
            self._fail("the disk is too slow: evidence waited longer than the queue is long")

    @property
    def queued(self) -> int:
        """Count the blocks that wait to be written."""
        return self._queue.qsize()

    @property
    def reads_bytes(self) -> int:
        """Return how large the compressed raw reads are."""
        return self._frames[layout.READS].size

    def close(self, timeout_s: float = 60.0) -> None:
        """Write what is queued, sync and close; a disk that hangs is named as a failure after `timeout_s`."""
        deadline_s = time.monotonic() + timeout_s
        try:
            self._queue.put(None, timeout=timeout_s)
            self._thread.join(max(0.0, deadline_s - time.monotonic()))
        except queue.Full:
            pass
        if self._thread.is_alive():
            self._fail(f"the disk did not take the last evidence within {timeout_s:g} s")

    def _fail(self, reason: str) -> None:
        if self.failure is None:
            self.failure = reason

    def _run(self) -> None:
        synced = time.monotonic()
        while True:
            try:
                item = self._queue.get(timeout=max(0.0, synced + SYNC_EVERY_S - time.monotonic()))
            except queue.Empty:
                item = ("", b"")
            if item is None:
                break
            name, block = item
            if name and self.failure is None:
                self._write(name, block)
            if time.monotonic() - synced >= SYNC_EVERY_S:
                self._sync()
                synced = time.monotonic()
        self._sync()
        self._close_files()

    def _write(self, name: str, block: bytes) -> None:
        try:
            if name in self._frames:
                self._frames[name].append(block)
            else:
                self._append_lines(name, block)
        except OSError as error:
            self._fail(f"evidence could not be written: {error.strerror or error}")
        except Exception as error:
            # A thread that died would lose all that follows without a word.
            self._fail(f"evidence could not be written: {type(error).__name__}: {error}")

    def _append_lines(self, name: str, block: bytes) -> None:
        if name not in self._lines:
            self._lines[name] = _open_lines(self._paths[name])
        file = self._lines[name]
        before = os.fstat(file).st_size
        try:
            written = 0
            while written < len(block):
                written += os.write(file, block[written:])
        except OSError:
            os.ftruncate(file, before)
            raise

    def _close_files(self) -> None:
        try:
            for frames in self._frames.values():
                frames.close()
            for lines in self._lines.values():
                os.close(lines)
        except OSError as error:
            self._fail(f"evidence could not be closed: {error.strerror or error}")

    def _sync(self) -> None:
        try:
            for frames in self._frames.values():
                frames.sync()
            for lines in self._lines.values():
                os.fsync(lines)
            self.free_bytes = shutil.disk_usage(self._directory).free
            if self.free_bytes < RESERVE_BYTES:
                self._fail(f"the disk has less than {RESERVE_BYTES >> 20} MiB left")
        except OSError as error:
            self._fail(f"evidence could not be synced: {error.strerror or error}")
