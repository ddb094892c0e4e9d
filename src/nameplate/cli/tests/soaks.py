"""Soaks for tests: made in simulated time, cut as a kill cuts them, and changed with everything sealed again."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from msgspec import structs

from nameplate.cli.main import main
from nameplate.evidence import layout, soak_events
from nameplate.measure.soak_record import SoakRecord, decode_soak_record, encode_soak_record

# One request a second, some 60 ms each: three simulated minutes in a second of ours.
QUIET = ("--shape", "64/8", "--rate", "1", "--arrivals", "constant", "--duration", "3m")
_CUT = (layout.REQUESTS, layout.READS, layout.EVENTS, layout.SERVER, layout.CLIENT, layout.PROMPTS)


def record_of(directory: Path | str) -> SoakRecord:
    """Read a soak's record."""
    return decode_soak_record((Path(directory) / layout.SOAK).read_bytes())


def kill(directory: Path | str, share: float, key: str = "soak.s1") -> None:
    """Leave of a finished soak what a kill after this share of its files would have left: torn, unsealed, unrecorded.

    The cuts do not fall on ends of lines or frames, and the files do not end at one moment.
    """
    soak = Path(directory)
    segment = soak / layout.TRIALS / key
    record = record_of(soak)
    running = structs.replace(record.segments[-1], state="running", manifest_sha256=None)
    before = structs.replace(record, segments=(*record.segments[:-1], running), exit_code=None)
    (soak / layout.SOAK).write_bytes(encode_soak_record(before))
    (soak / layout.MANIFEST).unlink()
    for name in (layout.MANIFEST, layout.RESULT):
        (segment / name).unlink()
    for at, name in enumerate(_CUT):
        path = segment / name
        data = path.read_bytes()
        path.write_bytes(data[: max(1, int(len(data) * share) - 3 - 7 * at)])
    kept = []
    for line in (segment / layout.JOURNAL).read_bytes().splitlines(keepends=True):
        if soak_events.SUBMIT_ENDED.encode() in line:
            break
        kept.append(line)
    (segment / layout.JOURNAL).write_bytes(b"".join(kept))


def soak(directory: Path, *arguments: str) -> int:
    """Run a quiet soak on the built-in engine in simulated time into a directory; return its exit code."""
    words = ["nameplate", "soak", "sim:demo", *QUIET, "--quiet-terminal", "--out", str(directory), *arguments]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", words)
        with pytest.raises(SystemExit) as stop:
            main()
    return stop.value.code if isinstance(stop.value.code, int) else 0


def go_on(directory: Path) -> int:
    """Resume a soak on the built-in engine; return its exit code."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            sys, "argv", ["nameplate", "soak", "sim:demo", "--resume", str(directory), "--quiet-terminal"]
        )
        with pytest.raises(SystemExit) as stop:
            main()
    return stop.value.code if isinstance(stop.value.code, int) else 0
