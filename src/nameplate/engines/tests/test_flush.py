"""Idle waits and flushes with proof, over fake servers."""

from __future__ import annotations

import pytest
from msgspec import structs

from nameplate.contract.sampling import Sampling
from nameplate.engines.fakes import Answer, FakeClock, FakeTraits, ScriptedTransport, reply
from nameplate.engines.flush import FlushProof, prove_flush
from nameplate.engines.idle import SECOND_NS, wait_idle
from nameplate.engines.tests.helpers import detected, fake_adapter
from nameplate.prompts.body import BodyOptions, build_body

WORDS = " ".join(f"word{number}" for number in range(30))


def proof(traits: FakeTraits, floor: int = 0) -> FlushProof:
    adapter, _ = fake_adapter(traits)
    body = build_body(BodyOptions.of(adapter.target, Sampling(ignore_eos=False)), WORDS, 1)
    return prove_flush(adapter, body, floor_tokens=floor)


def page(running: int, waiting: int = 0) -> Answer:
    return reply(f"vllm:num_requests_running {running}\nvllm:num_requests_waiting {waiting}\n")


def test_a_working_flush_is_proven_by_usage() -> None:
    """The repeated prompt hits, the one after the flush does not."""
    found = proof(FakeTraits())
    assert (found.status, found.evidence) == ("proven", "usage")
    assert found.warm_tokens == 32 and found.flushed_tokens == 0


def test_without_cached_token_reports_counters_prove_it() -> None:
    """The server's own hit counter, idle before and after, takes the place of usage."""
    found = proof(FakeTraits(reports_cached=False))
    assert (found.status, found.evidence, found.warm_tokens) == ("proven", "counters", 32)


def test_a_server_that_omits_zeros_is_judged_by_its_counters() -> None:
    """An absent count is unknown, so it is not taken for the zero that a proof needs."""
    assert (proof(FakeTraits(omits_zero=True)).status, proof(FakeTraits(omits_zero=True)).evidence) == (
        "proven",
        "counters",
    )


def test_without_reports_and_counters_a_flush_is_accepted_and_unproven() -> None:
    """Nothing shows what happened, and nothing is claimed."""
    found = proof(FakeTraits(reports_cached=False, metrics=False))
    assert (found.status, found.evidence) == ("accepted_unproven", "none")


def test_a_flush_that_lies_is_refused() -> None:
    """It answered success, and the next prompt still came from the cache."""
    found = proof(FakeTraits(flush="lies"))
    assert found.status == "refused" and "still came from the cache" in found.detail


def test_a_refusal_that_passes_is_tried_again() -> None:
    """Blocks may be held for a step after the last answer."""
    assert proof(FakeTraits(flush="busy_once")).status == "proven"
    assert proof(FakeTraits(flush="refuses")).status == "refused"


def test_an_absent_flush_is_unsupported() -> None:
    """The endpoint does not exist."""
    assert proof(FakeTraits(flush="absent")).status == "unsupported"


def test_a_cache_that_is_off_proves_nothing() -> None:
    """A repeated prompt without hits cannot show that a flush works."""
    found = proof(FakeTraits(caches=False))
    assert found.status == "accepted_unproven" and "cache is off" in found.detail


def test_traffic_of_others_keeps_counters_from_being_evidence() -> None:
    """A counter that moves under somebody else's load is nobody's."""
    adapter, _ = fake_adapter(FakeTraits(reports_cached=False, running=1))
    body = build_body(BodyOptions.of(adapter.target, Sampling(ignore_eos=False)), WORDS, 1)
    found = prove_flush(adapter, body, limit_ns=SECOND_NS)
    assert (found.status, found.evidence) == ("accepted_unproven", "none")


def test_a_prompt_that_fails_proves_nothing() -> None:
    """A server that cannot answer P is not flushed at all."""
    adapter, server = fake_adapter(FakeTraits(rejects=("temperature",)))
    body = build_body(BodyOptions.of(adapter.target, Sampling()), WORDS, 1)
    assert prove_flush(adapter, body).status == "unknown"
    assert server.flushes == 0


def test_idle_must_hold() -> None:
    """One idle reading between two busy ones is not idle."""
    script = ScriptedTransport(
        {
            "GET /v1/models": reply({"data": [{"id": "toy", "owned_by": "vllm"}]}),
            "GET /metrics": [page(1), page(0), page(0, 2), page(0), page(0), page(9)],
        }
    )
    adapter = detected(script)
    found = wait_idle(adapter)
    assert (found.status, found.readings, found.waited_ns) == ("idle", 5, 400_000_000)


def test_a_busy_server_is_busy_at_the_deadline() -> None:
    """The wait ends in time and tells what was still running."""
    adapter, _ = fake_adapter(FakeTraits(running=3))
    found = wait_idle(adapter, limit_ns=SECOND_NS)
    assert (found.status, found.running) == ("busy", 3)
    assert isinstance(adapter.clock, FakeClock) and adapter.clock.time_ns == SECOND_NS


@pytest.mark.parametrize("answer", ["timeout", reply("<html>", content_type="text/html"), reply("", 500)])
def test_a_server_that_does_not_tell_is_unknown(answer: Answer) -> None:
    """Failed scrapes are counted, and end the wait as unknown, never as idle."""
    models = reply({"data": [{"id": "toy", "owned_by": "vllm"}]})
    found = wait_idle(detected(ScriptedTransport({"GET /v1/models": models, "GET /metrics": answer})))
    assert found.status == "unknown" and found.failed_readings == 5 and found.running is None


def test_some_failed_scrapes_do_not_end_the_wait() -> None:
    """A page that comes back is read on, and the failures are counted."""
    script = ScriptedTransport(
        {
            "GET /v1/models": reply({"data": [{"id": "toy", "owned_by": "vllm"}]}),
            "GET /metrics": ["timeout", "reset", page(0), page(0)],
        }
    )
    found = wait_idle(detected(script))
    assert (found.status, found.failed_readings) == ("idle", 2)


def test_an_unknown_engine_is_not_waited_for() -> None:
    """There is nothing to read, so no time is spent."""
    adapter = detected(ScriptedTransport({"GET /v1/models": reply({"data": [{"id": "toy"}]})}))
    assert wait_idle(adapter).status == "unknown"
    assert structs.replace(wait_idle(adapter), detail="").waited_ns == 0
