"""Every field of what is asked for has a decision, with its reason: must it be alike, or may it differ?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

import msgspec
import pytest

from nameplate.compare import terms
from nameplate.compare.terms import contract_terms, is_harmless, plan_terms, without
from nameplate.compare.tests.test_terms import CONTRACT, PLAN
from nameplate.contract.arrivals import ArrivalPlan
from nameplate.contract.cache import CachePolicy
from nameplate.contract.contract import Contract
from nameplate.contract.curve import CurvePlan
from nameplate.contract.deadlines import Deadlines
from nameplate.contract.matrix import Matrix, MixedRule, PrefillRule
from nameplate.contract.plan import TrialPlan
from nameplate.contract.rates import RateRules
from nameplate.contract.rules import Rules
from nameplate.contract.sampling import Sampling
from nameplate.contract.soak import Soak
from nameplate.contract.soak_terms import SoakTerms

# `own` is told by terms of its own (of the load, of the target, or by which loads match); `inside` field by field.
Decision = Literal["alike", "free", "own", "inside"]
Decisions = Mapping[str, tuple[Decision, str]]

RULES: Decisions = {
    "confirmations": ("alike", "so many trials must agree before a level counts"),
    "extra_confirmations": ("alike", "so many more may settle a level that is noisy"),
    "tolerance": ("alike", "so many trials may disagree"),
    "requests": ("alike", "a measured limit depends on the number of requests"),
    "warmup": ("alike", "what a server has done before the first measured request"),
    "locator_warmup": ("free", "locating trials only find the neighbourhood"),
    "baseline_warmup": ("alike", "what a server has done before the baseline"),
    "baseline_requests": ("alike", "the baseline's sample, by which loops and lasting are judged"),
    "quiet_s": ("free", "each trial begins at an idle server"),
    "min_concurrency": ("free", "where to search; open below says so"),
    "max_concurrency": ("free", "where to search; open above says so"),
    "first_guess": ("free", "where the search begins"),
    "max_trials": ("free", "a search that ends early has its status"),
    "max_s": ("free", "a search that ends early has its status"),
    "start": ("alike", "the opening wave can own the p95"),
    "operate_below": ("free", "what is advised below the rated number"),
    "replacements": ("free", "an invalid trial does not count"),
    "loop_limit": ("alike", "which answers fail a level"),
    "confidence": ("alike", "what a level must certify to pass"),
}
RATE: Decisions = {
    "kind": ("alike", "how arrivals are spread"),
    "burstiness": ("alike", "how arrivals are spread"),
    "resolution": ("alike", "the grid of rates, and how many requests prove one"),
    "min_per_s": ("free", "where to search; open below says so"),
    "max_per_s": ("free", "where to search; open above says so"),
    "guess_per_s": ("free", "where the search begins"),
    "outstanding_limit": ("alike", "a queue of so many ends and fails a trial"),
}
SOAK_TERMS: Decisions = {
    "soak": ("inside", ""),
    "concurrency": ("alike", "the load, or how many may be outstanding"),
    "arrivals": ("inside", ""),
    "max_error_rate": ("alike", "the verdict of a soak"),
    "max_drift": ("alike", "the verdict of a soak"),
}
SOAK: Decisions = {
    "duration_ns": ("alike", "the sample of a soak, and what may drift in it"),
    "window_ns": ("alike", "drift is judged by windows"),
    "drain_ns": ("free", "what is cut is open, and no number"),
    "raw_budget_bytes": ("free", "how much evidence is kept"),
    "scrape_ns": ("free", "how often the server is watched"),
    "client_sample_ns": ("free", "how often the client watches itself"),
    "fault_pause_ns": ("alike", "how often a server that is away is asked, and fails"),
}
CURVE: Decisions = {
    "concurrencies": ("own", "cells are matched"),
    "rates": ("own", "cells are matched"),
    "inputs": ("own", "cells are matched"),
    "to_limit": ("free", "which cells there are"),
    "output_tokens": ("own", "the shape of each cell"),
    "arrivals": ("own", "the arrivals of each cell"),
    "repeat": ("free", "trials are counted"),
    "hardly": ("free", "a word for the shape of the curve"),
}
MATRIX: Decisions = {
    "prefill_contexts": ("own", "cells are matched"),
    "decode_contexts": ("own", "cells are matched"),
    "concurrencies": ("own", "cells are matched"),
    "window_ns": ("alike", "the sample of a cell"),
    "stable_ns": ("alike", "when a cell's window begins"),
    "output_tokens": ("alike", "how far a context grows in the window"),
    "unique_percent": ("alike", "how much a prefix cache spares"),
    "ready_timeout_ns": ("free", "a cell that is not ready has no number"),
    "warm_streams": ("alike", "whether prompts are in the cache"),
    "loop_limit": ("alike", "which cells are valid"),
    "prefill": ("inside", ""),
    "requests": ("alike", "the sample of a cell"),
    "burst": ("free", "which cells there are, measured after the others"),
    "burst_requests": ("alike", "the sample of a burst"),
    "mixed": ("inside", ""),
    "time_budget_s": ("free", "which cells there are"),
    "profile": ("free", "a name for what stands in the other terms"),
}
PREFILL: Decisions = {
    "least": ("alike", "the sample of a prefill"),
    "most": ("alike", "the sample of a prefill"),
    "spread": ("alike", "when sampling ends"),
    "budget_ns": ("alike", "when sampling ends"),
}
MIXED: Decisions = {
    "arrival_tokens": ("alike", "what arrives"),
    "streams": ("alike", "the load it arrives at"),
    "stream_input_tokens": ("alike", "the load it arrives at"),
    "stream_output_tokens": ("alike", "the load it arrives at"),
    "before_ns": ("alike", "the sample before it"),
    "after_ns": ("alike", "the sample after it"),
    "deadline_ns": ("alike", "when the window ends without it"),
}
ARRIVALS: Decisions = {
    "kind": ("alike", "how arrivals are spread"),
    "rate": ("alike", "the load"),
    "burstiness": ("alike", "how arrivals are spread"),
    "seed": ("own", "drawn anew in every study"),
    "outstanding_limit": ("alike", "a queue of so many ends the load"),
    "ramp": ("alike", "how the rate runs"),
    "steps": ("alike", "how the rate runs"),
    "trace": ("alike", "which requests arrive, and when"),
}
PLAN_FIELDS: Decisions = {
    "name": ("own", "a name"),
    "role": ("own", "the group of its cell"),
    "shape": ("own", "its own term"),
    "concurrency": ("own", "a term of closed loops"),
    "requests": ("alike", "the sample"),
    "warmup": ("alike", "what a server has done before"),
    "attempt": ("own", "a name"),
    "start": ("alike", "the opening wave"),
    "stagger_ns": ("free", "follows from the server's own speed"),
    "stop_when_failed": ("own", "of locating trials"),
    "quiet_s": ("own", "each trial begins at an idle server"),
    "outputs_must_differ": ("own", "follows from the baseline"),
    "outputs_must_not_loop": ("own", "follows from the baseline"),
    "hold": ("alike", "how long streams are watched"),
    "until": ("alike", "when sampling ends"),
    "shared_tokens": ("alike", "how much a prefix cache spares"),
    "arrivals": ("inside", ""),
    "soak": ("own", "terms of the contract"),
    "rate_level": ("own", "the rate says it"),
    "alone_ttft_ns": ("own", "measured, not asked"),
}
CONTRACT_FIELDS: Decisions = {
    "target": ("own", "address, api, model, body and dialect"),
    "shapes": ("own", "cells are matched"),
    "slos": ("own", "`slo`, which must be alike"),
    "nonce": ("own", "says whether trials are pairs"),
    "sampling": ("inside", ""),
    "cache": ("alike", "whether prompts are in the cache"),
    "deadlines": ("inside", ""),
    "rules": ("inside", ""),
    "seed": ("free", "prompts and lengths are drawn anew"),
    "header_names": ("free", "how it is spoken to"),
    "dataset": ("alike", "what is asked"),
    "speed": ("inside", ""),
    "soak": ("inside", ""),
    "rate": ("inside", ""),
    "curve": ("inside", ""),
}
EVERY: tuple[tuple[type[msgspec.Struct], str, Decisions], ...] = (
    (Contract, "", CONTRACT_FIELDS),
    (Rules, "rules.", RULES),
    (RateRules, "rate.", RATE),
    (SoakTerms, "soak.", SOAK_TERMS),
    (Soak, "soak.soak.", SOAK),
    (ArrivalPlan, "soak.arrivals.", {**ARRIVALS, "seed": ("free", "drawn anew in every study")}),
    (CurvePlan, "curve.", CURVE),
    (Matrix, "speed.", MATRIX),
    (PrefillRule, "speed.prefill.", PREFILL),
    (MixedRule, "speed.mixed.", MIXED),
    (TrialPlan, "load.", PLAN_FIELDS),
    (ArrivalPlan, "load.arrivals.", ARRIVALS),
    (Deadlines, "deadlines.", dict.fromkeys(Deadlines.__struct_fields__, ("free", "above any latency kept"))),
    (Sampling, "sampling.", dict.fromkeys(Sampling.__struct_fields__, ("alike", "how long answers are"))),
    (
        CachePolicy, "cache.",
        {"shared_prefix_tokens": ("alike", "`cache`"), "flush": ("alike", "whether a cache is cold")},
    ),
)  # fmt: skip


def _decided() -> Iterator[tuple[str, Decision, str]]:
    for _, prefix, decisions in EVERY:
        yield from ((f"{prefix}{name}", decision, why) for name, (decision, why) in decisions.items())


@pytest.mark.parametrize(("struct", "prefix", "decisions"), EVERY)
def test_every_field_is_decided(struct: type[msgspec.Struct], prefix: str, decisions: Decisions) -> None:
    """A field without a decision fails here: whoever adds one says whether results that differ in it are alike."""
    assert set(struct.__struct_fields__) == set(decisions), prefix
    assert all(why for decision, why in decisions.values() if decision != "inside")


@pytest.mark.parametrize(("name", "decision", "why"), [one for one in _decided() if one[1] != "inside"])
def test_decisions_are_kept(name: str, decision: Decision, why: str) -> None:
    """What must be alike is refused, what is free is shown, and what terms of its own tell is no term here."""
    if decision == "own":
        family, _, rest = name.partition(".")
        plain = name in terms._OF_CONTRACT or not without({name: 1}, terms._BY_CELL)
        assert plain or (family == "load" and not without({rest: 1}, terms._OF_PLAN)), why
    else:
        assert is_harmless(name) == (decision == "free"), why


def test_terms_that_arise_are_decided() -> None:
    """Contract and plan of a rated study give no term that the decisions do not name, but of the target and the SLO."""
    known = {name for name, _, _ in _decided()}
    mine = {*contract_terms(CONTRACT), *plan_terms(PLAN)}
    target = {"address", "api", "model.asked", "slo", "load.kind", "load.concurrency"}
    assert {one for one in mine - known if not one.startswith("dialect.")} <= target
