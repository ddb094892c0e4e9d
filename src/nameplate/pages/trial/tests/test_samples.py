"""Samples of a page: the same members as in the trial's result."""

from __future__ import annotations

import pytest

from nameplate.measure.latency import PhaseLatencies
from nameplate.pages.subject import TrialSubject
from nameplate.pages.trial.rows import read_rows
from nameplate.pages.trial.samples import (
    E2E,
    E2E_FROM_SCHEDULE,
    ITL,
    LONGEST_GAP,
    TPOT,
    TTFT,
    TTFT_FROM_SCHEDULE,
    Measured,
    chunk_gaps,
    sample_of,
)
from nameplate.statistics.percentile import Distribution, summarise


def latencies(trial: TrialSubject) -> PhaseLatencies:
    assert trial.result is not None
    return trial.result.measurement.latencies


@pytest.mark.parametrize("name", ["closed", "failing"])
@pytest.mark.parametrize(
    "measured",
    [TTFT, TTFT_FROM_SCHEDULE, ITL, TPOT, E2E, E2E_FROM_SCHEDULE, LONGEST_GAP],
    ids=lambda one: one.name,
)
def test_a_sample_has_the_members_of_its_distribution(
    name: str, measured: Measured, request: pytest.FixtureRequest
) -> None:
    """Every percentile of a page's sample is the one in the result, with the same n and as many that never came."""
    trial = request.getfixturevalue(name)
    rows = read_rows(trial, events=False).measured
    for phase in ("whole", "opening", "steady"):
        held = sample_of([row for row in rows if phase in ("whole", row.phase)], measured)
        told: Distribution = getattr(getattr(latencies(trial), phase), measured.name)
        assert summarise(held.values, censored=held.never) == told


def test_chunk_gaps_are_those_of_the_result(closed: TrialSubject) -> None:
    """Gaps are pooled over all measured requests, and read from the events alone."""
    read = read_rows(closed, events=True)
    assert read.timelines is not None
    held = chunk_gaps(read.measured, read.timelines)
    assert summarise(held.values) == latencies(closed).whole.chunk_gaps
