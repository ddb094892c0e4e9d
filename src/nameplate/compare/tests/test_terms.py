"""Which differences of the contract are refused, which are shown, and what `--vary` names."""

from __future__ import annotations

import pytest
from msgspec import structs

from nameplate.compare.side import Terms
from nameplate.compare.terms import (
    contract_terms,
    differences,
    identity_terms,
    is_harmless,
    named,
    plan_terms,
)
from nameplate.contract.arrivals import ArrivalPlan
from nameplate.contract.cache import CachePolicy
from nameplate.contract.contract import Contract
from nameplate.contract.identity import Fact, Identity
from nameplate.contract.plan import TrialPlan
from nameplate.contract.rules import Rules
from nameplate.contract.sampling import Sampling
from nameplate.contract.shape import Shape
from nameplate.contract.slo import Slo
from nameplate.contract.target import Target

CONTRACT = Contract(
    target=Target.parse("http://a:1"), shapes=(Shape(8, 8),), slos=(Slo.parse("ttft p95 < 1s"),), nonce="n"
)
PLAN = TrialPlan(name="t", role="single", shape=Shape(8, 8), concurrency=4, requests=64, warmup=8)


def kinds(a: Terms, b: Terms, *vary: str) -> dict[str, str]:
    return {one.name: one.kind for one in differences([a], [b], vary)}


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"slos": (Slo.parse("ttft p95 < 2s"),)}, "slo"),
        ({"sampling": Sampling(temperature=0.7)}, "sampling.temperature"),
        ({"sampling": Sampling(ignore_eos=False)}, "sampling.ignore_eos"),
        ({"cache": CachePolicy(512)}, "cache"),
        ({"cache": CachePolicy(0, "never")}, "cache.flush"),
        ({"dataset": "prompts.jsonl"}, "dataset"),
        ({"rules": Rules(confidence=0.95)}, "rules.confidence"),
        ({"rules": Rules(requests=200)}, "rules.requests"),
        ({"rules": Rules(confirmations=5)}, "rules.confirmations"),
        ({"target": structs.replace(CONTRACT.target, api="completions")}, "api"),
        ({"target": structs.replace(CONTRACT.target, model="other")}, "model.asked"),
        ({"target": structs.replace(CONTRACT.target, extra_body={"think": {"on": True}})}, "body.think.on"),
    ],
)
def test_what_moves_numbers_is_refused(change: dict[str, object], name: str) -> None:
    """Promise, sampling, cache policy, data, model and rating rules must be alike; --vary allows each by its name."""
    a, b = contract_terms(CONTRACT), contract_terms(structs.replace(CONTRACT, **change))
    if name.startswith("body"):
        a = {**a, name: False}
    assert kinds(a, b)[name] == "refused"
    assert kinds(a, b, name)[name] == "allowed"


@pytest.mark.parametrize(
    "change",
    [
        {"nonce": "other"},
        {"seed": 7},
        {"header_names": ("X-Trace",)},
        {"rules": Rules(quiet_s=0.0, max_trials=9, first_guess=5)},
        {"target": Target.parse("http://b:2")},
        {"shapes": (Shape(8, 8), Shape(9, 9))},
    ],
)
def test_what_moves_no_number_is_shown(change: dict[str, object]) -> None:
    """Nonce, seed, address, how a boundary is searched, and which other shapes there were refuse nothing."""
    found = kinds(contract_terms(CONTRACT), contract_terms(structs.replace(CONTRACT, **change)))
    assert set(found.values()) <= {"harmless"}


def test_rules_of_rating_are_terms_of_what_is_rated() -> None:
    """The loads of a single trial name its requests and warm-up: its rules refuse nothing beside a study."""
    changed = structs.replace(CONTRACT, rules=Rules(requests=200, warmup=1, start="handover"))
    study, trial = contract_terms(CONTRACT), contract_terms(changed, rated=False)
    assert kinds(study, trial) == {}
    assert set(kinds(study, contract_terms(changed)).values()) == {"refused"}


def test_every_other_term_must_be_alike() -> None:
    """A term that nobody declared harmless is refused: a new field of the contract is, until someone decides."""
    assert (
        not is_harmless("some.new_field")
        and is_harmless("rules.quiet_s")
        and not is_harmless("rules.confidence")
    )


def test_loads_are_terms_of_the_plan() -> None:
    """Concurrency, requests, start and kind of load must be alike; roles, names and seeds of arrivals may differ."""
    assert kinds(plan_terms(PLAN), plan_terms(structs.replace(PLAN, concurrency=5))) == {
        "load.concurrency": "refused"
    }
    assert kinds(plan_terms(PLAN), plan_terms(structs.replace(PLAN, requests=65))) == {
        "load.requests": "refused"
    }
    assert kinds(plan_terms(PLAN), plan_terms(structs.replace(PLAN, start="handover"))) == {
        "load.start": "refused"
    }
    same = structs.replace(
        PLAN, name="u", role="confirmation", attempt=2, quiet_s=15.0, outputs_must_differ=True
    )
    assert kinds(plan_terms(PLAN), plan_terms(same)) == {}
    opened = structs.replace(PLAN, arrivals=ArrivalPlan(rate=2.0))
    assert kinds(plan_terms(PLAN), plan_terms(opened))["load.kind"] == "refused"
    seeded = structs.replace(PLAN, arrivals=ArrivalPlan(rate=2.0, seed=9))
    assert kinds(plan_terms(opened), plan_terms(seeded)) == {}


def test_identity_is_named_by_families() -> None:
    """Facts are of engine, model or hardware; unknown on one side refuses nothing, a restart is no difference."""
    a = identity_terms(
        Identity({"version": Fact("1", ""), "driver": Fact("9", ""), "process_start_time_s": Fact(1, "")})
    )
    b = identity_terms(Identity({"version": Fact("2", ""), "process_start_time_s": Fact(2, "")}))
    assert kinds(a, b) == {"engine.version": "refused", "hardware.driver": "unknown"}


@pytest.mark.parametrize(
    "pattern", ["engine.version", "engine.*", "engine", "version", " Engine.Version ", "*"]
)
def test_vary_names_terms(pattern: str) -> None:
    """A term is named by its name, a wildcard, its family, or its last word."""
    assert named("engine.version", pattern) and not named("model.id", pattern.replace("*", "x") + "y")


def test_results_of_one_side_must_be_alike_too() -> None:
    """Two results on one side that differ are refused like the two sides, with both values."""
    (found,) = differences([{"x": 1}, {"x": 2}], [{"x": 1}])
    assert found.kind == "refused" and found.a == ("1", "2") and found.b == ("1",)
