"""One Chromium for all tests of pages, one set of evidence, and one page a case."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

from integration import chromium
from integration.browser import evidence as made
from integration.browser.making import Report, reports

ARGUMENTS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Start Chromium with a fresh profile."""
    path = chromium.find()
    if path is None:
        pytest.fail(chromium.HELP)
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=path, headless=True, args=list(ARGUMENTS))
        yield found
        found.close()


@pytest.fixture(scope="session")
def evidence() -> Path:
    """Return the directory of all evidence; what is missing is made, which takes minutes the first time."""
    return made.evidence(lambda line: os.write(2, f"{line}\n".encode()))


@pytest.fixture(scope="session")
def report(evidence: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Report]:
    """Return what writes the page of a case, once."""
    return reports(evidence, tmp_path_factory.mktemp("pages"))
