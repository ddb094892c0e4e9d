"""The speed matrix, live, against servers whose own logs know what they sent when: counts must be equal.

Tolerances are about counting (a chunk a stream at each edge of a window) and about the order of events, never about how
fast anything was. The studies mostly wait, so they wait together.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from msgspec import Struct

from bench.speed import Known, measure
from bench.truth import CellCheck, metronome_log, own_log
from nameplate.verify import verify

pytestmark = pytest.mark.live

WINDOW_NS = 2 * 10**9
STABLE_NS = 10**9
OPTIONS = ("--window", "2s", "--stable", "1s", "--ordinary-scheduling")
METRONOME = ("--ttft-ms", "40", "--itl-ms", "25", "--log-events", "--chunk-tokens", "3")
STALL = ("--stall-every", "4", "--stall-after", "30", "--stall-s", "60")
MOST_TOKENS = 4


class Case(Struct, frozen=True):
    """Say which server a study measures, and how."""

    known: Known
    streams: str
    output: str


# 120 tokens take about 1.2 s, so that every stream starts again within the window.
CASES = (
    Case(Known("metronome", "three tokens a chunk", METRONOME, metronome_log), "16", "2000"),
    Case(Known("ghost", "at first one more runs than ours", ("--ghost-s", "1.7"), own_log), "4,16", "120"),
    Case(Known("blind", "usage at the end alone", ("--usage", "end"), own_log), "16", "120"),
    Case(Known("stalling", "every fourth stream falls silent for good", STALL, own_log), "4", "2000"),
)


class Studied(Struct, frozen=True):
    directory: Path
    checks: list[CellCheck]


@pytest.fixture(scope="module")
def studies(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Studied]:
    def study(case: Case) -> Studied:
        directory = tmp_path_factory.mktemp(case.known.name) / "study"
        options = (*OPTIONS, "--output", case.output)
        return Studied(directory, measure(case.known, case.streams, directory, *options))

    with ThreadPoolExecutor(len(CASES)) as pool:
        return dict(zip((case.known.name for case in CASES), pool.map(study, CASES), strict=True))


def held_to_the_log(check: CellCheck, status: str = "valid") -> None:
    """Hold what every cell must have in common with its server's log."""
    # On a busy machine our own client may be late, which is said; the counts hold all the same.
    assert check.status in (status, "client_limited"), check.reason
    assert check.window_ns == WINDOW_NS
    # At each edge a chunk of every stream may be on its way.
    edges = 2 * MOST_TOKENS * check.streams
    assert check.estimated or abs(check.tokens.off) <= edges
    assert check.counted is None or check.estimated or abs(check.counted.off) <= edges
    assert check.ready_after_ns >= STABLE_NS
    # A restart at an edge is sent on one side of it and received on the other.
    assert abs(check.restarts.off) <= check.streams
    assert check.tokens_per_chunk is None or check.tokens_per_chunk.error == pytest.approx(0, abs=0.05)


def test_the_metronome_is_counted_token_by_token(studies: dict[str, Studied]) -> None:
    """The window holds the tokens that the metronome's log has in it, three a chunk."""
    (check,) = studies["metronome"].checks
    held_to_the_log(check)
    assert not check.estimated
    assert check.restarts.log == 0


def test_streams_that_start_again_are_counted_on(studies: dict[str, Studied]) -> None:
    """Streams that end and start again within the window lose no token and are counted as often as the log has them."""
    small, large = studies["ghost"].checks
    for check in (small, large):
        held_to_the_log(check)
        assert not check.estimated
        assert check.restarts.ours > 0


def test_readiness_waits_for_somebody_elses_request(studies: dict[str, Studied]) -> None:
    """The stable time begins when the server, by its log, runs exactly ours: not at the last sample that had more."""
    assert all(check.ready_after_ns >= STABLE_NS for check in studies["ghost"].checks)


def test_without_counts_tokens_are_estimated_and_that_is_said(studies: dict[str, Studied]) -> None:
    """A server that counts at the end alone gives an estimate, near the log's number where answers ended."""
    (check,) = studies["blind"].checks
    held_to_the_log(check)
    assert check.estimated
    assert check.tokens.error == pytest.approx(0, abs=0.15)
    assert any("estimated" in note for note in check.notes)


def test_a_stream_that_falls_silent_does_not_vanish(studies: dict[str, Studied]) -> None:
    """A stream that sends nothing for the whole window stands in ITL at its worst, and one of four voids the cell."""
    (check,) = studies["stalling"].checks
    held_to_the_log(check, "server_error")
    assert check.itl_censored == 1
    assert any("sent nothing" in note for note in check.notes)


def test_the_evidence_of_every_study_verifies(studies: dict[str, Studied]) -> None:
    """What was measured live follows from its files, readiness and windows included."""
    for name, studied in studies.items():
        failed = [check for check in verify(studied.directory).checks if check.status == "fail"]
        assert not failed, (name, failed)
