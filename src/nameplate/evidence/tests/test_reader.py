"""A trial is read back tolerantly at its torn ends and strictly everywhere else."""

from __future__ import annotations

from array import array
from pathlib import Path

import msgspec
import pytest

from nameplate.contract.errors import EvidenceError
from nameplate.evidence import layout, reader, timeline
from nameplate.evidence.frames import FrameFile
from nameplate.evidence.journal import Journal
from nameplate.evidence.reader import TrialReader
from nameplate.evidence.records import HEADER, Kind
from nameplate.evidence.rows import RequestRow


def row(index: int) -> RequestRow:
    """Make a row of which only the index matters."""
    return RequestRow(
        index=index,
        phase="steady",
        class_="8/8",
        slot=0,
        scheduled_ns=index,
        outcome="ok",
        asked_output_tokens=8,
        prompt_sha256="",
        prompt_head_sha256="",
    )


def line(index: int) -> bytes:
    """Encode a row as the file has it."""
    return msgspec.json.encode(row(index)) + b"\n"


def test_a_torn_last_line_is_dropped_and_said(tmp_path: Path) -> None:
    """Cut at any byte of its last line, a file gives the rows before it and names the line."""
    data = line(0) + line(1)
    for cut in (*range(len(line(0)), len(data), 9), len(data) - 1):
        (tmp_path / layout.REQUESTS).write_bytes(data[:cut])
        trial = TrialReader(tmp_path)
        assert trial.rows() == [row(0)]
        assert trial.torn == ([] if cut == len(line(0)) else ["requests.jsonl ends inside line 2"])


@pytest.mark.parametrize(
    "damage",
    [b"{}\n", b"\n", b"\xff\xfe\n", b"\x00" * 40 + b"\n", b"[" * 50_000 + b"\n", b'{"index": "1"}\n'],
)
def test_a_damaged_line_in_the_middle_is_an_error_with_its_place(tmp_path: Path, damage: bytes) -> None:
    """Damage that a crash cannot explain names the file and the line."""
    (tmp_path / layout.REQUESTS).write_bytes(line(0) + damage + line(1))
    with pytest.raises(EvidenceError, match=r"requests\.jsonl, line 2: ") as caught:
        TrialReader(tmp_path).rows()
    assert caught.value.exit_code == 4


def test_a_journal_that_nests_without_end_is_an_error(tmp_path: Path) -> None:
    """Values that may hold anything may not hold what exhausts the stack."""
    deep = b'{"t_ns": 1, "what": "x", "detail": {"a": ' + b"[" * 50_000 + b"]" * 50_000 + b"}}\n"
    (tmp_path / layout.JOURNAL).write_bytes(deep)
    with pytest.raises(EvidenceError, match="line 1"):
        TrialReader(tmp_path).journal()


def test_a_line_without_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory is bounded by the longest line that we would write, not by what is there."""
    monkeypatch.setattr(reader, "LINE_LIMIT_BYTES", 1 << 20)
    (tmp_path / layout.REQUESTS).write_bytes(line(0) + b" " * (2 << 20))
    with pytest.raises(EvidenceError, match="line 2: longer than 1 MiB"):
        TrialReader(tmp_path).rows()


def test_the_files_of_several_workers_are_read_as_one(tmp_path: Path) -> None:
    """Rows of all workers come by index; a torn end of one loses nothing of another."""
    (tmp_path / (layout.REQUESTS + ".0")).write_bytes(line(2) + line(0) + b"{")
    (tmp_path / (layout.REQUESTS + ".1")).write_bytes(line(3) + line(1))
    (tmp_path / (layout.REQUESTS + ".10")).write_bytes(line(4))
    (tmp_path / (layout.REQUESTS + ".partial")).write_bytes(b"not ours\n")
    (tmp_path / (layout.REQUESTS + ".bak2")).write_bytes(b"not ours\n")
    for worker in (0, 1):
        file = FrameFile(tmp_path / f"{layout.READS}.{worker}")
        file.append(HEADER.pack(Kind.SENT, worker, 5, 0, 0, 0))
        file.close()
        file = FrameFile(tmp_path / f"{layout.EVENTS}.{worker}")
        file.append(timeline.pack(timeline.Timeline(worker, array("q", [1]))))
        file.close()
    trial = TrialReader(tmp_path)
    assert [each.index for each in trial.rows()] == [0, 1, 2, 3, 4]
    assert [record.request for record in trial.records()] == [0, 1]
    assert [each.index for each in trial.timelines()] == [0, 1]
    assert trial.torn == ["requests.jsonl.0 ends inside line 3"]


def test_a_torn_frame_of_one_worker_is_said_and_the_others_are_read(tmp_path: Path) -> None:
    """A torn tail ends its own file only."""
    for worker in (0, 1):
        file = FrameFile(tmp_path / f"{layout.READS}.{worker}")
        file.append(HEADER.pack(Kind.SENT, worker, 5, 0, 0, 0))
        file.append(HEADER.pack(Kind.EOF, worker, 6, 0, 0, 0))
        file.close()
    first = tmp_path / f"{layout.READS}.0"
    first.write_bytes(first.read_bytes()[:-1])
    trial = TrialReader(tmp_path)
    assert [(record.request, record.kind) for record in trial.records()] == [(0, 2), (1, 2), (1, 5)]
    assert len(trial.torn) == 1 and "reads.zst.0" in trial.torn[0]


@pytest.mark.parametrize("name", [layout.READS, layout.EVENTS])
def test_a_whole_frame_of_nonsense_is_an_error(tmp_path: Path, name: str) -> None:
    """A frame whose checksum holds but whose content is none was not torn by a crash."""
    file = FrameFile(tmp_path / name)
    file.append(b"\x01" * 5)
    file.close()
    trial = TrialReader(tmp_path)
    with pytest.raises(EvidenceError, match=name):
        list(trial.records() if name == layout.READS else trial.timelines())


def test_what_is_not_there_is_empty(tmp_path: Path) -> None:
    """A trial that was killed before its first row has no rows, no records and no manifest."""
    trial = TrialReader(tmp_path)
    assert trial.rows() == [] and list(trial.records()) == [] and trial.manifest() is None
    with pytest.raises(EvidenceError, match=r"no trial\.json"):
        trial.header()


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"{}", b"\xff", b'{"version": 1}'])
def test_a_damaged_header_is_named(tmp_path: Path, content: bytes) -> None:
    """A header that does not decode is damaged evidence, never a crash."""
    (tmp_path / layout.HEADER).write_bytes(content)
    with pytest.raises(EvidenceError, match=r"trial\.json"):
        TrialReader(tmp_path).header()


def test_the_journal_is_shared_by_several_writers(tmp_path: Path) -> None:
    """Entries of two writers stand in one file in the order in which they were made."""
    path = tmp_path / layout.JOURNAL
    one, two = Journal(path), Journal(path)
    one.note(1, "flush", proven=True)
    two.note(2, "drain")
    one.note(3, "window", requests=64)
    one.close()
    two.close()
    one.close()
    entries = TrialReader(tmp_path).journal()
    assert [(entry.t_ns, entry.what) for entry in entries] == [(1, "flush"), (2, "drain"), (3, "window")]
    assert entries[0].detail == {"proven": True}
