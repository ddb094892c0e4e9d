"""The model of a published machine whose long prompts were still being prefilled when the deadline passed."""

from itertools import pairwise

import pytest

from nameplate.sim.presets import DSPARK
from nameplate.sim.tests.cells import run_cell

# Prompt tokens as counted, by label.
PROMPTS = {8: 8_223, 64: 64_591, 128: 129_010}
DEADLINE_S = 300


@pytest.mark.parametrize(("streams", "rate"), [(1, 45.4), (2, 70.2), (4, 101.3), (8, 134.3), (12, 144.2)])
def test_decode_at_8k_is_within_four_percent(streams: int, rate: float) -> None:
    """The published row of 8K comes out of windows of 30 s."""
    assert run_cell(DSPARK.engine, PROMPTS[8], streams).rate == pytest.approx(rate, rel=0.04)


@pytest.mark.parametrize(
    ("context", "streams", "running", "produced", "apart_s"),
    [(64, 12, 9, 8, 34.5), (128, 8, 5, 4, 72.5), (128, 12, 5, 4, 72.5)],
)
def test_long_prompts_are_not_ready_in_time(
    context: int, streams: int, running: int, produced: int, apart_s: float
) -> None:
    """After 300 s as many run as were seen to, first tokens having come one whole cold prefill after another."""
    cell = run_cell(DSPARK.engine, PROMPTS[context], streams, deadline_s=DEADLINE_S)
    assert cell.ready_ns is None
    assert (cell.ramp.running, cell.ramp.waiting) == (running, streams - running)
    assert len(cell.first_ns) == produced
    # A chunk of 8,192 tokens holds the end of one prompt and the beginning of the next: that far the distances vary.
    steps_s = [(later - earlier) * 1e-9 for earlier, later in pairwise((0, *cell.first_ns))]
    assert sum(steps_s) / len(steps_s) == pytest.approx(apart_s, rel=0.05)


def test_the_claim_is_contradicted() -> None:
    """By the claim 64K x 12 fits with all its outputs; the pool holds ten of the prompts, however long one waits."""
    claimed = DSPARK.engine.kv_claim_tokens
    assert claimed is not None and 12 * (PROMPTS[64] + 2_048) < claimed
    cell = run_cell(DSPARK.engine, PROMPTS[64], 12, deadline_s=420)
    assert (cell.ramp.running, cell.ramp.waiting) == (10, 2)
    assert cell.ramp.kv_use > 0.92
