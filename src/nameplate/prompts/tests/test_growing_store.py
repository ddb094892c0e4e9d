"""A store that is read while it is written: what is whole is found, what is being written is no damage."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nameplate.contract.errors import EvidenceError
from nameplate.prompts.store import PromptStore, PromptWriter
from nameplate.zstd import decompress

entries_of = st.lists(st.tuples(st.binary(max_size=200), st.binary(max_size=40)), min_size=1, max_size=6)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a path for a store."""
    return tmp_path_factory.mktemp("growing") / "prompts.zst"


def write(path: Path, entries: list[tuple[bytes, bytes]]) -> bytes:
    """Write a new store of bodies and notes; return its bytes."""
    path.unlink(missing_ok=True)
    with PromptWriter(path) as writer:
        for index, (body, note) in enumerate(entries):
            writer.append(index, body, note=note)
    return path.read_bytes()


@settings(max_examples=60, deadline=None)
@given(entries=entries_of, data=st.data())
def test_what_has_become_whole_is_found_at_the_next_look(
    place: Path, entries: list[tuple[bytes, bytes]], data: st.DataObject
) -> None:
    """Whatever piece of the file is there at each look, all whole bodies are known, in order, and none twice."""
    whole = write(place, entries)
    cuts = sorted(data.draw(st.lists(st.integers(24, len(whole)), max_size=8)))
    place.write_bytes(whole[: cuts[0] if cuts else 24])
    with PromptStore.open(place) as store:
        known = len(store)
        for cut in [*cuts, len(whole)]:
            with place.open("r+b") as file:
                file.write(whole[:cut])
            known += store.refresh()
            assert len(store) == known and list(store.indices()) == list(range(known))
            assert [store.body(index) for index in range(known)] == [body for body, _ in entries[:known]]
        assert known == len(entries) and store.torn is None and store.repeated == 0
        assert [store.note(index) for index in range(known)] == [note for _, note in entries]


def test_a_look_takes_no_more_than_it_is_told_to(place: Path) -> None:
    """New bodies are taken in portions, so that a look costs a bounded time."""
    write(place, [(b"body", b"note")] * 25)
    with PromptStore.open(place) as store:
        assert len(store) == 25
    with PromptWriter(place.with_name("more.zst")) as writer:
        writer.flush()
        with PromptStore.open(place.with_name("more.zst")) as store:
            for index in range(25):
                writer.append(index, b"body", note=b"n")
            writer.flush()
            # A body and its note are two frames, and only bodies count.
            assert [store.refresh(10) for _ in range(4)] == [10, 10, 5, 0]


def test_notes_do_not_disturb_other_readers(place: Path) -> None:
    """The file stays a plain Zstandard file of bodies; a damaged note is named when it is asked for."""
    whole = write(place, [(b"first ", b"note 1"), (b"second", b"")])
    assert decompress(whole) == b"first second"
    place.write_bytes(whole.replace(b"\x5d\x2a\x4d\x18", b"\x5e\x2a\x4d\x18"))
    with PromptStore.open(place) as store:
        assert [store.body(0), store.body(1), store.note(1)] == [b"first ", b"second", b""]
        with pytest.raises(EvidenceError, match="note of prompt 0"):
            store.note(0)
        with pytest.raises(KeyError):
            store.note(2)
