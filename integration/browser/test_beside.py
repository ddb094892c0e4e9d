"""The pages beside the report: a comparison of two runs, and a catalogue of many."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from integration.browser.evidence import ROOT
from integration.browser.looks import charts, faint_text, sticking_out, structure
from integration.browser.opening import PHONE_PX, Theme, open_page, unfold
from integration.browser.values import unmarked_numbers, wrongly_sorted

pytestmark = pytest.mark.browser


def _run(*words: str, codes: tuple[int, ...]) -> None:
    search = os.pathsep.join((str(ROOT / "src"), str(ROOT)))
    command = [sys.executable, "-m", "nameplate", *words]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": search})
    assert done.returncode in codes, done.stdout[-2000:] + done.stderr[-2000:]


PAIRS = (
    ("capacity/certified", "capacity/warm"),
    ("curve/concurrency", "curve/concurrency"),
    ("speed/phases", "speed/looped"),
    ("trial/closed", "hostile/trial"),
    ("import/vllm", "hostile/import"),
)


@pytest.mark.parametrize(("a", "b"), PAIRS)
def test_a_comparison_is_a_page(browser: Browser, evidence: Path, tmp_path: Path, a: str, b: str) -> None:
    """Whole, sortable and legible in both themes and on a phone; nothing that a server said runs."""
    path = tmp_path / "compare.html"
    _run("compare", str(evidence / a), str(evidence / b), "--vary", "*", "-o", str(path), codes=(0, 1, 3))
    themes: tuple[tuple[Theme, int], ...] = (("light", PHONE_PX), ("dark", 1280))
    for theme, width in themes:
        with open_page(browser, path, theme=theme, width=width) as page:
            unfold(page)
            found = structure(page)
            assert found["h1"] and not found["dead"] and not found["ids"] and not found["outside"]
            assert not [chart for chart in charts(page) if chart["shown"] and not chart["marks"]]
            assert not faint_text(page)
            assert not sticking_out(page)
            assert not unmarked_numbers(page)
            assert not wrongly_sorted(page)
            assert page.evaluate("typeof window.pwned") == "undefined"


def test_a_catalogue_is_a_site(browser: Browser, evidence: Path, tmp_path: Path) -> None:
    """All runs are listed, hostile ones as text; a run's own page opens from it; legible in both themes, on a phone."""
    site = tmp_path / "site"
    runs = ("capacity", "curve", "speed", "import", "hostile")
    _run("catalogue", *(str(evidence / name) for name in runs), "-o", str(site), codes=(0, 1, 3))
    themes: tuple[tuple[Theme, int], ...] = (("light", PHONE_PX), ("dark", 1280))
    for theme, width in themes:
        with open_page(browser, site / "index.html", theme=theme, width=width, within=site) as page:
            assert page.evaluate("document.documentElement.dataset.catalogue") == "ready"
            assert not faint_text(page)
            assert not sticking_out(page)
            assert page.evaluate("typeof window.pwned") == "undefined"
            assert "<script>window.pwned=1</script>" in page.locator("body").inner_text()
            assert page.locator("main tbody tr").count() > 20
    with open_page(browser, site / "index.html", within=site) as page:
        page.locator("main a[href*='runs/']:visible").first.click()
        page.wait_for_load_state()
        assert page.locator("h1").first.is_visible()
