"""The index page of a site: a frame that our script fills, and a plain table of everything where there is no script."""

from __future__ import annotations

import htpy as h
from markupsafe import Markup

from nameplate import __version__
from nameplate.pages.catalogue.data import MEASURES, data_of, headline, note_of, said, tone_of
from nameplate.pages.catalogue.entry import Catalogue, Entry, Unreadable
from nameplate.pages.chart import axis, fixed, panel
from nameplate.pages.document import document
from nameplate.pages.embedded import embedded
from nameplate.pages.table import Cell, Column, table
from nameplate.pages.values import ABSENT
from nameplate.report import numbers
from nameplate.report.safe import safe

CHARTS = "charts.js"
STYLES = ("catalogue.css",)
SCRIPTS = ("catalogue-parts.js", "catalogue.js", "catalogue-compare.js")

# Where there is no script, what needs one is not shown.
_PLAIN = ".needs-script { display: none !important; }"
_COLUMNS = (
    ("name", "Run"),
    ("gpu", "GPU"),
    ("engine", "Engine"),
    ("model", "Model"),
    ("rated", "Rated"),
    ("status", "Status"),
    ("began", "Date"),
)
_BAR_HEIGHT_PX = 26


def index_page(catalogue: Catalogue) -> str:
    """Return the whole page; the same catalogue gives the same page."""
    count = len(catalogue.entries)
    return document(
        f"{catalogue.title} · nameplate",
        [
            h.section("#answer", aria_label="Catalogue")[
                h.h1[catalogue.title],
                h.p(".soft")[_summary(catalogue)],
            ],
            _nothing()
            if count == 0
            else [_finder(), _picked(), _comparison(), _data(catalogue), _plain(catalogue)],
            _unreadable(catalogue.unreadable),
        ],
        made=f"Catalogue of {numbers.count(count, 'run')}",
        charts=False,
        styles=STYLES,
        scripts=SCRIPTS,
        loads=True,
        foot=[
            f"Made by nameplate {__version__}. Numbers are what each run's own page shows and its evidence carries; ",
            h.code["nameplate verify"],
            " computes them again. This page loads only the library for its charts, which lies beside it.",
        ],
    )


def _summary(catalogue: Catalogue) -> str:
    entries = catalogue.entries
    if not entries:
        return "No runs."
    known = [
        numbers.count(different, noun)
        for name, noun in (("gpu", "GPU"), ("model", "model"), ("engine", "engine"))
        if (different := len({getattr(entry, name) for entry in entries} - {None}))
    ]
    dates = [entry.began[:10] for entry in entries if entry.began is not None]
    when = "" if not dates else f" · {numbers.between(min(dates), max(dates))}"
    return " · ".join((numbers.count(len(entries), "run"), *known)) + when


def _nothing() -> h.Element:
    return h.p[
        "No run was found. A run is a folder that a study, a soak, a trial or an import was written to."
    ]


def _finder() -> h.Element:
    return h.div("#finder.needs-script")[
        h.div(".controls", role="search")[
            h.label[
                "Search",
                h.input(
                    "#search",
                    type="search",
                    placeholder="model, GPU, engine, promise ...",
                    autocomplete="off",
                ),
            ],
            h.label["Sort by", h.select("#measure")],
            h.label("#choice-label", hidden=True)["of", h.select("#choice")],
        ],
        h.p("#choice-note.soft", hidden=True),
        h.div(".columns")[
            h.details("#filters")[h.summary["Filters"], h.div("#facets")],
            h.div(".list")[
                h.p(".told")[
                    h.span("#count", role="status", aria_live="polite"),
                    h.button("#clear", type="button", hidden=True)["Clear search and filters"],
                ],
                h.div(".table")[
                    h.div(".table-box", role="region", aria_label="Runs", tabindex="0")[
                        h.table("#runs.runs")[
                            h.caption["Runs"],
                            h.thead[h.tr[[_head(name, title) for name, title in _COLUMNS]]],
                            h.tbody,
                        ]
                    ],
                    h.div(".table-tools")[
                        h.button("#more", type="button", hidden=True),
                        h.button(".copy", type="button")["Copy as CSV"],
                        h.span(role="status"),
                    ],
                ],
            ],
        ],
    ]


def _head(name: str, title: str) -> h.Element:
    kind = {"class": "num"} if name == "rated" else {}
    return h.th({"scope": "col", "data-name": name, "aria-sort": "none", **kind})[
        h.span[h.button(type="button", data_sort=name)[title]]
    ]


def _picked() -> h.Element:
    return h.div("#picked.needs-script", role="region", aria_label="Selected runs", hidden=True)[
        h.ul("#picked-list"),
        h.button("#compare.primary", type="button")["Compare"],
        h.button("#unpick", type="button")["Clear selection"],
        h.span("#picked-note.soft", role="status"),
    ]


def _comparison() -> h.Element:
    return h.section("#comparison.needs-script", aria_labelledby="comparison-title", hidden=True)[
        h.button("#back", type="button")["Back to all runs"],
        h.h2("#comparison-title", tabindex="-1"),
        h.div("#comparison-body"),
    ]


def _data(catalogue: Catalogue) -> list[h.Element]:
    return [
        embedded(data_of(catalogue), id="catalogue-data"),
        embedded(_bars(), id="bar-template", data_charts=f"assets/{CHARTS}"),
    ]


def _bars() -> object:
    """Return the figure of one number of several runs, without its values: the script fills them in."""
    place = axis(
        "run",
        "",
        "nominal",
        sort=None,
        axis={"title": None, "labelLimit": 180, "domain": False, "ticks": False},
    )
    value = axis("value", "", scale={"zero": True}, axis={"title": None, "grid": True, "tickCount": 4})
    return panel(
        (),
        "",
        height=_BAR_HEIGHT_PX,
        encoding={"y": place, "x": value},
        layer=[
            {"mark": {"type": "bar", "height": {"band": 0.62}}, "encoding": {"color": fixed("s1")}},
            {
                "mark": {"type": "text", "align": "left", "dx": 5},
                "encoding": {"text": {"field": "said"}, "color": fixed("ink")},
            },
        ],
    ).spec


def _plain(catalogue: Catalogue) -> h.Element:
    columns = [
        Column(title, kind="text")
        for title in (
            "Run",
            "Kind",
            "GPU",
            "Engine",
            "Model",
            "Quantisation",
            "Rated",
            "Status",
            "Date (UTC)",
        )
    ]
    rows = [_plain_row(entry) for entry in catalogue.entries]
    return h.noscript[
        h.style[Markup(_PLAIN)],
        table(columns, rows, "All runs", sortable=False, copies=False),
    ]


def _plain_row(entry: Entry) -> list[Cell | str]:
    first = headline(entry)
    name: h.Node = entry.name if entry.page is None else h.a(href=entry.page)[entry.name]
    rated = (
        ""
        if first is None
        else " · ".join(
            words
            for words in (said(first), MEASURES[first.measure], first.of, first.promise, note_of(first))
            if words
        )
    )
    return [
        Cell(name, entry.name),
        entry.kind if entry.time != "simulated" else f"{entry.kind}, simulated",
        gpus(entry),
        " ".join(filter(None, (entry.engine, entry.engine_version))),
        entry.model or "",
        entry.quantisation or "",
        rated or ABSENT,
        Cell(
            h.span(class_=f"status tone-{tone_of(entry.status)}")[entry.status.replace("_", " ")],
            entry.status,
        ),
        "" if entry.began is None else entry.began[:16].replace("T", " "),
    ]


def gpus(entry: Entry) -> str:
    """Say GPUs with their count; the machine where it has none."""
    if entry.gpu is None:
        return entry.hardware or ""
    return entry.gpu if entry.gpus is None else f"{entry.gpus} x {entry.gpu}"


def _unreadable(damaged: tuple[Unreadable, ...]) -> h.Node:
    if not damaged:
        return None
    said_of = numbers.count(len(damaged), "folder")
    return h.section("#unreadable", aria_label="Left out")[
        h.h2[f"Left out: {said_of}"],
        h.p(".soft")[
            "They look like runs and could not be read, or could not be looked into. Nothing of them is shown above."
        ],
        h.dl(".facts")[[(h.dt[h.code[safe(one.path, 600)]], h.dd[safe(one.what, 1000)]) for one in damaged]],
    ]
