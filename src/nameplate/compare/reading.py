"""From paths to a side: a result on its own, or a folder of results that are repetitions of each other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from msgspec import structs

from nameplate.compare.foreign import cells_of_runs
from nameplate.compare.matrices import cells_of_matrix, tool_of
from nameplate.compare.rating import rated_of
from nameplate.compare.side import Cell, Kind, Side, Source, Terms
from nameplate.compare.soaks import cells_of_soak
from nameplate.compare.terms import contract_terms, flat, identity_terms, kind_of_load
from nameplate.compare.trials import COUNTED, cells_of, promises_of
from nameplate.contract.contract import Contract
from nameplate.contract.errors import CallerError, EvidenceError
from nameplate.contract.identity import Identity
from nameplate.evidence import layout
from nameplate.evidence.header import TrialHeader
from nameplate.evidence.reader import TrialReader
from nameplate.evidence.rows import RequestRow
from nameplate.exchange.formats import MATRIX
from nameplate.exchange.inference_bench.imported import imported
from nameplate.exchange.inference_bench.reading import read_document
from nameplate.exchange.kind import run_kind
from nameplate.exchange.opening import digest, open_result, read_whole
from nameplate.exchange.peers.importing import import_runs
from nameplate.exchange.peers.run import Imported
from nameplate.exchange.peers.run import decode as decode_import
from nameplate.measure.curve_result import decode_curve
from nameplate.measure.result import TrialResult
from nameplate.measure.result import decode as decode_result
from nameplate.measure.soak_record import decode_soak_record
from nameplate.measure.speed_result import SpeedResult, decode_speed
from nameplate.measure.study_record import decode_study

# More repetitions than anybody runs; a folder of more is another folder.
RESULTS_LIMIT = 200
_HINT = (
    "Give the directory of a trial, of a capacity, rate, curve, speed or soak study, or of an import; a result file of "
    "another tool; or a folder of several of them, which are repetitions of each other."
)
Trial = tuple[TrialHeader, TrialResult, Sequence[RequestRow]]


def read_side(name: str, paths: Sequence[Path]) -> Side:
    """Read a side from one or several paths; CallerError where a path holds no result."""
    try:
        found = [source for path in paths for source in _sources(_whole(path))]
    except RecursionError:
        raise EvidenceError(
            f"A file of {name} cannot be read: it is nested more deeply than any result."
        ) from None
    if len(found) > RESULTS_LIMIT:
        raise CallerError(f"{name} has {len(found):,} results; at most {RESULTS_LIMIT} are compared.")
    return Side(name, ", ".join(map(str, paths)), tuple(found))


def _whole(path: Path) -> Path:
    """Return the directory of a result where one of our own files in it was named."""
    ours = path.name in (
        layout.RESULT,
        layout.STUDY,
        layout.PLATE,
        layout.SOAK,
        layout.HEADER,
        layout.CONTRACT,
    )
    held = any((path.parent / name).is_file() for name in (layout.HEADER, layout.CONTRACT, layout.SOAK))
    return path.parent if ours and held and path.is_file() else path


def _sources(path: Path) -> list[Source]:
    if not path.exists():
        raise CallerError(f"{path} does not exist.", hint=_HINT)
    read = _reader(path)
    if read is not None:
        return [read(path)]
    inside = sorted(path.iterdir()) if path.is_dir() else []
    known = [(one, read) for one in inside if one.is_dir() and (read := _reader(one)) is not None]
    if not known:
        known = [(one, _file) for one in inside if one.is_file() and one.suffix in (".json", ".jsonl")]
    if not known:
        raise CallerError(f"{path} holds no result that can be compared.", hint=_HINT)
    return [read(one) for one, read in known[: RESULTS_LIMIT + 1]]


def _reader(path: Path) -> Callable[[Path], Source] | None:
    """Return how a path is read by what it is; None for a folder of others."""
    if path.is_file():
        return _file
    match run_kind(path):
        case "trial":
            return _trial
        case "soak":
            return _soak
        case "import":
            return _import
        case "speed":
            return _speed
        case "curve":
            return _curve
        case "rated" | "trials":
            return _study
    return _study if (path / layout.CONTRACT).is_file() else None


def _file(path: Path) -> Source:
    opened = open_result(path)
    if opened.format is MATRIX:
        document = read_document(read_whole(path), path.name)
        return _matrix(path, imported(document, path.name, digest(path), ""))
    return _runs(path, import_runs(opened))


def _import(path: Path) -> Source:
    return _runs(path, decode_import(_bytes(path / layout.RESULT)))


def _runs(path: Path, document: Imported) -> Source:
    tools = dict.fromkeys(f"{run.tool} {run.version or ''}".strip() for run in document.runs)
    return Source(
        path=str(path),
        kind="import",
        tool=", ".join(tools),
        terms={},
        cells=cells_of_runs(document.runs),
        notes=document.notes,
    )


def _speed(path: Path) -> Source:
    return _matrix(path, decode_speed(_bytes(path / layout.RESULT)))


def _matrix(path: Path, result: SpeedResult) -> Source:
    asked = contract_terms(result.contract, rated=False) if result.contract is not None else {}
    return Source(
        path=str(path),
        kind="speed",
        tool=tool_of(result),
        terms={**asked, **identity_terms(result.identity)},
        cells=cells_of_matrix(result),
        notes=() if result.finished or result.origin is not None else ("the study did not come to its end",),
    )


def _soak(path: Path) -> Source:
    record = decode_soak_record(_bytes(path / layout.SOAK))
    parts = record.result.parts if record.result is not None else ()
    return _ours(
        path,
        "soak",
        record.contract,
        parts[0].identity if parts else Identity(),
        tool=record.tool_version,
        cells=cells_of_soak(record),
        notes=() if record.finished else ("the soak did not come to its end",),
    )


def _trial(path: Path) -> Source:
    header = TrialReader(path).header()
    if header.plan.soak is not None or header.plan.role not in COUNTED:
        raise CallerError(
            f"{path} is a trial of a {'soak' if header.plan.soak is not None else header.plan.role} alone.",
            why="What it measures is read off its study.",
            hint="Give the directory of the study.",
        )
    trials = list(_trials([path], frozenset()))
    if not trials:
        raise EvidenceError(f"{path} has no {layout.RESULT}.", hint="It was not sealed: run the trial again.")
    return _counted(path, "trial", trials)


def _study(path: Path) -> Source:
    record = decode_study(_bytes(path / layout.STUDY)) if (path / layout.STUDY).is_file() else None
    spoiled = frozenset(record.spoiled) if record is not None else frozenset()
    directories = sorted((path / layout.TRIALS).iterdir()) if (path / layout.TRIALS).is_dir() else []
    trials = list(_trials([one for one in directories if one.is_dir()], spoiled))
    if not trials:
        raise CallerError(f"{path} holds no sealed trial that counts.", hint=_HINT)
    if record is None:
        return _counted(path, "trial", trials)
    kind: Kind = "rate" if trials[0][0].contract.rate is not None else "capacity"
    notes = ("the study did not come to its end",) if record.exit_code is None else ()
    return structs.replace(_counted(path, kind, trials), rated=rated_of(record), notes=notes)


def _curve(path: Path) -> Source:
    result = decode_curve(_bytes(path / layout.RESULT))
    counting = [point.trial for row in result.rows for point in row.points]
    directories = [
        path / layout.TRIALS / key for key in counting if "/" not in key and key not in (".", "..")
    ]
    trials = list(_trials([one for one in directories if one.is_dir()], frozenset(result.spoiled)))
    if not trials:
        raise CallerError(f"{path} holds no level with a valid trial.", hint=_HINT)
    source = _counted(path, "curve", trials)
    if not result.finished:
        source = structs.replace(source, notes=(*source.notes, "the study did not come to its end"))
    return source


def _trials(directories: Sequence[Path], spoiled: frozenset[str]) -> Iterator[Trial]:
    """Yield the sealed trials that may count, in order; those of other roles are passed over unread."""
    for path in directories:
        if (
            path.name in spoiled
            or not (path / layout.RESULT).is_file()
            or not (path / layout.HEADER).is_file()
        ):
            continue
        reader = TrialReader(path)
        header = reader.header()
        if header.plan.role not in COUNTED:
            continue
        result = decode_result(_bytes(path / layout.RESULT))
        # Rows are needed for goodput alone, which an open loop's result holds itself.
        rows = reader.rows() if header.contract.slos and header.plan.arrivals is None else ()
        yield header, result, rows


def _counted(path: Path, kind: Kind, trials: Sequence[Trial]) -> Source:
    header, result, _ = trials[0]
    is_open = header.contract.rate is not None or header.plan.arrivals is not None
    return _ours(
        path,
        kind,
        header.contract,
        result.identity_before,
        tool=header.tool_version,
        cells=cells_of(trials),
        more={
            "clock": header.clock,
            "load.kind": kind_of_load(is_open=is_open),
            "client.workers": header.workers,
            **flat(header.client_host, "client.host"),
        },
        open_loop=is_open,
    )


def _ours(
    path: Path,
    kind: Kind,
    contract: Contract,
    identity: Identity,
    *,
    tool: str,
    cells: tuple[Cell, ...],
    notes: tuple[str, ...] = (),
    more: Terms | None = None,
    open_loop: bool = False,
) -> Source:
    version = tool.removeprefix("nameplate ")
    return Source(
        path=str(path),
        kind=kind,
        tool=f"nameplate {version}".strip(),
        terms={
            **contract_terms(contract, rated=kind in ("capacity", "rate")),
            **identity_terms(identity),
            "client.tool": version,
            **(more or {}),
        },
        cells=cells,
        promises=promises_of(contract.slos, open_loop=open_loop),
        notes=notes,
    )


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise EvidenceError(f"{path} cannot be read: {error.strerror}.") from error
