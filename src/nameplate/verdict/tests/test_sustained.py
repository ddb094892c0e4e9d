"""The gates of a sustained rate: what must be shown, what counts while locating, and what a single trial is spared."""

from __future__ import annotations

import pytest

from nameplate.verdict.gate import SUSTAINED
from nameplate.verdict.sustained import QueueFacts, judge_sustained

BOUNDED = {
    "queue": "bounded",
    "growth": 0.001,
    "most_growth": 0.02,
    "waiting_rises": False,
    "latency": "steady",
}


def statuses(proves: bool = True, **changed: object) -> list[str]:
    facts = QueueFacts(proves=proves, resolution=0.05, **{**BOUNDED, **changed})  # type: ignore[arg-type]
    found = judge_sustained(facts)
    assert tuple(result.gate for result in found) == SUSTAINED
    return [result.status for result in found]


def test_a_bounded_queue_and_a_steady_latency_pass() -> None:
    """Both were shown."""
    assert statuses() == ["pass", "pass"]


@pytest.mark.parametrize("proves", [True, False])
def test_what_was_shown_to_be_wrong_fails_whatever_the_role(proves: bool) -> None:
    """A queue that rises, the server's own, and a latency that rises to the end fail while locating too."""
    assert statuses(proves, queue="rising") == ["fail", "pass"]
    assert statuses(proves, waiting_rises=True) == ["fail", "pass"]
    assert statuses(proves, latency="rising") == ["pass", "fail"]


@pytest.mark.parametrize(("proves", "status"), [(True, "inconclusive"), (False, "pass")])
def test_what_was_not_shown_is_inconclusive_only_where_it_must_be(proves: bool, status: str) -> None:
    """Undecided neither passes nor fails a confirmation, and does not stop the locator."""
    assert statuses(proves, queue="undecided") == [status, "pass"]
    assert statuses(proves, queue=None, growth=None, most_growth=None) == [status, "pass"]
    assert statuses(proves, latency="unsteady") == ["pass", status]
    assert statuses(proves, latency=None) == ["pass", status]
    assert statuses(proves, waiting_rises=None) == ["pass", "pass"]


def test_a_trial_of_its_own_claims_no_sustained_rate() -> None:
    """Without a rate study there are no such gates."""
    assert judge_sustained(None) == ()
