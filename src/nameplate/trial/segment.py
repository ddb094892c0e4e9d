"""One segment of a soak, carried and sealed; and one that a kill left behind, sealed as it is."""

from __future__ import annotations

from pathlib import Path

import msgspec

from nameplate.contract.errors import EvidenceError, NameplateError
from nameplate.contract.plan import TrialPlan
from nameplate.evidence import layout, manifest
from nameplate.evidence.merge import merge_workers
from nameplate.evidence.reader import TrialReader
from nameplate.measure.soak.fold import measure_segment
from nameplate.measure.soak.segment import SegmentResult
from nameplate.measure.soak_record import has_begun
from nameplate.trial.corpus import Corpus
from nameplate.trial.life import TrialSetup, carry_trial

# Files that only the running process needs, or had not finished writing: they are no evidence.
_LEFTOVER = (".counter", "*.partial")


def carry_segment(setup: TrialSetup, plan: TrialPlan, corpus: Corpus, directory: Path) -> SegmentResult:
    """Carry one segment out, seal it in `directory` whatever ended it, and return its result.

    A fault that ends it stands in its journal; one that came before anything was submitted is raised.
    """
    try:
        carry_trial(setup, plan, corpus, directory)
    except NameplateError:
        if not has_begun(directory):
            raise
    return seal_segment(directory)


def seal_segment(directory: Path) -> SegmentResult:
    """Measure what is on disk, write the result, then the manifest; ClientError where the disk is full.

    Of a segment whose process was killed nothing is changed or dropped: what is torn stays, and the result says so.
    """
    header = TrialReader(directory).header()
    for pattern in _LEFTOVER:
        for path in directory.glob(pattern):
            path.unlink()
    merge_workers(directory, header.workers)
    if not header.keeping.prompts:
        (directory / layout.PROMPTS).unlink(missing_ok=True)
    result = measure_segment(directory)
    manifest.write_durably(directory / layout.RESULT, msgspec.json.encode(result) + b"\n")
    names = [path.name for path in directory.iterdir() if path.is_file() and path.name != layout.MANIFEST]
    manifest.seal(directory, names)
    return result


def read_segment(directory: Path) -> SegmentResult:
    """Read a sealed segment's result; EvidenceError where it is damaged."""
    path = directory / layout.RESULT
    try:
        return msgspec.json.decode(path.read_bytes(), type=SegmentResult)
    except (OSError, msgspec.MsgspecError) as error:
        raise EvidenceError(f"{path} cannot be read: {error}.") from error
