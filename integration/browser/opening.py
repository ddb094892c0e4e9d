"""Opening a page as a reader does, and failing at whatever it should not do: complain, load, or break its policy."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Literal

from playwright.sync_api import Browser, Locator, Page

Theme = Literal["light", "dark"]
DESK_PX, PHONE_PX = 1280, 375
_WATCH = """
window.violations = [];
document.addEventListener("securitypolicyviolation", (event) =>
  window.violations.push(`${event.violatedDirective} ${event.blockedURI} ${event.sample}`));
"""


@contextmanager
def open_page(
    browser: Browser,
    path: Path,
    *,
    width: int = DESK_PX,
    theme: Theme = "light",
    javascript: bool = True,
    still: bool = False,
    within: Path | None = None,
) -> Iterator[Page]:
    """Open a page offline, drawn to its end; AssertionError at the end if it complained or asked for anything.

    `still` is a reader who prefers reduced motion. A page of a site may ask for files `within` its folder.
    """
    address = path.resolve().as_uri()
    folder = None if within is None else f"{within.resolve().as_uri()}/"
    context = browser.new_context(
        viewport={"width": width, "height": 900},
        color_scheme=theme,
        java_script_enabled=javascript,
        reduced_motion="reduce" if still else "no-preference",
        permissions=["clipboard-read", "clipboard-write"],
        offline=True,
        has_touch=width == PHONE_PX,
        device_scale_factor=2 if width == PHONE_PX else 1,
    )
    faults: list[str] = []
    try:
        page = context.new_page()
        page.set_default_timeout(60_000)
        page.on("console", lambda said: _note(faults, said.type, said.text))
        page.on("pageerror", lambda error: faults.append(f"error: {error}"))
        page.on("request", lambda request: _asked(faults, request.url, address, folder))
        if javascript:
            page.add_init_script(_WATCH)
        page.goto(address)
        if javascript:
            wait_until(page, "document.documentElement.dataset.ready === 'yes'")
        yield page
        if javascript:
            faults += [f"policy: {text}" for text in page.evaluate("window.violations")]
    finally:
        context.close()
    assert not faults, "\n".join(faults[:20])


def _note(faults: list[str], kind: str, text: str) -> None:
    if kind in ("error", "warning"):
        faults.append(f"{kind}: {text}")


def _asked(faults: list[str], url: str, address: str, folder: str | None) -> None:
    inside = folder is not None and url.startswith(folder)
    # A data: address is a picture within the page.
    if url.partition("#")[0] != address and not url.startswith("data:") and not inside:
        faults.append(f"request: {url[:200]}")


def wait_until(page: Page, condition: str) -> None:
    """Wait until an expression holds on the page; AssertionError after a minute.

    Playwright's own way of waiting evaluates text within the page, which the page's policy forbids.
    """
    deadline = time.monotonic() + 60.0
    while not page.evaluate(condition):
        assert time.monotonic() < deadline, f"never came true: {condition}"
        page.wait_for_timeout(20)


@cache
def ask(name: str) -> str:
    """Return a function that is asked of the page, from `ask/`."""
    return (Path(__file__).parent / "ask" / f"{name}.js").read_text()


def unfold(page: Page, trials: int = 2) -> None:
    """Open what is folded away and wait until its charts are drawn; of trials, which are alike, so many."""
    page.evaluate(
        """(trials) => {
          const folded = [...document.querySelectorAll("details.trial")].slice(trials);
          for (const part of document.querySelectorAll("details")) {
            part.open = !folded.some((other) => other.contains(part));
          }
        }""",
        trials,
    )
    wait_until(
        page,
        "[...document.querySelectorAll('.panel')].every((panel) => panel.dataset.drawn || !panel.checkVisibility())",
    )


def screenshot(
    browser: Browser, path: Path, target: Path, width: int = DESK_PX, theme: Theme = "light"
) -> Path:
    """Write a picture of the whole page, as wide as this and in this theme."""
    with open_page(browser, path, width=width, theme=theme) as page:
        target.parent.mkdir(parents=True, exist_ok=True)
        page.screenshot(path=target, full_page=True)
    return target


def table_values(table: Locator) -> list[list[Any]]:
    """Return the raw values of a table's body, row by row; a cell without one is its text."""
    found: list[list[Any]] = table.evaluate(
        """(table) => [...table.tBodies[0].rows].map((row) => [...row.cells].map((cell) => {
            const held = cell.dataset.value ?? cell.querySelector("[data-value]")?.dataset.value;
            return held === undefined ? cell.textContent.trim() : JSON.parse(held);
        }))"""
    )
    return found
