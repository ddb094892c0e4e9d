"""A page as one file: everything inside, nothing loaded, and no script but ours can run.

The Content-Security-Policy names our two scripts by their digests and forbids everything else, so that no text of a
server, however it came through, could load or run anything. Charts are drawn by Vega's interpreter, without `eval`.
"""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib.resources import files

import htpy as h
from markupsafe import Markup

from nameplate import __version__
from nameplate.report.safe import safe

ASSETS = files("nameplate.pages") / "assets"


_FOOT: h.Node = [
    f"Made by nameplate {__version__}. Every number on this page stands in the files it names, and ",
    h.code["nameplate verify"],
    " computes it again from raw evidence. This page loads nothing and sends nothing.",
    h.noscript[h.p["Charts and sorting need JavaScript; every chart's numbers are in a table beside it."]],
]


@cache
def asset(name: str) -> str:
    """Return the text of one of our own assets."""
    return (ASSETS / name).read_text(encoding="utf-8")


def document(
    title: str,
    body: h.Node,
    *,
    made: str = "",
    charts: bool = True,
    styles: tuple[str, ...] = (),
    scripts: tuple[str, ...] = (),
    loads: bool = False,
    foot: h.Node = None,
) -> str:
    """Return a whole page; `made` says from what and when, `styles` and `scripts` are further assets of ours.

    Without `charts` the page does not carry the library that draws them; with `loads` our scripts, and they alone, may
    load further ones that lie beside the page. `foot` stands in the place of the usual last words.
    """
    wanted = (*(("charts.js",) if charts else ()), "page.js", *scripts)
    sources = [asset(name) for name in wanted]
    page = h.html(lang="en")[
        h.head[
            h.meta(charset="utf-8"),
            h.meta(http_equiv="Content-Security-Policy", content=_policy(sources, loads)),
            h.meta(name="viewport", content="width=device-width, initial-scale=1"),
            h.meta(name="color-scheme", content="light dark"),
            h.meta(name="generator", content=f"nameplate {__version__}"),
            h.title[safe(title, 120)],
            h.style[Markup("\n".join(asset(name) for name in ("page.css", *styles)))],
        ],
        h.body[
            h.a(".skip", href="#answer")["To the answer"],
            h.header[
                h.span(".mark")["nameplate"],
                h.span(".made")[made],
                h.button(".theme", type="button")["Light or dark"],
            ],
            h.main[body],
            h.footer[_FOOT if foot is None else foot],
            [h.script[Markup(source)] for source in sources],
        ],
    ]
    # Plain text: what is marked as safe would escape what is joined to it later.
    return f"{page}\n"


def _policy(scripts: list[str], loads: bool) -> str:
    digests = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in scripts]
    allowed = " ".join(f"'sha256-{digest}'" for digest in digests)
    if loads:
        # What a script of ours adds is trusted as it is; a file beside the page has no origin that could be named.
        allowed += " 'strict-dynamic'"
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
