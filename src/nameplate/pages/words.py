"""Small pieces of every page: statuses as badges, facts as lists, warnings, commands."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import htpy as h

from nameplate.report.safe import safe
from nameplate.verdict.warnings import Warned

_TONES = {
    "good": {"pass", "confirmed", "valid", "holds", "steady", "ok", "better", "equal", "kept"},
    "bad": {
        "fail",
        "failed",
        "refused",
        "collapsed",
        "lost",
        "worse",
        "contradicted",
        "broken",
        "server_error",
    },
    "warn": {
        "noisy",
        "inconclusive",
        "invalid",
        "budget",
        "open_above",
        "open_below",
        "drifting",
        "stepped",
        "looped",
        "not_ready",
        "underfilled",
        "client_limited",
        "extra_traffic",
        "interrupted",
        "unverified",
        "unfinished",
    },
}


def tone(status: str) -> str:
    """Return the tone of a status: `good`, `bad`, `warn`, or `none` where it says neither."""
    return next((name for name, known in _TONES.items() if status.replace(" ", "_") in known), "none")


def badge(status: str, tone_of: str | None = None) -> h.Element:
    """Return a status as a badge: told by its word, not by its colour alone."""
    return h.span(class_=f"badge tone-{tone(tone_of or status)}")[safe(status.replace("_", " "), 60)]


def status(said: str) -> h.Element:
    """Return a status within a table."""
    return h.span(class_=f"status tone-{tone(said)}")[safe(said.replace("_", " "), 60)]


def facts(entries: Iterable[tuple[h.Node, h.Node] | None]) -> h.Element:
    """Return a list of named facts; None is left out."""
    return h.dl(".facts")[[(h.dt[entry[0]], h.dd[entry[1]]) for entry in entries if entry is not None]]


def warnings(told: Sequence[Warned], title: str, heading: h.Element = h.h2) -> h.Node:
    """Return warnings with their reason and what to try; nothing where there is none."""
    if not told:
        return None
    return h.section(aria_label=title)[
        heading[title],
        h.ul(".plain")[
            [
                h.li[h.strong[safe(one.what, 500)], " ", safe(f"{one.why} {one.hint}".strip(), 2000)]
                for one in told
            ]
        ],
    ]


def command(said: str) -> h.Element:
    """Return a command line to copy by hand."""
    return h.pre[h.code[safe(said, 4000, lines=True)]]


def paragraphs(lines: Iterable[str]) -> list[h.Element]:
    """Return lines of words as paragraphs, made harmless."""
    return [h.p[safe(line, 4000)] for line in lines if line]
