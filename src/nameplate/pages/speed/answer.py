"""The answer of a speed study: what one user reads and the most that the server gave, and of how many cells."""

from __future__ import annotations

from collections import Counter

import htpy as h

from nameplate.measure.speed_result import SpeedResult
from nameplate.pages.speed.hardware import hardware_line
from nameplate.pages.subject import SpeedSubject
from nameplate.pages.words import badge
from nameplate.report import numbers
from nameplate.report.imported import whose
from nameplate.report.safe import safe
from nameplate.report.speed_words import answers, coverage
from nameplate.verdict.cell import CellStatus


def answer_block(subject: SpeedSubject) -> h.Element:
    """Return the answer in a sentence of valid cells only, and what carries it."""
    result = subject.result
    valid = Counter(row.status for row in result.rows)[CellStatus.valid]
    imported = whose(result)
    first, *more = answers(result)
    return h.section(class_=f"answer tone-{'good' if valid else 'warn'}")[
        h.h1[first],
        [h.p(".lead")[line] for line in more],
        h.p[h.strong[_subject_line(result)]],
        h.p[
            badge(
                f"{valid:,} of {numbers.count(len(result.rows), 'cell')} valid",
                "valid" if valid else "invalid",
            ),
            " ",
            (badge("imported", "none"), " ") if result.origin is not None else None,
            (badge("simulated time", "none"), " ") if subject.simulated else None,
            None if result.finished else (badge("not finished", "unfinished"), " "),
            h.span(".soft")[f"{coverage(result).rstrip('.')} · {when(subject)}"],
        ],
        None if imported is None else h.p(".under")[imported.plain],
    ]


def _subject_line(result: SpeedResult) -> str:
    """Say which model, on what, by which engine."""
    identity = result.identity
    model = safe(result.model or identity.text("model") or "a model that it does not name", 120)
    engine = " ".join(safe(said, 60) for name in ("engine", "version") if (said := identity.text(name)))
    hardware = hardware_line(result)
    parts = [
        model if hardware is None else f"{model} on {hardware}",
        engine or "an engine that does not name itself",
        safe(identity.text("quantisation") or "", 60),
    ]
    return ", ".join(part for part in parts if part)


def when(subject: SpeedSubject) -> str:
    """Say when it was measured, by the client's clock or by what another tool wrote down."""
    began, origin = subject.began, subject.result.origin
    if began is not None:
        return f"{began:%Y-%m-%d}"
    stamp = None if origin is None else origin.metadata.get("timestamp")
    if isinstance(stamp, str):
        return f"{safe(stamp[:16].replace('T', ' '), 40)} by the clock of its tool"
    return "date not known"
