"""What a reader sees and hears of a page, asked of the browser: contrast, overflow, focus, charts, structure."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import Page

from integration.browser.opening import ask


def faint_text(page: Page) -> list[str]:
    """Return texts without the contrast that reading takes; AssertionError where there is no text at all."""
    found = page.evaluate(ask("faint"))
    assert found["count"] > 10
    return list(found["faint"])


def sticking_out(page: Page) -> list[str]:
    """Return what is wider than the page."""
    found = page.evaluate(ask("wide"))
    too_wide = [f"the page scrolls to {found['scroll']} of {found['width']}"]
    return (too_wide if found["scroll"] > found["width"] else []) + list(found["out"])


def charts(page: Page) -> list[dict[str, Any]]:
    """Return each panel: its words, size and number of marks."""
    return list(page.evaluate(ask("charts")))


def structure(page: Page) -> dict[str, Any]:
    """Return title, headings, landmarks, repeated identifiers, dead links and addresses outside the page."""
    return dict(page.evaluate(ask("structure")))


def tab_through(page: Page) -> tuple[int, list[dict[str, Any]]]:
    """Press Tab from the top to the end; return how many controls there are, and each stop in order."""
    count = int(page.evaluate(ask("controls")))
    stops: list[dict[str, Any]] = []
    for _ in range(count + 5):
        page.keyboard.press("Tab")
        stop = page.evaluate(ask("focus"))
        if stop is None:
            break
        stops.append(stop)
        if stop["control"] == count - 1:
            break
    return count, stops
