"""Requests that are ready before they are due, and what is kept of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from nameplate.client.bodies import AHEAD, Bodies
from nameplate.client.tests.orders import BODY, order_of, plan_of
from nameplate.contract.target import Credentials
from nameplate.prompts.store import PromptStore


@pytest.mark.parametrize(("worker", "workers"), [(0, 1), (1, 2), (3, 4)])
def test_what_other_workers_send_is_not_kept(tmp_path: Path, worker: int, workers: int) -> None:
    """A worker that takes every W-th request is ready for its next ones and holds no more than a few, to the end."""
    order = order_of(plan_of(1, 2000), directory=tmp_path, body=BODY)
    store = PromptStore.open(tmp_path / "prompts.zst")
    bodies = Bodies(store, order.target, Credentials(), workers)
    bodies.prepare(0, 8)
    missed = 0
    for index in range(worker, 2000, workers):
        missed += index not in bodies._ready
        assert bodies.request(index).endswith(BODY)
        while bodies.top_up():
            pass
        assert len(bodies._ready) <= AHEAD
        assert bodies._ready_bytes == sum(map(len, bodies._ready.values()))
    assert missed <= 2000 // AHEAD + 1


def test_a_body_can_be_asked_for_again_and_out_of_order(tmp_path: Path) -> None:
    """What was dropped, or comes before what was sent, is made when it is asked for."""
    order = order_of(plan_of(1, 300), directory=tmp_path, body=BODY)
    bodies = Bodies(PromptStore.open(tmp_path / "prompts.zst"), order.target, Credentials(), 2)
    bodies.prepare(0, 300)
    first = bodies.request(250)
    assert all(bodies.request(index) == first for index in (3, 250, 299, 0))
