"""A file of frames gives whole frames only, whatever became of its end or its middle."""

from __future__ import annotations

import errno
import os
import random
import struct
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nameplate import zstd
from nameplate.evidence.frames import FRAME_LIMIT_BYTES, FrameFile, Torn, read_frames

CONTENTS = [b"first " * 9, bytes(range(256)), b"x", b"the last one, " * 30]


def written(path: Path, contents: list[bytes]) -> bytes:
    """Write a file of frames; return its bytes."""
    path.unlink(missing_ok=True)
    file = FrameFile(path)
    for content in contents:
        file.append(content)
    file.sync()
    file.close()
    file.close()
    return path.read_bytes()


def whole_frames(path: Path) -> tuple[list[bytes], str]:
    """Read what is whole and what was said of the rest."""
    found: list[bytes] = []
    try:
        for frame in read_frames(path):
            found.append(frame)
    except Torn as torn:
        return found, str(torn)
    return found, ""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a path for a file of frames."""
    return tmp_path_factory.mktemp("frames") / "reads.zst"


@settings(max_examples=40, deadline=None)
@given(contents=st.lists(st.binary(min_size=1, max_size=2000), max_size=6))
def test_frames_come_back(place: Path, contents: list[bytes]) -> None:
    """Frames come back whole and in order; the file is a plain zstd file that any tool unpacks."""
    packed = written(place, contents)
    assert whole_frames(place) == (contents, "")
    if packed:
        assert zstd.decompress(packed) == b"".join(contents)


def test_a_file_is_appended_to(tmp_path: Path) -> None:
    """Opening a file again continues it."""
    path = tmp_path / "f"
    written(path, [b"a"])
    file = FrameFile(path)
    file.append(b"b")
    file.close()
    assert whole_frames(path) == ([b"a", b"b"], "")


def test_a_tail_cut_at_any_byte_is_dropped_and_said(tmp_path: Path) -> None:
    """Cut at each byte position in turn, the whole frames before the cut remain, and the rest is named."""
    path = tmp_path / "reads.zst"
    data = written(path, CONTENTS)
    ends = [sum(len(written(tmp_path / "one", [c])) for c in CONTENTS[:n]) for n in range(len(CONTENTS) + 1)]
    assert ends[-1] == len(data)
    for cut in range(len(data) + 1):
        path.write_bytes(data[:cut])
        found, said = whole_frames(path)
        whole = sum(end <= cut for end in ends) - 1
        assert found == CONTENTS[:whole]
        assert bool(said) == (cut not in ends)
        assert not said or ("reads.zst" in said and f"byte {ends[whole]}" in said)


def test_any_damaged_byte_is_detected(tmp_path: Path) -> None:
    """One changed byte anywhere is noticed if it changes anything, and no changed content is ever given out."""
    path = tmp_path / "reads.zst"
    data = written(path, CONTENTS)
    random_source = random.Random(1)
    for at in range(len(data)):
        damaged = bytearray(data)
        damaged[at] ^= 1 << random_source.randrange(8)
        path.write_bytes(damaged)
        found, said = whole_frames(path)
        assert found == CONTENTS[: len(found)], f"byte {at}"
        # One bit of a frame's header means nothing to anybody; all others are noticed.
        assert said or found == CONTENTS, f"byte {at}"


@pytest.mark.parametrize("tail", [bytes(4096), b"\x00", os.urandom(100), b"\x28\xb5\x2f\xfd", b"garbage\n"])
def test_a_foreign_tail_is_named(tmp_path: Path, tail: bytes) -> None:
    """Zeros, as a crashed file system leaves them, and other bytes that are no frame are named."""
    path = tmp_path / "reads.zst"
    path.write_bytes(written(path, CONTENTS) + tail)
    found, said = whole_frames(path)
    assert found == CONTENTS and said


def test_a_bomb_is_refused_in_bounded_memory(tmp_path: Path) -> None:
    """A small frame that decodes to gigabytes is refused as soon as it passes the limit."""
    compressor = zstd.ZstdCompressor(level=1)
    block = bytes(8 << 20)
    parts = [compressor.compress(block) for _ in range(FRAME_LIMIT_BYTES // len(block) + 4)]
    path = tmp_path / "reads.zst"
    path.write_bytes(b"".join([*parts, compressor.flush()]))
    assert path.stat().st_size < 100_000
    tracemalloc.start()
    found, said = whole_frames(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found == [] and "above 64 MiB" in said
    assert peak < 3 * FRAME_LIMIT_BYTES


def test_a_window_beyond_reason_is_refused(tmp_path: Path) -> None:
    """A header that asks for a window of terabytes gets no memory."""
    path = tmp_path / "reads.zst"
    path.write_bytes(struct.pack("<IBB", 0xFD2FB528, 0, 31 << 3) + bytes(20))
    found, said = whole_frames(path)
    assert found == [] and "damaged" in said


def test_long_files_are_read_in_bounded_memory(tmp_path: Path) -> None:
    """Reading takes the memory of a frame, not of a file."""
    path = tmp_path / "reads.zst"
    content = random.Random(2).randbytes(1 << 20)
    written(path, [content] * 24)
    tracemalloc.start()
    assert sum(len(frame) for frame in read_frames(path)) == 24 << 20
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 << 20


@pytest.mark.parametrize("fail_at", range(1, 5))
def test_a_frame_is_whole_or_absent_when_the_disk_fills(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fail_at: int
) -> None:
    """A write that stops half way is cut away again, and later frames follow on whole ones."""
    path = tmp_path / "reads.zst"
    file = FrameFile(path)
    file.append(CONTENTS[0])
    real, calls = os.write, 0

    def short(descriptor: int, data: bytes) -> int:
        nonlocal calls
        calls += 1
        if calls == fail_at:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(descriptor, data[:7])

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", short)
        with pytest.raises(OSError, match="No space"):
            file.append(random.Random(3).randbytes(500))
    file.append(CONTENTS[1])
    file.close()
    assert whole_frames(path) == (CONTENTS[:2], "")
