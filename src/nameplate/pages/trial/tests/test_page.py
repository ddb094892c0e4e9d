"""A trial's page: its answer, its numbers as in its result, and whatever state its evidence is in."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest

from nameplate.contract.arrivals import ArrivalPlan
from nameplate.evidence import layout
from nameplate.pages.gather import gather
from nameplate.pages.report import report_page
from nameplate.pages.subject import TrialSubject
from nameplate.sim.app import App
from nameplate.sim.faults import FaultPlan, parse_fault
from nameplate.sim.presets import DEMO
from nameplate.verify.tests.making import edit_lines, make_trial

HOSTILE = "</script><script>alert(1)</script>\u2028\u202e\"'<img src=x onerror=alert(1)>"


def page_of(directory: Path) -> str:
    return report_page([gather(directory)])


def told(page: str, document: Any) -> int:
    """Hold every value with a path against its document; return how many there were."""
    found = re.findall(r'data-value="([^"]*)" data-path="([^"]*)"', page)
    for said, path in found:
        at = document
        for step in path.split("."):
            at = at[int(step)] if isinstance(at, list) else at[step]
        value = msgspec.json.decode(said.replace("&#34;", '"').replace("&quot;", '"'))
        assert value == at, path
    return len(found)


@pytest.mark.parametrize("name", ["closed", "failing"])
def test_every_value_with_a_path_is_that_of_the_result(name: str, request: pytest.FixtureRequest) -> None:
    """Whatever on the page names its place in `result.json` has just the value that stands there."""
    trial: TrialSubject = request.getfixturevalue(name)
    document = msgspec.json.decode((trial.directory / layout.RESULT).read_bytes())
    assert told(page_of(trial.directory), document) > 100


def test_the_answer_says_load_promise_value_and_status(closed: TrialSubject) -> None:
    """The first heading is the verdict in a sentence."""
    heading = re.search(r"<h1>(.*?)</h1>", page_of(closed.directory), re.S)
    assert heading is not None
    assert heading[1].startswith("Pass: 24 requests of 256/16 at concurrency 4; ttft p95 &lt; 500 ms holds: ")
    assert heading[1].endswith("(n 24).")


def test_failures_are_named_with_their_message(failing: TrialSubject) -> None:
    """What failed stands by outcome, HTTP status and message, and the sum adds up."""
    page = page_of(failing.directory)
    assert "Requests that did not end well, by name" in page
    assert "503" in page and "never came to an output" in page


def test_an_unfinished_trial_has_a_page_without_a_verdict(closed: TrialSubject, tmp_path: Path) -> None:
    """Without manifest and result it says so, counts what is on disk, and names no status but that."""
    directory = tmp_path / "t"
    shutil.copytree(closed.directory, directory)
    (directory / layout.RESULT).unlink()
    (directory / layout.MANIFEST).unlink()
    rows = (directory / layout.REQUESTS).read_bytes().splitlines(keepends=True)
    (directory / layout.REQUESTS).write_bytes(b"".join(rows[:9]) + rows[9][:40])
    page = page_of(directory)
    assert "No verdict: the trial was not sealed" in page
    assert "ends inside line 10" in page and "data-path" not in page


def test_a_trial_without_requests_has_a_page(closed: TrialSubject, tmp_path: Path) -> None:
    """A trial that was killed before its first request shows its plan, and no chart."""
    directory = tmp_path / "t"
    directory.mkdir()
    for name in (layout.HEADER, layout.JOURNAL):
        shutil.copy(closed.directory / name, directory / name)
    page = page_of(directory)
    assert "0 of 24 planned requests" in page and "<figure>" not in page


def test_damaged_rows_are_said_and_the_rest_is_shown(closed: TrialSubject, tmp_path: Path) -> None:
    """Rows that cannot be read cost the page its charts, not its verdict."""
    directory = tmp_path / "t"
    shutil.copytree(closed.directory, directory)
    (directory / layout.REQUESTS).write_bytes(b"\xff{\n")
    page = page_of(directory)
    assert "Not all of this trial&#39;s evidence could be read." in page
    assert "Pass: 24 requests" in page


def test_hostile_text_stays_text(closed: TrialSubject, tmp_path: Path) -> None:
    """Messages and outcomes that try to leave the page are shown, and run nowhere."""
    directory = tmp_path / "t"
    shutil.copytree(closed.directory, directory)

    def spoil(rows: list[Any]) -> None:
        for row in rows:
            row.update(outcome=HOSTILE, error=HOSTILE * 50, phase="steady")

    edit_lines(directory, layout.REQUESTS, spoil)
    page = page_of(directory)
    assert "<script>alert" not in page and "<img src=x" not in page
    assert "\u202e" not in page and "\u2028" not in page
    scripts = re.findall(r"<script[^>]*>", page)
    assert all(tag == "<script>" or "application/json" in tag for tag in scripts)
    assert page.count("</script>") == len(scripts)


def test_an_open_loop_is_told_from_schedule(tmp_path: Path) -> None:
    """In an open loop latencies are drawn and judged from schedule, without phases."""
    arrivals = ArrivalPlan(kind="poisson", rate=20.0)
    make_trial(tmp_path / "t", app=App(DEMO), requests=30, concurrency=100, arrivals=arrivals)
    page = page_of(tmp_path / "t")
    assert "ECDF of TTFT from schedule" in page and "Judged from schedule." in page
    assert "in the order in which they were due" in page


def test_an_invalid_trial_gives_no_verdict_of_its_promise(tmp_path: Path) -> None:
    """It says why it is invalid; the promise neither holds nor fails, and its values are marked."""
    faults = FaultPlan((parse_fault("early_stop:4@every 2"),))
    make_trial(tmp_path / "t", app=App(DEMO), requests=8, slo="ttft p95 < 500ms", faults=faults)
    page = page_of(tmp_path / "t")
    (heading,) = re.findall(r"<h1>(.*?)</h1>", page, re.S)
    assert heading.startswith("Invalid: 8 requests") and "say nothing of ttft p95 &lt; 500 ms" in heading
    assert "answers have another length than was asked for" in heading
    assert "holds" not in heading and " ms:" not in heading and "(n 8)" not in heading
    assert "none: the trial is invalid" in page and "verdict.slos" not in page
    assert "Latency of all measured requests of an invalid trial" in page
