"""The protocol's counts, the deadlines' place above the SLOs, and how identities compare."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nameplate.contract.deadlines import SECOND_NS, Deadlines
from nameplate.contract.errors import CallerError
from nameplate.contract.identity import COMPARED, Fact, Identity, compare
from nameplate.contract.plan import TrialPlan
from nameplate.contract.rules import Rules
from nameplate.contract.shape import Shape
from nameplate.contract.slo import Slo


def slo(percentile: float) -> Slo:
    """Build an SLO of which only the percentile matters."""
    return Slo("ttft", percentile, limit_ns=10**9)


@given(
    concurrency=st.integers(1, 2000),
    tenths=st.lists(st.integers(1, 999), max_size=4),
)
def test_measured_requests_follow_the_protocol(concurrency: int, tenths: list[int]) -> None:
    """N is max(64, 4C, ceil(3/(1-p))) in exact arithmetic, p being the strictest percentile."""
    slos = [slo(tenth / 10) for tenth in tenths]
    tail = max((math.ceil(3 / (1 - Fraction(tenth, 1000))) for tenth in tenths), default=0)
    assert Rules().measured_requests(concurrency, slos) == max(64, 4 * concurrency, tail)


@pytest.mark.parametrize(
    ("concurrency", "percentile", "requests"),
    [(1, 95, 64), (20, 95, 80), (1, 99, 300), (100, 99, 400), (1, 99.9, 3000)],
)
def test_measured_requests_at_the_usual_levels(concurrency: int, percentile: float, requests: int) -> None:
    """The usual percentiles need the numbers that the protocol's readers compute by hand."""
    assert Rules().measured_requests(concurrency, [slo(percentile)]) == requests


def test_a_given_number_of_requests_wins() -> None:
    """A stated count replaces the protocol's, but every slot still starts a request."""
    assert Rules(requests=10).measured_requests(4, [slo(99)]) == 10
    assert Rules(requests=10).measured_requests(16, [slo(99)]) == 16


def test_an_error_rate_alone_needs_no_tail() -> None:
    """An SLO without a percentile does not raise the count."""
    assert Rules().measured_requests(1, [Slo("error_rate", limit_ratio=0.01)]) == 64


def test_first_output_deadline_grows_with_the_slo() -> None:
    """Without stated deadlines the first output may take ten times the loosest TTFT limit."""
    assert Deadlines.for_slos([]) == Deadlines()
    assert Deadlines.for_slos([slo(95)]).first_output_ns == 600 * SECOND_NS
    loose = Slo("ttft", 95.0, limit_ns=100 * SECOND_NS)
    assert Deadlines.for_slos([slo(95), loose]).first_output_ns == 1000 * SECOND_NS
    stated = Deadlines(first_output_ns=700 * SECOND_NS)
    assert Deadlines.for_slos([loose], stated) == stated


@pytest.mark.parametrize(
    ("metric", "limit_s", "base"),
    [
        ("ttft", 10, Deadlines(first_output_ns=10 * SECOND_NS)),
        ("ttft", 10, Deadlines(total_ns=5 * SECOND_NS)),
        ("e2e", 10, Deadlines(total_ns=10 * SECOND_NS)),
        ("tpot", 10, Deadlines(total_ns=10 * SECOND_NS)),
        ("itl", 121, Deadlines()),
        ("longest_gap", 120, Deadlines()),
        ("longest_gap", 30, Deadlines(total_ns=20 * SECOND_NS)),
    ],
)
def test_a_deadline_at_or_below_a_limit_is_refused(metric: str, limit_s: int, base: Deadlines) -> None:
    """Requests that are cut before they could miss the SLO would prove nothing, whichever deadline cuts them."""
    judged = Slo(metric, 95.0, limit_ns=limit_s * SECOND_NS)  # type: ignore[arg-type]
    with pytest.raises(CallerError, match="not above the limit"):
        Deadlines.for_slos([judged], base)
    assert Deadlines.for_slos([Slo("error_rate", limit_ratio=0.5)], base) == base


def known(**facts: object) -> Identity:
    """Build an identity from plain values."""
    return Identity({name: Fact(value, "test") for name, value in facts.items()})  # type: ignore[arg-type]


def test_identity_changes_are_named() -> None:
    """A different value is a change; known that becomes unknown is unverified; unknown before is neither."""
    before = known(engine="vllm", version="1", kv_tokens=100, block_size_tokens=16)
    after = known(engine="vllm", version="2", block_size_tokens=16, model="m")
    changes = {change.name: change for change in compare(before, after)}
    assert changes.keys() == {"version", "kv_tokens"}
    assert changes["version"].kind == "changed" and "from 1 to 2" in str(changes["version"])
    assert changes["kv_tokens"].kind == "unverified" and "no longer" in str(changes["kv_tokens"])


@given(
    st.dictionaries(
        st.sampled_from([*COMPARED, "hardware", "created"]),
        st.one_of(st.integers(), st.text(max_size=5), st.booleans(), st.floats(allow_nan=False)),
    )
)
def test_an_identity_equals_itself_whatever_its_source(facts: dict[str, object]) -> None:
    """The same values read elsewhere are no change, and what is not compared never is one."""
    here = known(**facts)
    elsewhere = Identity({name: Fact(fact.value, "elsewhere") for name, fact in here.facts.items()})
    assert compare(here, elsewhere) == ()
    assert compare(here, here.with_facts({"created": Fact(12345, "now")})) == ()
    assert not set(here.missing) & set(facts)


def test_facts_as_numbers() -> None:
    """A fact is a whole number only if it is a finite number."""
    facts = known(a=7, b=7.9, c=True, d="7", e=math.inf, f=math.nan)
    assert [facts.integer(name) for name in "abcdefg"] == [7, 7, None, None, None, None, None]
    assert facts.text("a") == "7" and facts.text("g") is None


def test_a_replacement_has_a_key_of_its_own() -> None:
    """Attempts of one trial never share a directory or a prompt key."""
    plan = TrialPlan("c7-1", "confirmation", Shape(8, 8), 7, 64, 8)
    assert plan.key == "c7-1"
    assert TrialPlan("c7-1", "confirmation", Shape(8, 8), 7, 64, 8, attempt=1).key == "c7-1.retry1"
