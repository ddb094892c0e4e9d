"""Tables: types that do not depend on values, groups of bounded size, status before number."""

from __future__ import annotations

import io
import math
from collections.abc import Mapping
from pathlib import Path

import pytest
from msgspec import structs
from pyarrow import parquet

from nameplate.evidence import layout
from nameplate.evidence.reader import TrialReader
from nameplate.exchange.exporting import table_of
from nameplate.exchange.subject import Kind, subject_of
from nameplate.exchange.tables import as_parquet
from nameplate.exchange.tables.as_csv import csv_of
from nameplate.exchange.tables.column import Column, Table, Value, column, distribution
from nameplate.exchange.tables.column import table_of as tabled
from nameplate.exchange.tables.trials import trials_of
from nameplate.measure.result import decode, encode
from nameplate.statistics.percentile import Distribution, summarise


def parquet_of(table: Table) -> parquet.ParquetFile:
    stream = io.BytesIO()
    as_parquet.write_parquet(table, stream)
    return parquet.ParquetFile(io.BytesIO(stream.getvalue()))


def test_requests_are_the_rows_of_the_trials(made: Mapping[Kind, Path]) -> None:
    """Every field of every row, with its trial; times are whole numbers of 64 bits, few words a dictionary."""
    subject = subject_of(made["capacity"])
    held = parquet_of(table_of(subject, "requests"))
    fields = {name.rstrip("_") for name in structs.asdict(TrialReader(subject.trials[0]).rows()[0])} - {
        "loop"
    }
    assert fields <= set(held.schema_arrow.names)
    types = {field.name: str(field.type) for field in held.schema_arrow}
    assert types["sent_ns"] == types["sent_wall_ns"] == "int64" and types["error"] == "string"
    assert types["outcome"].startswith("dictionary") and types["warnings"].startswith("list")
    rows = held.read().to_pylist()
    assert {row["trial"] for row in rows} == {path.name for path in subject.trials}
    some = next(row for row in rows if row["role"] == "confirmation" and row["measured"])
    own = TrialReader(made["capacity"] / layout.TRIALS / some["trial"]).rows()[some["index"]]
    assert some["ttft_ns"] == own.ttft_ns and some["output_sha256"] == own.output_sha256
    assert some["trial_status"] in ("pass", "fail") and some["level"] == some["concurrency"]


def test_a_file_is_written_in_groups(monkeypatch: pytest.MonkeyPatch, made: Mapping[Kind, Path]) -> None:
    """Rows are taken as they are written, so that memory does not grow with a study."""
    monkeypatch.setattr(as_parquet, "GROUP_ROWS", 7)
    held = parquet_of(table_of(subject_of(made["trial"]), "requests"))
    assert held.num_row_groups == math.ceil(held.metadata.num_rows / 7) > 1


def test_types_do_not_depend_on_values() -> None:
    """An empty table, and one of nulls alone, have the types of a full one."""
    columns: list[Column[int]] = [column("a", "int", "real"), Column("b", "name", lambda _: None)]
    empty, nulls = (parquet_of(tabled("x/1", columns, rows, {})) for rows in ([], [1, 2]))
    assert empty.schema_arrow.types == nulls.schema_arrow.types and empty.metadata.num_rows == 0


def test_never_is_infinite_and_absent_is_null() -> None:
    """A percentile that reaches what never came is infinite; without members there is none."""

    def row(held: Distribution) -> dict[str, Value]:
        table = tabled("x/1", distribution("ttft", lambda value: value), [held], {})
        return dict(zip(table.names, next(table.rows), strict=True))

    some = row(summarise([1.0, 2.0], censored=2))
    assert (
        some["ttft_p99_ns"] == math.inf and some["ttft_p50_ns"] == math.inf and some["ttft_mean_ns"] is None
    )
    assert row(summarise([]))["ttft_p99_ns"] is None


def test_status_beats_number(made: Mapping[Kind, Path], tmp_path: Path) -> None:
    """An invalid trial has its status and reasons, and neither a rate nor a latency."""
    source = subject_of(made["trial"]).trials[0]
    (tmp_path / layout.HEADER).write_bytes((source / layout.HEADER).read_bytes())
    result = decode((source / layout.RESULT).read_bytes())
    verdict = structs.replace(result.verdict, status="invalid", reasons=("warm cache",))
    (tmp_path / layout.RESULT).write_bytes(encode(structs.replace(result, verdict=verdict)))
    subject = subject_of(tmp_path)
    table = trials_of(subject)
    row = dict(zip(table.names, next(table.rows), strict=True))
    assert row["trial_status"] == "invalid" and row["reasons"] == ("warm cache",) and row["sent"] == 20
    assert row["ttft_p50_ns"] is None and row["output_tokens_whole_run_per_s"] is None
    measures = list(table_of(subject, "measures").rows)
    assert len(measures) == 1 and "invalid" in measures[0] and None in measures[0]


def test_a_table_of_hostile_words_is_text() -> None:
    """A formula is made a text in CSV, and stays what it was in Parquet."""
    table = [
        Column[str]("a", "text", lambda word: word),
        Column[str]("b", "texts", lambda word: (word, word)),
    ]
    said = b"".join(csv_of(tabled("x/1", table, ["=1+1\n\x1b[31m"], {}))).decode()
    assert said.startswith("a,b\n'=1+1") and "\x1b" not in said and said.count("\n") == 2
    assert parquet_of(tabled("x/1", table, ["=1+1"], {})).read().to_pylist() == [
        {"a": "=1+1", "b": ["=1+1"] * 2}
    ]
