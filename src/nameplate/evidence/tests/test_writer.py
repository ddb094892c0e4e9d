"""The writer takes everything without waiting, and names what a disk did to it."""

from __future__ import annotations

import errno
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import msgspec
import pytest

from nameplate.contract.errors import ClientError
from nameplate.evidence import frames, layout, writer
from nameplate.evidence.journal import Journal, JournalEntry
from nameplate.evidence.reader import TrialReader
from nameplate.evidence.records import HEADER, Kind
from nameplate.evidence.writer import EvidenceWriter

LINE = msgspec.json.encode(JournalEntry(1, "x", {"text": "y" * 200})) + b"\n"
RECORD = HEADER.pack(Kind.SENT, 7, 1, 0, 0, 0)


class Disk:
    """Stand for a disk that takes writes in pieces and fills up at the n-th call."""

    def __init__(self, full_at: int, piece: int = 1 << 30) -> None:
        self.calls = 0
        self._full_at = full_at
        self._piece = piece
        self._real = os.write

    def write(self, descriptor: int, data: bytes) -> int:
        """Write a piece, or raise ENOSPC from the n-th call on."""
        self.calls += 1
        if self.calls >= self._full_at:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return self._real(descriptor, data[: self._piece])


def whole(directory: Path) -> tuple[int, int]:
    """Count the records and lines that can be read; nothing may be torn."""
    trial = TrialReader(directory)
    counts = len(list(trial.records())), len(trial.lines(layout.REQUESTS, JournalEntry))
    assert trial.torn == []
    return counts


def test_what_is_put_is_written_in_order(tmp_path: Path) -> None:
    """Blocks of all files arrive; closing waits for the last of them."""
    evidence = EvidenceWriter(tmp_path)
    for _ in range(50):
        evidence.put(layout.READS, RECORD * 3)
        evidence.put(layout.REQUESTS, LINE)
    evidence.close()
    assert evidence.failure is None and whole(tmp_path) == (150, 50)


def test_workers_write_files_of_their_own(tmp_path: Path) -> None:
    """A suffix keeps the files of several workers apart."""
    for suffix in (".0", ".1"):
        evidence = EvidenceWriter(tmp_path, suffix)
        evidence.put(layout.REQUESTS, LINE)
        evidence.close()
    assert whole(tmp_path) == (0, 2)


@pytest.mark.parametrize("piece", [1 << 30, 20])
@pytest.mark.parametrize("full_at", [1, 2, 3, 5, 8, 13, 20])
def test_a_full_disk_leaves_whole_frames_and_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, full_at: int, piece: int
) -> None:
    """Whenever the disk fills up, what is there is whole, the failure has a sentence, and the caller never sees an
    exception."""
    disk = Disk(full_at, piece)
    monkeypatch.setattr(os, "write", disk.write)
    evidence = EvidenceWriter(tmp_path)
    for _ in range(12):
        evidence.put(layout.READS, RECORD)
        evidence.put(layout.REQUESTS, LINE)
    evidence.close()
    monkeypatch.undo()
    assert evidence.failure == "evidence could not be written: No space left on device"
    assert disk.calls == full_at, "nothing is tried on a disk that failed"
    records, lines = whole(tmp_path)
    assert records - lines in (0, 1)


def test_a_disk_that_is_nearly_full_is_named_before_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Room for sealing is kept: the writer gives up while there is still some left."""
    usage = shutil.disk_usage(tmp_path)._replace(free=writer.RESERVE_BYTES - 1)
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: usage)
    evidence = EvidenceWriter(tmp_path)
    evidence.put(layout.REQUESTS, LINE)
    evidence.close()
    assert evidence.failure == "the disk has less than 32 MiB left" and whole(tmp_path) == (0, 1)


@pytest.mark.parametrize("call", ["fsync", "close"])
def test_an_error_while_syncing_or_closing_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    """A disk that reports its error late, at a sync or a close, is a failure too."""
    evidence = EvidenceWriter(tmp_path)
    evidence.put(layout.REQUESTS, LINE)
    real = getattr(os, call)
    failed = threading.Event()

    def broken(descriptor: int) -> None:
        if threading.current_thread().name == "evidence-writer" and not failed.is_set():
            failed.set()
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        real(descriptor)

    monkeypatch.setattr(os, call, broken)
    evidence.close()
    assert evidence.failure is not None and "Input/output error" in evidence.failure


def test_a_fault_of_our_own_is_named_and_not_silent(tmp_path: Path) -> None:
    """A writer thread that meets an unknown file goes on living and says so."""
    evidence = EvidenceWriter(tmp_path)
    evidence.put("unknown", b"x")
    evidence.close()
    assert evidence.failure is not None and "unknown" in evidence.failure


def test_a_slow_disk_overflows_the_queue_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While a write hangs, `put` never waits; one block too many is a failure that names the disk."""
    release, hangs = threading.Event(), threading.Event()
    real = frames.FrameFile.append

    def slow(file: frames.FrameFile, frame: bytes) -> int:
        hangs.set()
        release.wait(10)
        return real(file, frame)

    monkeypatch.setattr(frames.FrameFile, "append", slow)
    evidence = EvidenceWriter(tmp_path)
    evidence.put(layout.READS, RECORD)
    assert hangs.wait(10)
    for _ in range(writer.QUEUE_BLOCKS + 1):
        assert evidence.failure is None
        evidence.put(layout.READS, RECORD)
    assert evidence.failure is not None and "too slow" in evidence.failure
    release.set()
    evidence.close()
    assert whole(tmp_path) == (1, 0)


def test_a_disk_that_hangs_for_ever_does_not_hang_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Closing gives up after its timeout, once, and says so, with a full queue as with an empty one."""
    release = threading.Event()
    monkeypatch.setattr(frames.FrameFile, "append", lambda _file, _frame: release.wait(10))
    evidence = EvidenceWriter(tmp_path)
    evidence.put(layout.READS, RECORD)
    began = time.monotonic()
    evidence.close(timeout_s=0.05)
    assert time.monotonic() - began < 5
    assert evidence.failure == "the disk did not take the last evidence within 0.05 s"
    release.set()


@pytest.mark.parametrize("fail_at", [1, 2, 3])
def test_a_journal_entry_is_whole_or_absent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fail_at: int
) -> None:
    """An entry that the disk took half is cut away, so that the next one does not continue it."""
    notes = Journal(tmp_path / layout.JOURNAL)
    notes.note(1, "first")
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", Disk(fail_at, piece=9).write)
        with pytest.raises(ClientError, match="No space"):
            notes.note(2, "lost", reason="the disk is full")
    notes.note(3, "last")
    notes.close()
    trial = TrialReader(tmp_path)
    assert [entry.what for entry in trial.journal()] == ["first", "last"] and trial.torn == []


_WRITES_FOR_EVER = """
import os, sys, time
from pathlib import Path
from nameplate.evidence import layout
from nameplate.evidence.journal import Journal
from nameplate.evidence.writer import EvidenceWriter
line, record = (bytes.fromhex(text) for text in sys.argv[2:])
writer, notes = EvidenceWriter(Path(sys.argv[1])), Journal(Path(sys.argv[1]) / layout.JOURNAL)
print("ready", flush=True)
while True:
    notes.note(1, "x")
    writer.put(layout.REQUESTS, line * 20)
    writer.put(layout.READS, record * 100)
    time.sleep(0.0002)
"""


@pytest.mark.live
def test_a_killed_process_leaves_everything_readable(tmp_path: Path) -> None:
    """Killed at random moments while it writes, a process leaves whole records and lines but for one torn tail a
    file, which is named."""
    moments = random.Random(5)
    for number in range(5):
        directory = tmp_path / str(number)
        directory.mkdir()
        process = subprocess.Popen(
            [sys.executable, "-c", _WRITES_FOR_EVER, str(directory), LINE.hex(), RECORD.hex()],
            stdout=subprocess.PIPE,
        )
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(moments.uniform(0.0, 0.15))
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        trial = TrialReader(directory)
        records = list(trial.records())
        assert len(records) % 100 == 0 and all(record.request == 7 for record in records)
        trial.lines(layout.REQUESTS, JournalEntry)
        assert all(entry.what == "x" for entry in trial.journal())
        assert len(trial.torn) <= 3


_FILLS_A_DISK = """
import sys, time
from pathlib import Path
from nameplate.evidence import layout, writer
from nameplate.evidence.journal import JournalEntry
from nameplate.evidence.reader import TrialReader
line, record = (bytes.fromhex(text) for text in sys.argv[2:])
writer.RESERVE_BYTES = 0
place = Path(sys.argv[1])
evidence = writer.EvidenceWriter(place)
blocks = 0
while evidence.failure is None:
    evidence.put(layout.READS, record * 41)
    evidence.put(layout.REQUESTS, line * 50)
    blocks += 1
    time.sleep(0.001)
evidence.close()
print(evidence.failure)
trial = TrialReader(place)
records, lines = len(list(trial.records())), len(trial.lines(layout.REQUESTS, JournalEntry))
print(not trial.torn and records % 41 == 0 and lines % 50 == 0 and 0 < lines <= 50 * blocks)
"""


@pytest.mark.live
def test_a_really_full_disk(tmp_path: Path) -> None:
    """On a real file system of 256 KiB the writer names the full disk and leaves whole frames and lines."""
    mount = f"mount -t tmpfs -o size=256k tmpfs {tmp_path}"
    # A mount namespace of its own: nothing is mounted for anybody else, and nothing is left.
    tried = subprocess.run(["unshare", "-rm", "sh", "-c", mount], capture_output=True, check=False)
    if tried.returncode:
        pytest.skip(f"no file system can be mounted here: {tried.stderr.decode().strip()}")
    script = f'{mount} && exec "{sys.executable}" -c "$1" "{tmp_path}" "$2" "$3"'
    done = subprocess.run(
        ["unshare", "-rm", "sh", "-c", script, "sh", _FILLS_A_DISK, LINE.hex(), RECORD.hex()],
        capture_output=True,
        check=False,
        timeout=20,
    )
    assert done.stdout.decode().splitlines() == [
        "evidence could not be written: No space left on device",
        "True",
    ], done.stderr.decode()
