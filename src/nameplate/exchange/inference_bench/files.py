"""The directories of import and export: what is read from them, and what an import leaves behind."""

from __future__ import annotations

import hashlib
import re
from datetime import UTC, datetime
from pathlib import Path

from nameplate import __version__
from nameplate.contract.errors import CallerError, EvidenceError
from nameplate.evidence import layout
from nameplate.evidence.reader import TrialReader
from nameplate.exchange.directories import kept_name, make_directory
from nameplate.exchange.inference_bench.exported import encode_export, exported, exported_again
from nameplate.exchange.inference_bench.foreign import TOOL
from nameplate.exchange.inference_bench.imported import imported, plan_of
from nameplate.exchange.inference_bench.reading import read_document
from nameplate.exchange.inference_bench.samples import Requests, requests_of
from nameplate.exchange.loose import FILE_LIMIT_BYTES
from nameplate.exchange.redact import has_secrets
from nameplate.exchange.streams import open_plain
from nameplate.measure.speed_result import SpeedResult, decode_speed, encode_speed

_KEY = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,120}")


def import_file(path: Path, directory: Path) -> tuple[SpeedResult, tuple[str, ...]]:
    """Read a result file into `directory`, which must be new or empty; return the result and what must be said."""
    data = _read(path)
    document = read_document(_plain(path), path.name)
    kept = kept_name(path)
    digest = hashlib.sha256(data).hexdigest()
    result = imported(document, kept, digest, f"nameplate {__version__}")
    make_directory(directory)
    (directory / kept).write_bytes(data)
    (directory / layout.RESULT).write_bytes(encode_speed(result))
    said: tuple[str, ...] = ()
    if has_secrets(dict(document.metadata)):
        said = (
            f"{kept} holds what looks like a key; it is kept as it was given: do not publish it as it is.",
        )
    return result, said


def export_directory(directory: Path) -> bytes:
    """Return a result directory of ours as a result file of llm-inference-bench."""
    result, written_at = read_result(directory)
    original = original_of(result, directory)
    if original is not None and result.origin is not None:
        return encode_export(exported_again(result, original, result.origin.file))
    requests = {
        plan_of(row): _requests(directory, row.trials[-1])
        for row in (*result.rows_of("decode"), *result.rows_of("burst"))
        if row.trials
    }
    return encode_export(exported(result, requests, written_at))


def read_result(directory: Path) -> tuple[SpeedResult, str]:
    """Read a speed result and when it was written; CallerError where there is none."""
    path = directory / layout.RESULT
    try:
        data = _read(path)
        written = datetime.fromtimestamp(path.stat().st_mtime, UTC)
    except FileNotFoundError:
        raise CallerError(
            f"{directory} has no {layout.RESULT}.",
            hint="Give the directory of a speed study, or of an imported file.",
        ) from None
    try:
        return decode_speed(data), written.replace(tzinfo=None).isoformat(timespec="seconds")
    except RecursionError:
        raise EvidenceError(f"{path} cannot be read: it is nested too deeply.") from None


def original_of(result: SpeedResult, directory: Path) -> bytes | None:
    """Return the file that a result was imported from, where it still stands beside it unchanged."""
    if result.origin is None or not result.origin.tool.startswith(TOOL):
        return None
    name = result.origin.file
    if not _KEY.fullmatch(name):
        return None
    try:
        data = _read(directory / name)
    except OSError:
        return None
    if hashlib.sha256(data).hexdigest() != result.origin.sha256:
        raise EvidenceError(
            f"{directory / name} is not the file that was imported: its SHA-256 is another.",
            hint=f"Import it anew, or take it away: {layout.RESULT} alone is exported then.",
        )
    return _plain(directory / name)


def _requests(directory: Path, key: str) -> Requests:
    """Read one trial's rows; a trial that is not there tells nothing."""
    path = directory / layout.TRIALS / key
    if not _KEY.fullmatch(key) or not (path / layout.REQUESTS).is_file():
        return Requests()
    return requests_of(TrialReader(path).rows())


def _plain(path: Path) -> bytes:
    """Return the content of a file that may be packed, or in another encoding."""
    with open_plain(path) as stream:
        data = stream.read(FILE_LIMIT_BYTES + 1)
    if len(data) > FILE_LIMIT_BYTES:
        raise CallerError(
            f"{path} holds more than {FILE_LIMIT_BYTES >> 20} MiB.",
            why="No result file does: memory is bounded.",
        )
    return data


def _read(path: Path) -> bytes:
    if not path.exists():
        raise FileNotFoundError(2, "No such file", str(path))
    if not path.is_file():
        raise CallerError(f"{path} is not a file.")
    with path.open("rb") as stream:
        data = stream.read(FILE_LIMIT_BYTES + 1)
    if len(data) > FILE_LIMIT_BYTES:
        raise CallerError(
            f"{path} is larger than {FILE_LIMIT_BYTES >> 20} MiB.",
            why="No result file is: memory is bounded.",
        )
    return data
