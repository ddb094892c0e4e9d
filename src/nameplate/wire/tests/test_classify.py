"""The outcome table: one row for each combination that matters, and no combination without a name."""

import itertools

import pytest

from nameplate.wire.classify import Exchange, classify, is_failure
from nameplate.wire.outcome import Ending, Outcome


def test_every_combination_has_an_outcome_and_a_reason() -> None:
    """Whatever is seen has an outcome of the closed list; only ok has no reason."""
    choices = itertools.product(
        Ending, (None, 200, 204, 302, 429, 500), (True, False), ("", "sse", "json", "html"), (None, "bad"),
        (None, "boom", ""), (None, "stop", "abort"), (True, False), (True, False),
    )  # fmt: skip
    for ending, status, asked, kind, malformed, error, finish, done, output in choices:
        seen = Exchange(ending, status, asked, kind, malformed, False, error, finish, done, output)
        outcome, reason = classify(seen)
        assert (outcome is Outcome.ok) == (reason == ""), seen
        if outcome is Outcome.ok:
            assert (ending, error, malformed) == (Ending.complete, None, None)


@pytest.mark.parametrize("ending", list(Ending))
def test_a_reported_error_and_a_bad_status_weigh_more_than_the_ending(ending: Ending) -> None:
    """However the connection ended, the server's own report names the outcome."""
    assert classify(Exchange(ending, 503))[0] is Outcome.http_error
    assert (
        classify(Exchange(ending, 200, error="x", done=True, finish_reason="stop"))[0] is Outcome.stream_error
    )


def test_deadlines_are_told_apart() -> None:
    """Each deadline has an outcome of its own, and only these are timeouts."""
    deadlines = [ending for ending in Ending if ending.startswith("deadline_")]
    outcomes = [classify(Exchange(ending, 200))[0] for ending in deadlines]
    assert [outcome.value for outcome in outcomes] == [d.replace("deadline", "timed_out") for d in deadlines]
    assert {outcome for outcome in Outcome if outcome.is_timeout} == set(outcomes)


@pytest.mark.parametrize(
    "reason, failed", [("abort", True), ("Cancelled", True), ("length", False), (None, False)]
)
def test_finish_reasons_that_mean_failure(reason: str | None, failed: bool) -> None:
    """Words of engines for a request that they gave up are failures, in any case of letters."""
    assert is_failure(reason) is failed
