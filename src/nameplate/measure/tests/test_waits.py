"""Queue and prefill apart: equal to what the engine knows, reconciled, and null where the histograms are not ours."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import structs

from nameplate.engines.state import Histogram, Histograms, ServerSample
from nameplate.evidence import layout
from nameplate.evidence.rows import RequestRow
from nameplate.measure.from_disk import load_evidence
from nameplate.measure.tests.trials import MS, S, closed_loop, evidence
from nameplate.measure.trial_evidence import TrialEvidence
from nameplate.measure.waits import Part, Waits, estimate, measure_waits
from nameplate.sim.app import App
from nameplate.sim.presets import DEMO
from nameplate.sim.sequence import Sequence
from nameplate.statistics.buckets import Interval
from nameplate.statistics.percentile import percentile
from nameplate.verify.tests.making import edit_lines, make_trial, surveyed

NAMES = ("queue", "prefill", "decode")


class Truth:
    """Note what the engine itself knows of each request that finishes: queue, prefill and decode time."""

    def __init__(self, app: App) -> None:
        self.times: list[tuple[int, int, int]] = []
        observe = app.engine._observe_finish

        def noted(sequence: Sequence, t_ns: int) -> None:
            began, first = sequence.scheduled_ns, sequence.first_ns
            self.times.append((began - sequence.queued_ns, first - began, t_ns - first))
            observe(sequence, t_ns)

        app.engine._observe_finish = noted  # type: ignore[method-assign]


def app_of(**engine: Any) -> App:
    """Return the demonstration engine with other parameters."""
    changed = structs.replace(DEMO.engine, **engine)
    return App(structs.replace(DEMO, engine=changed))


def run(directory: Path, app: App, **trial: Any) -> tuple[Waits, list[tuple[int, int, int]]]:
    """Run a trial in simulated time; return its waits and the engine's truth of its requests, warm-up first."""
    truth = Truth(app)
    make_trial(directory, app=app, **trial)
    held = load_evidence(directory)
    waits = measure_waits(held)
    assert waits is not None
    return waits, truth.times[-len(held.rows) :]


def within(interval: Interval | None, value: float) -> bool:
    assert interval is not None
    return interval.low <= value and (interval.high is None or value <= interval.high)


def parts_of(waits: Waits) -> tuple[Part, Part, Part]:
    assert waits.queue is not None and waits.prefill is not None and waits.decode is not None
    return waits.queue, waits.prefill, waits.decode


@pytest.mark.parametrize("limit", [32, 4])
def test_the_parts_are_those_that_the_engine_knows(tmp_path: Path, limit: int) -> None:
    """Means are exact to the nanosecond, quantiles within their buckets, and the parts add up to our TTFT."""
    # Steps so long that a request is in the server when a sample is taken.
    app = app_of(running_limit=limit, intake_request_ns=3 * MS, step_ns=100 * MS)
    waits, truth = run(tmp_path / "t", app, shape="512/16", concurrency=10, requests=64, warmup=2)
    assert (waits.source, waits.n, waits.unmeasured, waits.unobserved) == ("server", 64, 0, 0)
    for at, part in enumerate(parts_of(waits)):
        times = [known[at] for known in truth[2:]]
        assert part.n == part.quantiles_n == 64
        assert part.mean_ns == pytest.approx(sum(times) / 64, abs=1)
        assert within(part.p50, percentile(sorted(times), 50)) and within(
            part.p95, percentile(sorted(times), 95)
        )
    # What is left is what the API server takes before the engine knows of a request.
    queue, prefill, _ = parts_of(waits)
    assert waits.rest_mean_ns is not None and waits.rest_mean_ns >= 3 * MS
    assert waits.ttft_mean_ns == queue.mean_ns + prefill.mean_ns + waits.rest_mean_ns


def test_warm_up_that_no_sample_tells_apart_is_in_the_means_and_said(tmp_path: Path) -> None:
    """A trial shorter than the distance of two samples: means over all, quantiles still of the measured ones."""
    waits, truth = run(tmp_path / "t", app_of(), concurrency=2, requests=12, warmup=2)
    assert (waits.n, waits.unmeasured, waits.rest_mean_ns) == (14, 2, 0)
    for at, part in enumerate(parts_of(waits)):
        assert part.mean_ns == pytest.approx(sum(known[at] for known in truth) / 14, abs=1)
        assert part.quantiles_n == 12 and part.n == 14
        assert within(part.p50, percentile(sorted(known[at] for known in truth[2:]), 50))


def test_a_handover_ramp_is_in_the_means(tmp_path: Path) -> None:
    """Requests of a ramp run beside the measured ones, so no sample tells them apart."""
    waits, truth = run(
        tmp_path / "t", app_of(), shape="64/8", concurrency=4, requests=20, warmup=2, start="handover"
    )
    assert waits.n == len(truth) and waits.unmeasured == len(truth) - 20
    assert waits.queue is not None and waits.queue.quantiles_n == 20


def test_the_estimate_holds_the_truth_at_low_load(tmp_path: Path) -> None:
    """TTFT beyond that of a request alone: its range holds the mean of queue and slower prefill together."""
    app = app_of(noise=0.05)
    site = surveyed(app)
    make_trial(tmp_path / "alone", site=site, name="alone", concurrency=1, requests=10, warmup=0)
    alone = sorted(row.ttft_ns or 0 for row in load_evidence(tmp_path / "alone").rows)
    for concurrency in (1, 2):
        where = tmp_path / str(concurrency)
        waits, truth = run(
            where, app, site=site, name=where.name, concurrency=concurrency, requests=20, warmup=0
        )
        assert waits.ttft_mean_ns is not None
        found = estimate(waits.ttft_mean_ns, (alone[0], percentile(alone, 50), alone[-1]))
        slower = sum(queue + prefill for queue, prefill, _ in truth) / len(truth) - sum(alone) / len(alone)
        assert found.low_ns <= max(0.0, slower) <= found.high_ns
        assert found.low_ns <= found.mean_ns <= found.high_ns
        if concurrency == 1:
            assert waits.queue is not None and found.low_ns <= waits.queue.mean_ns <= found.high_ns


def test_an_old_directory_has_means_and_no_quantiles(tmp_path: Path) -> None:
    """Evidence from before the buckets were kept reads as it always did."""
    make_trial(tmp_path / "t")
    new = measure_waits(load_evidence(tmp_path / "t"))

    def forget(entries: Iterable[dict[str, dict[str, object]]]) -> None:
        for entry in entries:
            entry.get("detail", {}).pop("histograms", None)

    edit_lines(tmp_path / "t", layout.JOURNAL, forget)
    old = measure_waits(load_evidence(tmp_path / "t"))
    assert new is not None and old is not None and new.queue is not None and old.queue is not None
    assert new.queue.p95 is not None and old.queue.p95 is None
    assert (old.queue.mean_ns, old.rest_mean_ns) == (new.queue.mean_ns, new.rest_mean_ns)


# -- readings of other servers ------------------------------------------------------------------------------------


def reading(t_ns: int, count: int, queue_s: float, prefill_s: float, **more: Any) -> ServerSample:
    return ServerSample(t_ns, 0, 0, queue_s=(queue_s, count), prefill_s=(prefill_s, count), **more)


def case(**more: Any) -> TrialEvidence:
    """Return 2 warm-ups and 64 requests, of which the server says: 3.3 s of queue, 3.3 s of prefill."""
    values: dict[str, Any] = {
        "idle_before": reading(0, 100, 7.0, 9.0),
        "idle_after": reading(90 * S, 166, 10.3, 12.3),
    }
    whole = evidence(closed_loop(4, 64, ttft=lambda _: 120 * MS))
    return structs.replace(whole, **{**values, **more})


def measured(**more: Any) -> Waits:
    waits = measure_waits(case(**more))
    assert waits is not None
    return waits


def test_the_rest_is_what_the_parts_leave() -> None:
    """Mean TTFT = queue + prefill + rest over the same requests, warm-up included as no sample fell between."""
    waits = measured()
    assert waits.queue is not None and waits.prefill is not None
    assert (waits.n, waits.unmeasured) == (66, 2)
    assert (waits.queue.mean_ns, waits.prefill.mean_ns) == (50 * MS, 50 * MS)
    assert waits.ttft_mean_ns == round((64 * 120 + 2 * 100) / 66 * MS)
    assert waits.rest_mean_ns == waits.ttft_mean_ns - 100 * MS


def test_a_rest_below_zero_is_shown_as_it_is() -> None:
    """Clocks differ: nothing is clipped, and the sum still holds."""
    waits = measured(idle_after=reading(90 * S, 166, 10.3, 19.3))
    assert waits.rest_mean_ns is not None and waits.rest_mean_ns < 0


def test_a_sample_between_tells_the_warm_up_apart() -> None:
    """A sample in which the histograms have grown by just the warm-ups is the reading that the means begin at."""
    between = reading(2 * S, 102, 7.1, 9.1)
    waits = measured(samples=[reading(S, 101, 7.05, 9.0), ServerSample(2, error="down"), between])
    assert (waits.n, waits.unmeasured) == (64, 0)
    assert waits.queue is not None and waits.queue.mean_ns == pytest.approx(50 * MS, abs=1)
    assert waits.ttft_mean_ns == 120 * MS


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"idle_before": None}, "not seen idle"),
        ({"idle_after": None}, "not seen idle"),
        ({"idle_after": ServerSample(9, 0, 0)}, "no histograms"),
        ({"idle_after": reading(9, 167, 10.3, 12.3)}, "not all of that is ours"),
        ({"idle_after": reading(9, 165, 10.3, 12.3)}, "not drained"),
        ({"idle_after": reading(9, 20, 1.0, 1.0)}, "not drained"),
    ],
)
def test_what_is_not_ours_alone_is_null_with_its_reason(more: dict[str, Any], words: str) -> None:
    """Traffic of others, a trial that was not drained, a server that began anew: no parts, and why."""
    waits = measured(**more)
    assert (waits.source, waits.queue, waits.prefill, waits.rest_mean_ns) == ("none", None, None, None)
    assert words in waits.reason


def test_without_histograms_the_baseline_gives_an_estimate() -> None:
    """The plan holds what a request alone takes; the estimate has its range and is called one."""
    given = case(idle_after=ServerSample(9, 0, 0))
    plan = structs.replace(given.plan, alone_ttft_ns=(60.0 * MS, 70.0 * MS, 75.0 * MS))
    waits = measure_waits(structs.replace(given, plan=plan))
    assert waits is not None and waits.source == "estimated" and waits.estimate is not None
    assert (waits.n, waits.queue) == (64, None)
    assert (waits.estimate.low_ns, waits.estimate.mean_ns, waits.estimate.high_ns) == (
        45 * MS,
        50 * MS,
        60 * MS,
    )


def failed(number: int) -> list[RequestRow]:
    """Return the rows with `number` of the last measured ones cut before their first output."""
    rows = closed_loop(4, 64, ttft=lambda _: 120 * MS)
    return [
        structs.replace(row, outcome="unfinished", first_output_ns=None, last_output_ns=None)
        if row.index >= 66 - number
        else row
        for row in rows
    ]


def test_requests_that_did_not_finish_are_missing_and_counted() -> None:
    """vLLM times a request when it finishes: the others are no part of it, and ours are compared without them."""
    waits = measure_waits(structs.replace(case(), rows=failed(3), idle_after=reading(9, 163, 10.3, 12.3)))
    assert waits is not None and (waits.n, waits.unobserved) == (63, 3)
    assert waits.rest_mean_ns is not None


def test_a_load_that_was_cut_before_any_request_ended_has_no_parts() -> None:
    """Only the warm-up was timed, and a sample tells it apart: no member, no mean, and nothing is divided by none."""
    between = reading(2 * S, 102, 7.1, 9.1)
    given = case(idle_after=reading(90 * S, 102, 7.1, 9.1), samples=[between])
    waits = measure_waits(structs.replace(given, rows=failed(64)))
    assert waits is not None and (waits.n, waits.unobserved) == (0, 64)
    assert (waits.queue, waits.prefill, waits.ttft_mean_ns, waits.rest_mean_ns) == (None, None, None, None)


def test_a_queue_that_was_timed_for_more_than_finished_leaves_no_rest() -> None:
    """SGLang times the queue of requests that never end well: means of its own, not compared with ours."""
    after = ServerSample(9, 0, 0, queue_s=(10.3, 165), prefill_s=(12.3, 164))
    waits = measure_waits(structs.replace(case(), rows=failed(3), idle_after=after))
    assert waits is not None and waits.source == "server" and waits.rest_mean_ns is None
    assert waits.queue is not None and waits.queue.n == 65 and "ended well" in waits.reason


def test_buckets_that_do_not_fit_their_count_give_no_quantiles() -> None:
    """Edges that changed, a bucket that fell, a count of another reading: means stay, intervals are null."""
    good = Histograms(queue=Histogram(7.0, 100, ((0.1, 50), (1.0, 90))))
    for bad in (
        Histogram(10.3, 166, ((0.2, 80), (1.0, 150))),
        Histogram(10.3, 166, ((0.1, 49), (1.0, 150))),
        Histogram(10.3, 166, ((0.1, 90), (1.0, 110))),
        Histogram(10.3, 160, ((0.1, 80), (1.0, 150))),
    ):
        waits = measured(histograms_before=good, histograms_after=Histograms(queue=bad))
        assert waits.queue is not None and waits.queue.p50 is None and waits.queue.mean_ns == 50 * MS
    fine = Histograms(queue=Histogram(10.3, 166, ((0.1, 110), (1.0, 150))))
    waits = measured(histograms_before=good, histograms_after=fine)
    assert waits.queue is not None and waits.queue.p50 == Interval(0.0, 0.1 * S)
    # Sixty of 66 are at or below a second; the warm-ups are among these, and 58 of 64 do not reach the p95.
    assert waits.queue.p95 == Interval(1.0 * S, None)


def test_waits_survive_json() -> None:
    """Null is null, and everything comes back."""
    waits = measured()
    assert msgspec.json.decode(msgspec.json.encode(waits), type=Waits) == waits
