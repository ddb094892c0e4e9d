"""Every kind of directory by every format: written as that format's own reader wants it, or refused in words."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any, get_args

import pytest
from llmd_benchmark_report import load_benchmark_report
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from pyarrow import parquet

from nameplate.cli import export as command
from nameplate.contract.errors import CallerError
from nameplate.evidence import layout
from nameplate.exchange.exporting import Document, Export, export
from nameplate.exchange.formats_out import FORMATS, TABLES, TABLES_OF, Format, TableName, formats_of
from nameplate.exchange.opening import open_result
from nameplate.exchange.subject import Kind, subject_of
from nameplate.exchange.tests.conftest import called

KINDS: tuple[Kind, ...] = get_args(Kind)
DOCS = Path(__file__).resolve().parents[4] / "docs" / "exchange.md"


def written(made: Export) -> dict[str, bytes]:
    """Return what an export writes: documents by name, one file under an empty name."""
    found = {}
    documents = made.documents or ((Document("", made.write),) if made.write is not None else ())
    for name, write in ((document.name, document.write) for document in documents):
        stream = io.BytesIO()
        write(stream)
        found[name] = stream.getvalue()
    return found


def read_back(format_: Format, data: bytes, path: Path) -> None:
    """Read a document with a reader of its format."""
    if format_ == "csv":
        assert list(csv.DictReader(io.StringIO(data.decode())))
    elif format_ == "parquet":
        assert parquet.read_table(io.BytesIO(data)).num_rows
    elif format_ == "prometheus":
        parse: Any = text_string_to_metric_families
        assert list(parse(data.decode()))
    elif format_ == "llm-d":
        assert load_benchmark_report(json.loads(data)).dump()["version"] == "0.2.1"
    else:
        path.write_bytes(data)
        assert open_result(path).format.key in ("aiperf", "llm-inference-bench")


@pytest.mark.parametrize(("kind", "format_"), [*product(KINDS, FORMATS)])
def test_every_kind_by_every_format(
    made: Mapping[Kind, Path], tmp_path: Path, kind: Kind, format_: Format
) -> None:
    """It is read back by the format's own reader, or refused with what can be had instead."""
    assert subject_of(made[kind]).kind == kind
    if format_ not in formats_of(kind):
        with pytest.raises(CallerError, match="has no place for") as refused:
            export(made[kind], format_)
        assert "It can be written as csv, parquet, prometheus" in str(refused.value.hint)
        return
    documents = written(export(made[kind], format_))
    several = format_ in ("aiperf", "llm-d") and kind in ("capacity", "rate", "curve")
    assert len(documents) > 1 if several else list(documents) == [""]
    for data in documents.values():
        read_back(format_, data, tmp_path / "written")


@pytest.mark.parametrize(("kind", "table"), [*product(KINDS, TABLES)])
def test_both_forms_of_a_table_are_one_table(made: Mapping[Kind, Path], kind: Kind, table: TableName) -> None:
    """CSV and Parquet have the same columns, in order, and the same values; absent is empty and null."""
    if table not in TABLES_OF[kind]:
        with pytest.raises(CallerError, match=f"has no table of {table}"):
            export(made[kind], "csv", table)
        return
    (text,) = written(export(made[kind], "csv", table)).values()
    (data,) = written(export(made[kind], "parquet", table)).values()
    lines = list(csv.reader(io.StringIO(text.decode())))
    held = parquet.read_table(io.BytesIO(data))
    assert lines[0] == held.column_names and len(lines) - 1 == held.num_rows
    metadata = {key.decode(): value.decode() for key, value in held.schema.metadata.items()}
    assert metadata["nameplate.schema"] == f"nameplate.{table}/1" and "nameplate.tool" in metadata
    assert ("nameplate.contract_sha256" in metadata) is not kind.startswith("imported")
    for line, row in zip(lines[1:], held.to_pylist(), strict=True):
        for said, value in zip(line, row.values(), strict=True):
            assert (said == "") == (value in (None, "", [])), row
            if isinstance(value, float):
                assert float(said) == value
            elif isinstance(value, int) and not isinstance(value, bool):
                assert int(said) == value


def test_the_command_writes_files(made: Mapping[Kind, Path], tmp_path: Path) -> None:
    """One file, or a directory where there is a document a trial; nothing is overwritten."""
    out = tmp_path / "trials.parquet"
    assert called("export", str(made["capacity"]), "--to", "parquet", "--out", str(out)) == 0
    assert parquet.read_table(out).num_rows and [path.name for path in tmp_path.iterdir()] == [out.name]
    assert called("export", str(made["capacity"]), "--to", "parquet", "--out", str(out)) == 2
    reports = tmp_path / "reports"
    assert called("export", str(made["curve"]), "--to", "llm-d") == 2
    assert called("export", str(made["curve"]), "--to", "llm-d", "--out", str(reports)) == 0
    trials = (made["curve"] / layout.TRIALS).iterdir()
    assert {path.stem for path in reports.iterdir()} == {path.name for path in trials}
    assert called("export", str(made["curve"]), "--to", "llm-d", "--out", str(reports)) == 2
    assert called("export", str(made["trial"]), "--to", "aiperf", "--table", "trials") == 2


def test_the_commands_words_are_the_formats() -> None:
    """The options name every format and every table there is."""
    assert set(command.FORMATS) == set(FORMATS) and set(command.TABLES) == set(TABLES)


def test_the_documentation_has_the_same_table() -> None:
    """What docs/exchange.md says can be written from what is what can be."""
    told = {}
    for line in DOCS.read_text().splitlines():
        cells = [cell.strip() for cell in line.removeprefix("|").removesuffix("|").split("|")]
        if len(cells) == 6 and cells[0] in KINDS:
            told[cells[0]] = cells[1:]
    for kind in KINDS:
        known = formats_of(kind)
        marks = ["yes" if name in known else "" for name in FORMATS if name not in ("csv", "parquet")]
        assert told[kind] == [", ".join(TABLES_OF[kind]), *marks], kind


def test_without_pyarrow_csv_is_named(made: Mapping[Kind, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """Where pyarrow is missing the command says how to install it, and that CSV has the same columns."""
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(CallerError, match="not installed") as refused:
        export(made["trial"], "parquet")
    assert "nameplate[parquet]" in str(refused.value.hint) and "--to csv" in str(refused.value.hint)


def test_a_segment_is_no_trial(made: Mapping[Kind, Path]) -> None:
    """A segment of a soak has no numbers of its own: its soak is named."""
    (segment,) = (made["soak"] / layout.TRIALS).iterdir()
    with pytest.raises(CallerError, match="segment of a soak"):
        export(segment, "csv")
