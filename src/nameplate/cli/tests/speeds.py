"""What a speed study left behind, for tests that look at its rows."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from nameplate.measure.speed_result import CellRow, SpeedResult, decode_speed
from nameplate.verdict.cell import CellStatus
from nameplate.verify import verify

__all__ = ["FIRST", "Found", "read_found"]

# On the built-in engine the probe takes seven generation requests and the warm-up one; prompts are counted without.
FIRST = 8


class Found(Struct, frozen=True):
    """Hold a study's exit code, its result, and what it said to people."""

    code: int
    result: SpeedResult
    said: str

    @property
    def rows(self) -> dict[str, CellRow]:
        """Return the rows by name: `decode 1K x 2`."""
        return {f"{row.kind} {row.label} x {row.concurrency}": row for row in self.result.rows}

    @property
    def statuses(self) -> list[str]:
        return [row.status.value for row in self.result.rows]

    @property
    def row(self) -> CellRow:
        """Return the only row."""
        (row,) = self.result.rows
        return row


def read_found(directory: Path, code: int, said: str, *, verified: bool = True) -> Found:
    """Read a study that ended, and hold what is true of every one: statuses with words, no rate unless valid."""
    result = decode_speed((directory / "result.json").read_bytes())
    assert result.finished and result.exit_code == code
    for row in result.rows:
        assert row.reason
        assert (row.values is not None) == (row.status is CellStatus.valid)
        assert row.values is None or row.values.tokens_per_s
        assert row.discarded is None or row.values is None
    if verified:
        report = verify(directory)
        assert not [check for check in report.checks if check.status == "fail"], report
    return Found(code, result, said)
