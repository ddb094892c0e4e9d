"""What became of a level, from what its trials say."""

from __future__ import annotations

import pytest

from nameplate.contract.identity import IdentityChange
from nameplate.verdict.curve_level import (
    LevelStatus,
    LevelVerdict,
    curve_exit_code,
    ending,
    judge_level_of,
    refused_for_length,
    restarted,
)
from nameplate.verdict.facts import TrialFacts

V, F, R, BAD = (
    LevelVerdict(status, status.value)
    for status in (LevelStatus.valid, LevelStatus.failed, LevelStatus.refused, LevelStatus.invalid)
)


def facts(**more: object) -> TrialFacts:
    values: dict[str, object] = {
        "clock": "virtual", "planned": 3, "sent": 3, "ok": 3, "failed": 0, "cancelled": 0, "unfinished": 0,
        "prompt_asked": 1000, "lateness_budget_ns": 1, "concurrency": 1,
    }  # fmt: skip
    return TrialFacts(**{**values, **more})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("trials", "repeat", "status"),
    [
        ([V], 1, "valid"),
        ([BAD, V], 1, "valid"),
        ([BAD, BAD, BAD], 1, "invalid"),
        ([V, V], 3, None),
        ([], 1, None),
        ([V, F], 3, "failed"),
        ([R], 3, "refused"),
        ([V, BAD, V, V], 3, "valid"),
        ([F, V], 2, "failed"),
    ],
)
def test_a_level(trials: list[LevelVerdict], repeat: int, status: str | None) -> None:
    """All trials valid make a level valid; the first that says no number decides otherwise; replaced ones do not."""
    judged = judge_level_of(trials, repeat)
    assert (judged.status.value if judged else None) == status


@pytest.mark.parametrize(
    ("statuses", "cut", "code"),
    [
        ("valid valid", None, 0),
        ("valid failed", None, 0),
        ("valid refused", None, 0),
        ("valid skipped", None, 3),
        ("valid inconclusive", None, 3),
        ("failed failed", None, 3),
        ("valid invalid skipped", None, 4),
        ("refused over_limit", None, 5),
        ("valid lost", 5, 5),
        ("valid interrupted", 130, 130),
    ],
)
def test_exit_codes(statuses: str, cut: int | None, code: int) -> None:
    """A failed or refused level is an answer; a missing one is 3, an invalid one 4, none that was taken 5."""
    assert curve_exit_code([LevelStatus(word) for word in statuses.split()], cut) == code


def test_the_ending_counts_what_has_no_number() -> None:
    """How a study ended is said by counts of what became of its levels."""
    assert ending([LevelStatus.valid]) == "every level was measured"
    assert ending([LevelStatus.valid, LevelStatus.skipped]) == "1 of 2 levels have numbers: 1 skipped"


def test_a_refusal_for_length_needs_every_answer_to_be_one() -> None:
    """A prompt is refused for its length where every answer was a 400, 413 or 422 and none was ok."""
    assert refused_for_length(facts(ok=0, failed=3, http_statuses={"400": 3}))
    assert not refused_for_length(facts(ok=1, failed=2, http_statuses={"200": 1, "400": 2}))
    assert not refused_for_length(facts(ok=0, failed=3, http_statuses={"400": 2, "500": 1}))
    assert not refused_for_length(facts(ok=0, failed=3))


def test_a_restart_is_seen_with_what_broke_off() -> None:
    """A server that began anew during a trial, while requests broke off, was lost and came back."""
    change = IdentityChange("process_start_time_s", "changed", 1.0, 2.0)
    assert restarted(facts(identity_changes=(change,), load_failures={"reset": 1}))
    assert restarted(facts(counters_fell=("output_tokens_total",), warmup_failed=1))
    assert not restarted(facts(identity_changes=(change,)))
    assert not restarted(facts(load_failures={"reset": 1}))
