"""Trials of the built-in engine in simulated time, as pages read them."""

from __future__ import annotations

from pathlib import Path

import pytest

from nameplate.pages.gather import gather
from nameplate.pages.subject import TrialSubject
from nameplate.sim.app import App
from nameplate.sim.faults import FaultPlan, parse_fault
from nameplate.sim.presets import DEMO
from nameplate.verify.tests.making import make_trial


def subject_of(directory: Path) -> TrialSubject:
    """Read a trial's directory."""
    found = gather(directory)
    assert isinstance(found, TrialSubject)
    return found


@pytest.fixture(scope="session")
def closed(tmp_path_factory: pytest.TempPathFactory) -> TrialSubject:
    """Return a closed loop of 24 requests at concurrency 4, all well."""
    directory = tmp_path_factory.mktemp("closed") / "t"
    make_trial(directory, shape="256/16", concurrency=4, requests=24, warmup=2, slo="ttft p95 < 500ms")
    return subject_of(directory)


@pytest.fixture(scope="session")
def failing(tmp_path_factory: pytest.TempPathFactory) -> TrialSubject:
    """Return a closed loop in which requests fail in several ways."""
    directory = tmp_path_factory.mktemp("failing") / "t"
    faults = FaultPlan(tuple(map(parse_fault, ("503@every 5", "cut:4@every 7", "html@every 11"))))
    make_trial(directory, app=App(DEMO), concurrency=3, requests=18, warmup=1, faults=faults)
    return subject_of(directory)
