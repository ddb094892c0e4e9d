"""How much of raw reads is kept: whole, then a sample, then none; one decision a request."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nameplate.client.budget import LOW_DISK_BYTES, RawBudget
from nameplate.contract.soak import Soak
from nameplate.evidence.header import Keeping

S = 10**9
HOUR = 3600 * S
MIB = 1 << 20


def budget_of(limit: int | None, keeping: Keeping | None = None, workers: int = 1) -> RawBudget:
    soak = Soak(duration_ns=HOUR, raw_budget_bytes=limit)
    return RawBudget.of(soak, keeping or Keeping(), 0, workers)


def test_half_is_whole_the_rest_a_sample_that_lasts() -> None:
    """Half used after a tenth of the time: of what comes, one request in 12 keeps within the other half."""
    budget = budget_of(100 * MIB)
    assert not budget.look(HOUR // 10 - S, 50 * MIB - 1, None) and budget.keeping == Keeping()
    assert budget.look(HOUR // 10, 50 * MIB, None)
    assert budget.keeping == Keeping("sample", 12)
    assert budget.told is not None and (budget.told.reason, budget.told.reads_bytes) == ("budget", 50 * MIB)
    assert not budget.look(HOUR // 2, 90 * MIB, None)
    assert budget.look(HOUR // 2, 100 * MIB, None)
    assert budget.keeping == Keeping("none")
    assert not budget.look(HOUR, 900 * MIB, None)


def test_a_sample_that_was_asked_for_is_thinned_further() -> None:
    """One in ten becomes one in ten times as many; what is not kept at all needs no budget."""
    sampled = budget_of(100 * MIB, Keeping("sample", 10))
    assert sampled.look(HOUR // 2, 60 * MIB, None)
    assert sampled.keeping == Keeping("sample", 20)
    assert not budget_of(100 * MIB, Keeping("none")).look(S, 10**12, 0)


def test_a_disk_that_runs_full_ends_raw_bytes_first() -> None:
    """With or without a budget, little room is left to rows and samples, and that is the reason given."""
    for limit in (None, 100 * MIB):
        budget = budget_of(limit)
        assert not budget.look(S, MIB, LOW_DISK_BYTES)
        assert budget.look(S, MIB, LOW_DISK_BYTES - 1) and budget.keeping.reads == "none"
        assert budget.told is not None and budget.told.reason == "disk"


def test_workers_share_a_budget() -> None:
    """Each of four decides by a quarter of the bytes."""
    assert budget_of(100 * MIB, workers=4).look(HOUR // 2, 13 * MIB, None)
    assert not budget_of(100 * MIB).look(HOUR // 2, 13 * MIB, None)


@given(
    limit=st.integers(1, 10**9),
    rates=st.lists(st.integers(0, 10**6), min_size=1, max_size=80),
)
def test_less_is_kept_as_it_goes_and_never_more(limit: int, rates: list[int]) -> None:
    """Whatever comes, the stages follow each other in one direction, and each change is told."""
    budget = budget_of(limit)
    order, seen, size = ["all", "sample", "none"], ["all"], 0
    for number, rate in enumerate(rates):
        # What is not kept weighs next to nothing.
        size += rate if budget.keeping.reads == "all" else rate // budget.keeping.sample_every
        if budget.look(number * HOUR // len(rates), size, None):
            seen.append(budget.keeping.reads)
    assert seen == sorted(set(seen), key=order.index)
