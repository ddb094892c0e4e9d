"""The table of all measurements: golden, columns that give way, marks, and reasons."""

from __future__ import annotations

import pytest

from nameplate.contract.matrix import KI
from nameplate.measure.cell import Speculation
from nameplate.measure.speed_result import SpeedResult
from nameplate.report.measurements import all_measurements
from nameplate.report.tests.rendering import hold_golden, text_of
from nameplate.report.tests.speed_results import decode_values, row, speed_result
from nameplate.verdict.cell import CellStatus

RESULT = speed_result()
WIDE = text_of(all_measurements(RESULT), 200)


def shown(result: SpeedResult = RESULT, width: int = 200, *, discarded: bool = False) -> str:
    return text_of(all_measurements(result, discarded=discarded), width)


def test_the_table_reads_as_agreed() -> None:
    """The whole table is as a person once found it good."""
    hold_golden("measurements_160", shown(width=160))


@pytest.mark.parametrize("width", [70, 80, 120, 200])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    """Columns give way, and it is said which."""
    text = shown(width=width)
    assert max(map(len, text.splitlines())) <= width
    assert "a wider terminal also shows" in text


def test_every_planned_cell_has_its_line() -> None:
    """Valid or not, each row of the result stands in the table."""
    lines = [line.split() for line in WIDE.splitlines()]
    phases = [words[0] for words in lines if words and words[0] in ("prefill", "decode", "burst", "mixed")]
    assert len(phases) == len(RESULT.rows)


def test_a_percentile_that_its_n_does_not_carry_is_marked() -> None:
    """The p50 of one stream is marked as elsewhere, and the mark explained."""
    text = WIDE
    assert "515.0 ms*" in text and "* unsupported" in text


def test_a_mixed_cell_shows_the_arrivals_first_token() -> None:
    """The TTFT of a mixed cell is that of the long prompt under load, not that of the streams' ramp."""
    line = next(line for line in WIDE.splitlines() if line.strip().startswith("mixed"))
    assert "2.074 s" in line


def test_discarded_numbers_stand_in_brackets() -> None:
    """What a cell that is not valid measured is marked, and n and cache are plain."""
    text = shown(discarded=True)
    line = next(line for line in text.splitlines() if "not ready" in line)
    assert "(4.830)" in line and "(180.0 s*)" in line and " cold " in line
    assert "no result" in text


def test_columns_without_anything_are_left_out() -> None:
    """Acceptance has a column only where something was drafted."""
    plain = speed_result(rows=(row("decode", 8 * KI, 1, decode_values(100.0, 1, 100)),))
    assert "accepted" not in shown(plain)
    drafted = decode_values(100.0, 1, 100, speculation=Speculation(10, 30, 21), tokens_per_chunk=2.1)
    text = shown(speed_result(rows=(row("decode", 8 * KI, 1, drafted),)), 250)
    assert "70.0%" in text and "2.10" in text


def test_reasons_are_listed_once_each() -> None:
    """Cells of one reason stand together, and a reason that begins with its status does not repeat it."""
    rows = [row("decode", 8 * KI, c, None, CellStatus.not_ready, "not ready within 90 s") for c in (2, 4)]
    text = " ".join(shown(speed_result(rows=tuple(rows))).split())
    assert "- decode 8K x 2, decode 8K x 4: not ready within 90 s" in text


def test_a_study_without_cells_is_said() -> None:
    """No table stands empty."""
    assert shown(speed_result(rows=())) == "No cell was planned.\n"
