"""What numbers are: our methods, or what an imported file's fields mean there and what ours mean instead."""

from __future__ import annotations

import htpy as h

from nameplate.measure.speed_result import Origin, SpeedResult
from nameplate.pages.speed.answer import when
from nameplate.pages.subject import SpeedSubject
from nameplate.pages.table import Column, table
from nameplate.pages.words import facts
from nameplate.report.imported import OURS, most_telling
from nameplate.report.safe import safe
from nameplate.report.speed_words import methods_that_occur

_WORDS_LIMIT = 1000


def methods_section(result: SpeedResult) -> h.Node:
    """Return the methodology as a table; nothing where the result tells none."""
    methods = methods_that_occur(result)
    if not methods:
        return None
    columns = [Column(name, kind="text") for name in ("measure", "unit", "formula", "notes")]
    rows = [
        [
            safe(one.name, 80),
            safe(one.unit, 40),
            safe(one.formula, _WORDS_LIMIT),
            safe(one.notes, _WORDS_LIMIT),
        ]
        for one in methods
    ]
    return h.section(aria_label="Methodology")[
        h.h2["How each measure is computed"],
        table(columns, rows, "Methodology", sortable=False, copies=False),
    ]


def definitions_section(origin: Origin | None) -> h.Node:
    """Return what an imported result's fields mean there, beside ours; nothing for our own."""
    if origin is None or not origin.definitions:
        return None
    tool = safe(origin.tool, 80)
    columns = [Column(name, kind="text") for name in ("field", f"in {tool}", "in nameplate")]
    rows = [
        [safe(name, 80), safe(origin.definitions[name], _WORDS_LIMIT), OURS.get(name, "")]
        for name in most_telling(origin.definitions)
    ]
    return h.section(aria_label="Definitions of the origin")[
        h.h2[f"What {tool}'s fields mean"],
        h.p["The numbers above are by these definitions; ours stand beside them where they differ."],
        table(columns, rows, f"Definitions of {tool}", sortable=False, copies=False),
    ]


def origin_card(subject: SpeedSubject, origin: Origin) -> h.Element:
    """Return where an imported result comes from; there is no evidence of ours."""
    return h.div(".card")[
        h.h2["Origin"],
        facts(
            [
                ("Tool", f"{safe(origin.tool, 80)} {safe(origin.version, 40)}"),
                ("File", h.code[safe(origin.file, 300)]),
                ("SHA-256", h.span(".digest")[safe(origin.sha256, 80)]),
                ("Measured", when(subject)),
                ("Imported by", safe(subject.result.tool, 80)),
                ("Evidence", "none of ours: the numbers are the file's, each cell's status is ours"),
                ("Directory", h.code[safe(subject.directory, 500)]),
                ("Import again", h.code[safe(f"nameplate import {origin.file}", 400)]),
            ]
        ),
    ]
