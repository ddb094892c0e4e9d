"""The header of a trial with the requests of its trace, read from its directory: a plan that can be followed again."""

from __future__ import annotations

import hashlib
from pathlib import Path

from msgspec import structs

from nameplate.contract.errors import CallerError, EvidenceError
from nameplate.contract.trace import TracePlan, TraceRows
from nameplate.evidence import layout
from nameplate.evidence.header import TrialHeader
from nameplate.evidence.reader import TrialReader
from nameplate.prompts.trace import RecordedTrace
from nameplate.prompts.trace_options import TraceOptions

_PIECE_BYTES = 1 << 20


def read_header(reader: TrialReader) -> TrialHeader:
    """Read a trial's header; of a replayed trace with its requests, which have the digest that the plan names.

    EvidenceError where either cannot be read, or where they do not belong together.
    """
    header = reader.header()
    arrivals = header.plan.arrivals
    if arrivals is None or arrivals.trace is None:
        return header
    rows = read_rows(reader.path(layout.TRACE), arrivals.trace)
    return structs.replace(header, plan=header.plan.with_rows(rows))


def read_rows(path: Path, trace: TracePlan) -> TraceRows:
    """Read the requests of a trace as they are repeated; EvidenceError where they are not those of the plan."""
    try:
        digest = hashlib.sha256()
        with path.open("rb") as file:
            while piece := file.read(_PIECE_BYTES):
                digest.update(piece)
    except OSError as error:
        raise EvidenceError(
            f"{path.name}, the requests of the trace, cannot be read: {error.strerror}."
        ) from None
    if digest.hexdigest() != trace.rows_sha256:
        raise EvidenceError(
            f"{path.name} is not the file that the plan names.",
            why="The times at which requests were due cannot be told without it.",
        )
    try:
        # Times stand there as they are due: none is shifted or left out.
        recorded = RecordedTrace.open(path, TraceOptions(format="jsonl", from_ns=0))
    except CallerError as error:
        raise EvidenceError(f"The requests of the trace cannot be read: {error.what}") from None
    counts = recorded.counts
    if not counts.kept == counts.read == trace.requests or counts.reordered:
        raise EvidenceError(
            f"{path.name} holds {len(recorded)} requests in order, and the plan has {trace.requests}."
        )
    return recorded.rows()
