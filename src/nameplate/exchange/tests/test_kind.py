"""What kind of run a directory holds: of every command's directory, and the words where it is none."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from nameplate.contract.errors import CallerError, EvidenceError, NameplateError
from nameplate.evidence import layout
from nameplate.exchange.kind import RunKind, only_trial, required_kind, run_kind
from nameplate.exchange.subject import Kind

KINDS: Mapping[Kind, RunKind] = {
    "trial": "trials",
    "capacity": "rated",
    "rate": "rated",
    "curve": "curve",
    "speed": "speed",
    "soak": "soak",
    "imported runs": "import",
    "imported matrix": "speed",
}


def test_every_command_makes_a_directory_of_a_known_kind(made: Mapping[Kind, Path]) -> None:
    """What each command leaves behind is told apart by its files; a trial of any of them is a trial."""
    assert {kind: run_kind(made[kind]) for kind in KINDS} == KINDS
    assert all(run_kind(trial) == "trial" for kind in KINDS for trial in layout.trials(made[kind]))


def test_a_result_that_is_cut_still_says_what_it_is(made: Mapping[Kind, Path], tmp_path: Path) -> None:
    """So its own reader names the damage."""
    for kind in ("curve", "speed", "imported runs"):
        whole = (made[kind] / layout.RESULT).read_bytes()
        (tmp_path / layout.RESULT).write_bytes(whole[: len(whole) // 2])
        assert run_kind(tmp_path) == KINDS[kind]


@pytest.mark.parametrize(
    ("name", "data", "fault", "said"),
    [
        (None, b"", CallerError, "holds no run"),
        (layout.CONTRACT, b"{}", CallerError, "ended before its first trial"),
        (layout.RESULT, b"", EvidenceError, "does not begin with the schema"),
        (layout.RESULT, b"[" * 10_000, EvidenceError, "does not begin with the schema"),
        (layout.RESULT, b'{"runs": {"schema": "nameplate.speed/1"}}', EvidenceError, "does not begin"),
        (layout.RESULT, b'{"schema": "nameplate.song/9"}', EvidenceError, "'nameplate.song/9', which is not known"),
        (layout.RESULT, b'{"schema": "\xff<b>"}', EvidenceError, "not known here"),
    ],
)  # fmt: skip
def test_what_is_no_run_says_why(
    tmp_path: Path, name: str | None, data: bytes, fault: type[NameplateError], said: str
) -> None:
    """An empty directory, a contract alone, another tool's result: none is a run, and each has its own words."""
    if name is not None:
        (tmp_path / name).write_bytes(data)
    assert run_kind(tmp_path) is None
    with pytest.raises(fault, match=said):
        required_kind(tmp_path)


def test_what_is_not_there_says_so(tmp_path: Path) -> None:
    """A path that leads nowhere, or to a file, is no directory."""
    (tmp_path / "file").touch()
    for name in ("file", "nothing"):
        with pytest.raises(CallerError, match="is no directory"):
            required_kind(tmp_path / name)


def test_one_trial_alone_is_meant_and_of_several_none(made: Mapping[Kind, Path], tmp_path: Path) -> None:
    """Trials that no study decided by are given one by one."""
    (one,) = layout.trials(made["trial"])
    assert only_trial(made["trial"]) == one
    for name in ("a", "b"):
        shutil.copytree(one, tmp_path / layout.TRIALS / name)
    with pytest.raises(CallerError, match="holds 2 trials that no study decided by"):
        only_trial(tmp_path)
