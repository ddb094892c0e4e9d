"""Conducting a soak: run its segments, keep the record current, seal."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from msgspec import Struct, structs

from nameplate.contract.errors import NameplateError
from nameplate.contract.plan import TrialPlan
from nameplate.measure.soak.segment import SegmentResult
from nameplate.measure.soak_record import SoakRecord
from nameplate.studies.conduct import Prepared
from nameplate.studies.runner import run
from nameplate.studies.soak import soak
from nameplate.studies.soak_archive import Before, SoakArchive
from nameplate.studies.soak_book import SoakBook
from nameplate.studies.soak_keeping import KeepingWatch
from nameplate.trial.ground import VirtualGround
from nameplate.trial.segment import carry_segment


class Soaked(Struct, frozen=True):
    """Hold a soak that does not run, by whatever ended it: its record and its directory."""

    record: SoakRecord
    directory: Path


def conduct_soak(
    prepared: Prepared,
    archive: SoakArchive,
    on_window: Callable[[SoakRecord], None],
    before: Before | None = None,
) -> Soaked:
    """Run what is left of a soak and return its record; record and manifest are on disk before this returns.

    `on_window` sees the record as it stands after each window.

    Interruptions and faults end the soak with an exit code of their own where anything was recorded; what came to
    nothing is raised.
    """
    contract, watch = prepared.contract, prepared.setup.watch
    book = SoakBook(archive, contract, prepared.setup.command)
    archive.unseal()
    book.opened()
    ground = prepared.site.ground
    if before is not None and before.segments and isinstance(ground, VirtualGround):
        ground.go_on_after(max(segment.observed_wall_ns for segment in before.segments.values()))

    def execute(plan: TrialPlan) -> SegmentResult:
        directory = archive.trial(plan.key)
        setup = structs.replace(prepared.setup, watch=KeepingWatch(watch, book, directory, on_window))
        return carry_segment(setup, plan, prepared.corpora[plan.shape], directory)

    try:
        run(
            soak(contract, before.reads_bytes if before else ()),
            execute,
            sealed=before.segments if before else None,
            spoiled=before.spoiled if before else (),
            on_trial=lambda _plan, result, _replayed: book.ended(result),
        )
    except NameplateError as error:
        book.close(error.exit_code)
        prepared.journal.close()
        archive.seal()
        raise
    record = book.close()
    prepared.journal.close()
    archive.seal()
    return Soaked(record, archive.directory)


def finished_soak(archive: SoakArchive, before: Before) -> Soaked:
    """Return a soak of which nothing is left to run, with the record that its segments give."""
    contract = archive.contract()
    book = SoakBook(archive, contract, ())
    archive.unseal()
    for segment in before.segments.values():
        book.ended(segment)
    record = book.close()
    archive.seal()
    return Soaked(record, archive.directory)
