"""Which key the prompt of a planned request has: a function of the study's nonce and the plan."""

from __future__ import annotations

from nameplate.contract.plan import TrialPlan
from nameplate.prompts.text import PromptKey
from nameplate.schedule.stage import Requests


def prompt_key(nonce: str, plan: TrialPlan, requests: Requests, index: int) -> PromptKey:
    """Return the key of the prompt that is stored under `index`; KeyError for an index that the plan does not have.

    A request that warms a stream has the stream's own key.
    """
    own = requests.warms(index)
    stage = requests.stage(index if own is None else own)
    return PromptKey(nonce, plan.name, plan.attempt, index if own is None else own, stage.name)
