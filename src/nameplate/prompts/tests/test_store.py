"""Every body comes back as it was stored, by its index, whatever happened to the file's end."""

from __future__ import annotations

import contextlib
import os
import struct
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nameplate.contract.errors import EvidenceError
from nameplate.prompts.store import PromptStore, PromptWriter
from nameplate.zstd import decompress

bodies_of = st.dictionaries(st.integers(0, 2**40), st.binary(max_size=300), max_size=8)


def write(path: Path, bodies: dict[int, bytes]) -> Path:
    """Write a new store."""
    path.unlink(missing_ok=True)
    with PromptWriter(path) as writer:
        for index, body in bodies.items():
            writer.append(index, body, phase=index % 3)
    return path


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a path for a store."""
    return tmp_path_factory.mktemp("store") / "prompts.zst"


@settings(max_examples=60, deadline=None)
@given(bodies=bodies_of)
def test_bodies_come_back_by_index(place: Path, bodies: dict[int, bytes]) -> None:
    """In whatever order they were written, bodies are found by their index, and no others are."""
    with PromptStore.open(write(place, bodies)) as store:
        assert list(store.indices()) == sorted(bodies) and len(store) == len(bodies)
        assert {index: store.body(index) for index in bodies} == bodies
        assert all(store.entry(index).phase == index % 3 for index in bodies)
        assert store.torn is None and store.repeated == 0
        assert -1 not in store and "x" not in store
        with pytest.raises(KeyError):
            store.body(2**41)


@settings(max_examples=60, deadline=None)
@given(bodies=bodies_of.filter(bool), data=st.data())
def test_a_torn_tail_loses_the_last_body_alone(
    place: Path, bodies: dict[int, bytes], data: st.DataObject
) -> None:
    """A file cut anywhere behind its header keeps all bodies that are whole, and says that something is missing."""
    whole = write(place, bodies).read_bytes()
    cut = data.draw(st.integers(24, len(whole) - 1))
    place.write_bytes(whole[:cut])
    with PromptStore.open(place) as store:
        written = list(bodies.items())[: len(store)]
        assert {index: store.body(index) for index in store.indices()} == dict(written)
        at_an_end = store.torn is None
        assert at_an_end or "from byte" in (store.torn or "")
        sizes = [store.entry(index).compressed_bytes + 36 for index, _ in written]
        assert at_an_end == (24 + sum(sizes) == cut)


@settings(max_examples=80, deadline=None)
@given(bodies=bodies_of.filter(bool), data=st.data())
def test_damage_is_never_returned_as_a_body(
    place: Path, bodies: dict[int, bytes], data: st.DataObject
) -> None:
    """A changed byte anywhere gives an error, a shorter store or the true body; never another body."""
    damaged = bytearray(write(place, bodies).read_bytes())
    damaged[data.draw(st.integers(0, len(damaged) - 1))] ^= data.draw(st.integers(1, 255))
    place.write_bytes(damaged)
    with contextlib.suppress(EvidenceError), PromptStore.open(place) as store:
        for index in store.indices():
            assert store.body(index) == bodies[index]


def test_the_file_is_a_plain_zstandard_file(place: Path) -> None:
    """Any zstd program prints the bodies one after another; the headers are frames that it skips."""
    write(place, {0: b"first", 1: b"second"})
    assert decompress(place.read_bytes()) == b"firstsecond"


def test_frames_of_a_later_version_are_skipped(place: Path) -> None:
    """An unknown skippable frame between two bodies does not disturb."""
    data = write(place, {4: b"body"}).read_bytes()
    place.write_bytes(data[:24] + struct.pack("<II", 0x184D2A5F, 3) + b"xyz" + data[24:])
    with PromptStore.open(place) as store:
        assert store.body(4) == b"body" and store.torn is None


def test_the_first_of_two_bodies_counts(place: Path) -> None:
    """An index that occurs twice is counted, and the first body is the one that is kept."""
    place.unlink(missing_ok=True)
    with PromptWriter(place) as writer:
        for body in (b"one", b"two"):
            writer.append(7, body)
    with PromptStore.open(place) as store:
        assert store.body(7) == b"one" and store.repeated == 1 and len(store) == 1


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "incomplete"),
        (b"x" * 100, "not a prompt store"),
        (struct.pack("<II8sH6x", 0x184D2A5B, 16, b"NPLPROMP", 9), "version 9"),
    ],
)
def test_what_is_no_store_is_refused(place: Path, content: bytes, message: str) -> None:
    """An empty file, another file and a later version are told apart."""
    place.write_bytes(content)
    with pytest.raises(EvidenceError, match=message):
        PromptStore.open(place)


def test_a_store_is_never_overwritten(place: Path) -> None:
    """A writer refuses a path where something lies already."""
    write(place, {})
    with pytest.raises(FileExistsError):
        PromptWriter(place)


def test_what_was_flushed_can_be_read_while_writing_goes_on(tmp_path: Path) -> None:
    """A reader sees what was flushed, before the writer has ended."""
    path = tmp_path / "prompts.zst"
    with PromptWriter(path) as writer:
        writer.append(0, b"early")
        writer.flush()
        with PromptStore.open(path) as store:
            assert store.body(0) == b"early"


def test_descriptors_are_closed(place: Path) -> None:
    """Neither a refused file nor a closed store leaves a descriptor open."""
    before = len(list(Path("/proc/self/fd").iterdir())) if Path("/proc/self/fd").exists() else None
    write(place, {1: b"x"})
    with PromptStore.open(place):
        pass
    place.write_bytes(b"")
    with pytest.raises(EvidenceError):
        PromptStore.open(place)
    if before is not None:
        assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208
