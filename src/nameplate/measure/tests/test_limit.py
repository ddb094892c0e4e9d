"""What a limit is made of: each engine's bottleneck is found, and nothing is claimed that the figures do not show."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import structs

from nameplate.contract.slo import Slo
from nameplate.engines.state import ServerSample
from nameplate.evidence import layout
from nameplate.measure.level_figures import figures_of
from nameplate.measure.limit import Behind, Limit, Name, limit_of
from nameplate.measure.result import TrialResult, decode, evaluate
from nameplate.measure.tests.served import trial
from nameplate.measure.tests.trials import MS, S, closed_loop, contract, evidence, identity
from nameplate.sim.app import App
from nameplate.sim.presets import DEMO
from nameplate.verify.tests.making import make_trial, surveyed

# Steps so long that requests are in the server when a sample is taken.
SLOW = {"step_ns": 100 * MS, "noise": 0.0}


def simulated(directory: Path, engine: dict[str, Any], slo: str, shape: str, concurrency: int) -> Limit:
    """Run a request alone and a level that breaks the SLO, on one engine; say what the limit is made of."""
    preset = structs.replace(DEMO, engine=structs.replace(DEMO.engine, **{**SLOW, **engine}))
    site, results = surveyed(App(preset)), []
    for level, requests in ((1, 4), (concurrency, 24)):
        where = directory / f"c{level}"
        make_trial(
            where,
            site=site,
            name=where.name,
            slo=slo,
            shape=shape,
            concurrency=level,
            requests=requests,
            warmup=1,
        )
        results.append(decode((where / layout.RESULT).read_bytes()))
    assert [result.verdict.status for result in results] == ["pass", "fail"]
    found = limit_of(results[:1], [], results[1:])
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("engine", "slo", "shape", "name", "behind"),
    [
        ({"running_limit": 3}, "ttft p95 < 300ms", "64/16", Name.queue, Behind.running_limit),
        (
            {"kv_tokens": 1024, "context_tokens": 1024},
            "ttft p95 < 300ms",
            "256/16",
            Name.queue,
            Behind.kv_full,
        ),
        ({}, "ttft p95 < 300ms", "512/16", Name.queue, Behind.prompts_before),
        ({"decode_sequence_ns": 30e6}, "itl p95 < 150ms", "64/16", Name.decode, Behind.more_at_once),
        (
            {"kv_tokens": 512, "context_tokens": 512},
            "itl p95 < 120ms",
            "40/88",
            Name.decode,
            Behind.preemption,
        ),
    ],
)
def test_an_engines_own_bottleneck_is_named(
    tmp_path: Path, engine: dict[str, Any], slo: str, shape: str, name: Name, behind: Behind
) -> None:
    """Few places, a small pool, prompts one after the other, dear decodes, preemption: each is found by its figures."""
    found = simulated(tmp_path, engine, slo, shape, 10)
    assert found.made_of and found.made_of[0].name is name and behind in found.made_of[0].behind, found
    assert found.alone_ns is not None and found.fail_ns is not None
    assert sum(part.grew_ns for part in found.parts) == found.fail_ns - found.alone_ns
    assert sum(part.share for part in found.parts) == pytest.approx(1.0)
    assert not found.estimated and found.reason == ""


# -- by hand --------------------------------------------------------------------------------------------------------


ALONE = trial(1, 101 * MS, 0, role="baseline")


def limit_at(failing: TrialResult) -> Limit:
    found = limit_of([ALONE], [], [failing, failing])
    assert found is not None
    return found


def test_the_step_is_taken_apart_exactly() -> None:
    """The parts add up to the nanosecond, and those that carry much are named, the largest first."""
    found = limit_at(trial(4, 401 * MS, 200 * MS, 190 * MS))
    assert (found.of, found.alone_ns, found.fail_ns) == ("ttft", 101 * MS, 401 * MS)
    assert [(part.name, part.grew_ns) for part in found.parts] == [
        (Name.queue, 200 * MS),
        (Name.prefill, 90 * MS),
        (Name.rest, 10 * MS),
    ]
    assert [made.name for made in found.made_of] == [Name.queue, Name.prefill]
    assert found.fail is not None and found.fail.n == 128 and found.fail.trials == 2


def test_a_network_that_grows_is_named_as_such() -> None:
    """What the server never saw is neither its queue nor its prefill."""
    found = limit_at(trial(4, 401 * MS, 10 * MS, 100 * MS))
    assert [made.name for made in found.made_of] == [Name.rest] and found.made_of[0].behind == ()


def test_waiting_without_a_known_limit_names_the_queue_and_nothing_behind_it() -> None:
    """How many the server runs at once is not told: that requests waited is seen, for what is not."""
    found = limit_at(trial(4, 401 * MS, 250 * MS, waiting=2))
    assert [(made.name, made.behind) for made in found.made_of] == [(Name.queue, ())]
    assert found.fail is not None and found.fail.held_back is not None
    assert found.fail.held_back.waited == found.fail.held_back.samples > 0
    assert found.fail.held_back.at_limit is None


def test_samples_that_disagree_claim_nothing() -> None:
    """Half at the limit and half below it is no reason."""
    server = identity(engine="vllm", running_limit_effective=2, kv_tokens=10_000)
    held = [
        ServerSample(2 * S + at * 50 * MS, 2 - at % 2, 2, kv_usage_mean=0.1, kv_usage_max=0.1)
        for at in range(8)
    ]
    found = limit_at(
        trial(4, 401 * MS, 250 * MS, samples=held, identity_before=server, identity_after=server)
    )
    assert found.fail is not None and found.fail.held_back is not None
    seen = found.fail.held_back
    assert seen.at_limit == seen.neither and seen.kv_full == 0
    assert [(made.name, made.behind) for made in found.made_of] == [(Name.queue, ())]


def test_without_histograms_a_queue_is_an_estimate_and_needs_to_be_seen() -> None:
    """Waiting requests in the samples make it a queue, by an estimate; without them it is not known."""
    seen = limit_at(trial(4, 401 * MS, None, waiting=2))
    assert seen.estimated and [made.name for made in seen.made_of] == [Name.wait]
    for blind in (trial(4, 401 * MS, None, waiting=0), trial(4, 401 * MS, None)):
        found = limit_at(blind)
        assert found.made_of == () and "neither histograms nor samples" in found.reason
        assert [part.grew_ns for part in found.parts] == [300 * MS]


def test_a_mean_that_does_not_grow_has_no_step() -> None:
    """One user alone is as slow: then what fails is there already, or in the tail."""
    found = limit_at(trial(1, 160 * MS, 0, slo="ttft p95 < 100ms"))
    assert found.made_of  # the prefill is told as ever
    flat = limit_at(trial(1, 102 * MS, 0, slo="ttft p95 < 100ms"))
    assert flat.made_of == () and "does not grow" in flat.reason and flat.parts == ()


def test_what_broke_on_errors_has_no_time_to_take_apart() -> None:
    """Refused requests: the reason stands, and no cause is made up."""
    rows = [
        structs.replace(row, outcome="http_error", http_status=429, first_output_ns=None)
        if row.index % 2
        else row
        for row in closed_loop(4, 64, warmup=0)
    ]
    failing = evaluate(evidence(rows, concurrency=4, requests=64))
    assert failing.verdict.status == "fail"
    found = limit_at(failing)
    assert found.made_of == () and "no latency broke it" in found.reason and "429" in found.reason


def test_the_slo_that_most_trials_broke_is_taken_apart() -> None:
    """With two promises, the one that failed."""
    failing = trial(4, 110 * MS, 5 * MS, itl_ns=30 * MS)
    judged = evaluate(
        structs.replace(
            evidence(closed_loop(4, 64, warmup=0, itl_ns=30 * MS), concurrency=4, requests=64),
            contract=contract("ttft p95 < 9s", "itl p95 < 20ms"),
        )
    )
    found = limit_of([ALONE], [], [judged])
    assert found is not None and found.slo == Slo.parse("itl p95 < 20ms") and found.of == "decode"
    assert [(part.name, part.grew_ns) for part in found.parts] == [(Name.decode, 200 * MS)]
    assert failing.verdict.status == "pass"


def test_no_failing_level_has_no_limit_and_no_baseline_no_step() -> None:
    """Nothing failed: null. Nothing to compare with: unknown."""
    assert limit_of([ALONE], [ALONE], []) is None
    found = limit_of([], [], [trial(4, 401 * MS, 200 * MS)])
    assert found is not None and "no baseline" in found.reason


def test_a_level_is_as_sure_as_its_least_sure_trial() -> None:
    """Means over all requests; one trial without histograms leaves the level's parts unknown."""
    both = figures_of("fail", [trial(4, 401 * MS, 200 * MS), trial(4, 501 * MS, 300 * MS)])
    assert (both.n, both.ttft_mean_ns, both.queue_mean_ns, both.split) == (128, 451 * MS, 250 * MS, True)
    one = figures_of("fail", [trial(4, 401 * MS, 200 * MS), trial(4, 501 * MS, None)])
    assert (one.ttft_mean_ns, one.queue_mean_ns, one.split) == (451 * MS, None, False)
    assert "not seen idle" in one.reason


def test_a_limit_survives_json() -> None:
    """It is part of the plate."""
    found = limit_at(trial(4, 401 * MS, 200 * MS, waiting=2))
    assert msgspec.json.decode(msgspec.json.encode(found), type=Limit) == found
