"""A table as Parquet, by pyarrow (the extra `parquet`): row groups of bounded size, enumerations as dictionaries.

The file's metadata hold the table's schema with its version, the tool, and what evidence it was made from; a column's
type never depends on the values that a table happens to hold.
"""

from __future__ import annotations

from itertools import islice
from typing import IO, Any

from nameplate import __version__
from nameplate.contract.errors import CallerError
from nameplate.exchange.tables.column import Kind, Table

# Some 60 columns of 16,384 Python values are about 60 MB.
GROUP_ROWS = 16_384


def load_pyarrow() -> tuple[Any, Any]:
    """Return pyarrow and its Parquet module; CallerError, with the command that helps, where it is not installed."""
    try:
        import pyarrow as arrow
        from pyarrow import parquet
    except ImportError:
        raise CallerError(
            "Parquet needs pyarrow, which is not installed.",
            hint="Install it: pip install 'nameplate[parquet]'. Or write CSV, with the same columns: --to csv.",
        ) from None
    return arrow, parquet


def write_parquet(table: Table, out: IO[bytes]) -> None:
    """Write a table as a file, row group by row group."""
    arrow, parquet = load_pyarrow()
    types = [_type(kind, arrow) for kind in table.kinds]
    metadata = {"nameplate.schema": table.schema, "nameplate.tool": f"nameplate {__version__}"}
    metadata |= {f"nameplate.{name}": value for name, value in table.about.items()}
    schema = arrow.schema(list(zip(table.names, types, strict=True)), metadata=metadata)
    with parquet.ParquetWriter(_Sink(out), schema, compression="zstd") as writer:
        while rows := list(islice(table.rows, GROUP_ROWS)):
            columns = [
                arrow.array(values, type=kind)
                for values, kind in zip(zip(*rows, strict=True), types, strict=True)
            ]
            writer.write_table(arrow.Table.from_arrays(columns, schema=schema), row_group_size=GROUP_ROWS)


def _type(kind: Kind, arrow: Any) -> Any:
    return {
        "int": arrow.int64(),
        "float": arrow.float64(),
        "text": arrow.string(),
        "name": arrow.dictionary(arrow.int32(), arrow.string()),
        "flag": arrow.bool_(),
        "texts": arrow.list_(arrow.string()),
    }[kind]


class _Sink:
    """Count what was written, since a pipe does not tell."""

    def __init__(self, out: IO[bytes]) -> None:
        self._out = out
        self._at = 0
        self.closed = False

    def write(self, data: Any) -> int:
        written = self._out.write(data)
        self._at += len(data)
        return written

    def tell(self) -> int:
        return self._at

    def flush(self) -> None:
        self._out.flush()

    def close(self) -> None:
        self.closed = True

    def writable(self) -> bool:
        return True

    def readable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return False
