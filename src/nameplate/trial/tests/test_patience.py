"""What is asked beside the load may take as long as the contract lets a first output take."""

from __future__ import annotations

import pytest
from msgspec import structs

from nameplate.contract.deadlines import Deadlines
from nameplate.contract.plan import TrialPlan
from nameplate.contract.shape import Shape
from nameplate.engines.ask import TIMEOUT_S
from nameplate.engines.transport import LIMIT_BYTES, Reply
from nameplate.evidence.header import PromptLength
from nameplate.measure.tests.trials import contract
from nameplate.trial.corpus import Composed, warm_prefix


class Patient:
    """Answer nothing, and keep how long the asker would have waited."""

    waited_s = 0.0

    def fetch(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        *,
        timeout_s: float = 10.0,
        limit_bytes: int = LIMIT_BYTES,
    ) -> Reply:
        del method, path, body, limit_bytes
        self.waited_s = timeout_s
        return Reply(503, (), b"")


@pytest.mark.parametrize(("first_output_s", "patience_s"), [(3600, 3600.0), (5, TIMEOUT_S)])
def test_a_shared_prefix_may_take_as_long_as_a_first_output(first_output_s: int, patience_s: float) -> None:
    """A server whose prefill takes an hour is given the hour that the contract gives, and never less than usual."""
    wanted = structs.replace(contract(), deadlines=Deadlines(first_output_ns=first_output_s * 10**9))
    corpus = Composed(wanted.nonce, PromptLength(method="usage", words=20), 1)
    transport = Patient()
    warm_prefix(transport, wanted, TrialPlan("t", "decode", Shape(64, 1), 1, 1, 0), corpus)
    assert transport.waited_s == patience_s
