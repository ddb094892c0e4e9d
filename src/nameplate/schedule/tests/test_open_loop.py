"""Open loops: pure functions of seed and offset, of the stated rate and dispersion, exact to the nanosecond."""

from __future__ import annotations

from itertools import islice, pairwise
from math import exp, isqrt, lgamma, log, sqrt
from statistics import fmean, pvariance

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nameplate.contract.errors import CallerError
from nameplate.schedule.arrival import Constant, Gamma, Poisson, Process, Ramp, Step, Steps, Trace
from nameplate.schedule.closed_loop import ClosedLoop
from nameplate.schedule.counter import key_of
from nameplate.schedule.gaps import UNIT, Even, Exponential, GammaGaps
from nameplate.schedule.open_loop import OpenLoop
from nameplate.schedule.schedule import Schedule
from nameplate.schedule.streams import Streams

S = 10**9
seeds = st.integers(-(2**70), 2**70)
rates = st.floats(0.01, 5000)
shapes = st.floats(0.05, 50)
gaps = st.one_of(st.just(Even()), st.just(Exponential()), st.builds(GammaGaps, shapes))
steps = st.lists(st.builds(Step, rates | st.just(0.0), st.integers(1, 100 * S)), min_size=1, max_size=4)
processes = st.one_of(
    st.builds(Constant, rates),
    st.builds(Poisson, rates),
    st.builds(Gamma, rates, shapes),
    st.builds(Ramp, rates | st.just(0.0), rates, st.integers(1, 100 * S), gaps),
    st.builds(Ramp, rates, rates | st.just(0.0), st.integers(1, 100 * S), gaps),
    st.builds(Steps, steps.filter(lambda some: any(step.rate for step in some)).map(tuple), gaps),
    st.lists(st.integers(0, 10**15), max_size=300).map(lambda times: Trace.of(sorted(times))),
)
loops = st.builds(
    OpenLoop,
    process=processes,
    seed=seeds,
    requests=st.integers(0, 400),
    duration_ns=st.none() | st.integers(0, 60 * S),
)


def times(loop: OpenLoop) -> list[int]:
    """Return all due times, asked for one by one."""
    found: list[int] = []
    while (due := loop.due_ns(len(found))) is not None:
        found.append(due)
    return found


def long(process: Process, requests: int = 12_000, seed: int = 1) -> list[int]:
    """Return the times of a long plan."""
    return [due for _, due in OpenLoop(process=process, seed=seed, requests=requests).arrivals()]


def gap_seconds(process: Process, seed: int = 1) -> list[float]:
    """Return the gaps of a long plan."""
    return [(after - before) / S for before, after in pairwise(long(process, seed=seed))]


@settings(max_examples=40, deadline=None)
@given(loops)
def test_times_do_not_fall_and_keep_their_bounds(loop: OpenLoop) -> None:
    """Due times do not fall, lie before the duration, and are as many as told, none before and none after them."""
    found = times(loop)
    assert all(before <= after for before, after in pairwise(found))
    assert all(due >= 0 and (loop.duration_ns is None or due < loop.duration_ns) for due in found)
    assert loop.prompts == len(found) <= (loop.requests or 0)
    assert all(
        loop.has(offset) == (0 <= offset < len(found)) for offset in (-1, 0, len(found) - 1, len(found))
    )
    assert loop.slots is None and loop.due_ns(-1) is None and loop.due_ns(10**9) is None


@settings(max_examples=40, deadline=None)
@given(loop=loops, offsets=st.lists(st.integers(-2, 402) | st.just(9_999), max_size=30))
def test_any_order_of_asking_gives_the_same(loop: OpenLoop, offsets: list[int]) -> None:
    """Walked, asked one by one, asked at random, counted first or never: the times are the same."""
    walked = [due for _, due in loop.arrivals()]
    assert times(loop) == walked
    fresh = msgspec.structs.replace(loop)
    for offset in offsets:
        expected = walked[offset] if 0 <= offset < len(walked) else None
        assert fresh.due_ns(offset) == expected and fresh.has(offset) == (expected is not None)
    assert msgspec.structs.replace(loop).prompts == fresh.prompts == len(walked)


@settings(max_examples=40, deadline=None)
@given(loop=loops, fewer=st.integers(0, 400), shorter=st.integers(0, 60 * S))
def test_longer_plans_begin_like_shorter_ones(loop: OpenLoop, fewer: int, shorter: int) -> None:
    """A plan that is bounded earlier, by number or by time, is the beginning of the longer one."""
    whole = times(loop)
    fewer = min(fewer, loop.requests or 0)
    assert times(msgspec.structs.replace(loop, requests=fewer)) == whole[:fewer]
    shorter = min(shorter, 60 * S if loop.duration_ns is None else loop.duration_ns)
    kept = times(msgspec.structs.replace(loop, duration_ns=shorter))
    assert kept == [due for due in whole if due < shorter]


@settings(max_examples=40, deadline=None)
@given(loop=loops, workers=st.integers(1, 9))
def test_shards_are_the_whole(loop: OpenLoop, workers: int) -> None:
    """The shares of any number of workers make up the very plan of one."""
    shares = [list(loop.arrivals(worker, workers)) for worker in range(workers)]
    assert all(offset % workers == worker for worker, share in enumerate(shares) for offset, _ in share)
    assert sorted(pair for share in shares for pair in share) == list(enumerate(times(loop)))


@settings(max_examples=40, deadline=None)
@given(loop=loops)
def test_a_plan_survives_being_written_down(loop: OpenLoop) -> None:
    """Sent as JSON, and beside the other schedules, a plan is the same plan, and what it remembers is no part of it."""
    times(loop)
    read = msgspec.json.decode(msgspec.json.encode(loop), type=ClosedLoop | Streams | OpenLoop)
    assert read == loop and hash(read) == hash(loop) and isinstance(read, OpenLoop)
    assert times(read) == times(loop)


def test_it_is_a_schedule() -> None:
    """An open loop answers what every schedule answers: all its requests are steady, each with its own prompt."""
    loop: Schedule = OpenLoop(process=Constant(2.0), requests=4)
    assert [loop.due_ns(i) for i in range(5)] == [0, S // 2, S, 3 * S // 2, None]
    assert loop.slots is None and loop.prompts == 4
    assert {loop.part(i) for i in range(4)} == {"steady"} and [loop.prompt(i) for i in range(4)] == [
        0,
        1,
        2,
        3,
    ]


@settings(deadline=None)
@given(seed=seeds, process=st.sampled_from([Poisson(5.0), Gamma(5.0, 0.5), Ramp(1.0, 9.0, S)]))
def test_seeds_differ(seed: int, process: Process) -> None:
    """Another seed is another schedule; the same seed is the same."""
    one, other = (OpenLoop(process=process, seed=number, requests=20) for number in (seed, seed + 1))
    assert times(one) != times(other)
    assert times(one) == times(OpenLoop(process=process, seed=seed, requests=20))


def test_a_schedule_is_the_same_on_every_machine_and_in_every_version() -> None:
    """The first times of some plans to the nanosecond: who changes them makes recorded runs unrepeatable."""
    assert long(Poisson(10.0), 4) == POISSON
    assert long(Gamma(10.0, 0.5), 4) == GAMMA
    assert long(Ramp(0.0, 10.0, 10 * S), 4) == RAMP


@pytest.mark.parametrize("rate", [0.1, 1.0, 2.5, 7.0, 1000.0, 0.003])
def test_constant_gaps_are_exact(rate: float) -> None:
    """Offset n is due at n / rate, rounded down to the nanosecond, with the rate read as a decimal number."""
    whole = round(rate * 1000)
    for offset in (0, 1, 2, 3, 999, 10**6, 10**7, 10**7 + 1):
        due = OpenLoop(process=Constant(rate), requests=10**8).due_ns(offset)
        assert due == offset * 1000 * S // whole


def test_a_constant_rate_gives_its_count() -> None:
    """Over a duration come rate x duration requests, and one more only for a begun gap."""
    assert OpenLoop(process=Constant(4.0), duration_ns=10 * S).prompts == 40
    assert OpenLoop(process=Constant(4.0), duration_ns=10 * S + 1).prompts == 41
    assert OpenLoop(process=Constant(1000.0), duration_ns=10_000 * S).prompts == 10_000_000


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize(
    ("process", "squared_variation"),
    [
        (Poisson(40.0), 1.0),
        (Gamma(40.0, 1.0), 1.0),
        (Gamma(40.0, 0.25), 4.0),
        (Gamma(40.0, 4.0), 0.25),
        (Gamma(40.0, 30.0), 1 / 30),
    ],
)
def test_mean_and_variation_are_as_stated(process: Process, squared_variation: float, seed: int) -> None:
    """The mean gap is 1 / rate and its squared coefficient of variation 1 / burstiness, within five deviations."""
    found = gap_seconds(process, seed)
    n = len(found)
    assert abs(fmean(found) * 40 - 1) < 5 * sqrt(squared_variation / n)
    # The kurtosis of a gamma variable is 3 + 6 / shape, which gives the deviation of a variance.
    deviation = squared_variation * sqrt((2 + 6 * squared_variation) / n)
    assert abs(pvariance(found) * 1600 - squared_variation) < 5 * deviation


@pytest.mark.parametrize("burstiness", [0.05, 0.25, 0.9, 1.0, 1.5, 8.0])
def test_gaps_have_the_gamma_distribution(burstiness: float) -> None:
    """The largest distance from the distribution function is within the Kolmogorov bound at 1 in 10,000."""
    gap, key = GammaGaps(burstiness).gap, key_of(1, "test")
    n = 15_000
    ordered = sorted(gap(key, index) / UNIT * burstiness for index in range(n))
    # Of the burstiest process a seventh of the gaps is below what a double resolves beside 1, and so is 0.
    distances = [
        abs((rank + 0.5) / n - lower_gamma(burstiness, x)) for rank, x in enumerate(ordered) if x > 1e-9
    ]
    assert max(distances) < 2.23 / sqrt(n)


def test_exponential_gaps_are_exponential() -> None:
    """Poisson gaps pass the same test, and neighbours are uncorrelated."""
    found = gap_seconds(Poisson(40.0))
    n = len(found)
    ordered = sorted(gap * 40 for gap in found)
    assert max(abs((rank + 0.5) / n - (1 - exp(-x))) for rank, x in enumerate(ordered)) < 2.23 / sqrt(n)
    mean = fmean(found)
    correlation = fmean((a - mean) * (b - mean) for a, b in pairwise(found)) / pvariance(found)
    assert abs(correlation) < 5 / sqrt(n)


def test_counts_of_a_poisson_process_are_dispersed_like_one() -> None:
    """The variance of the counts a second equals their mean, also over workers' shares put together."""
    counts: dict[int, int] = {}
    for due in long(Poisson(20.0)):
        counts[due // S] = counts.get(due // S, 0) + 1
    full = [counts.get(second, 0) for second in range(max(counts))]
    dispersion = pvariance(full) / fmean(full)
    assert abs(dispersion - 1) < 5 * sqrt(2 / len(full))


@pytest.mark.parametrize(
    "process",
    [
        Ramp(5.0, 500.0, 60 * S),
        Ramp(200.0, 0.0, 190 * S),
        Steps((Step(100.0, 60 * S), Step(0.0, 3600 * S), Step(300.0, 40 * S))),
    ],
)
def test_a_rate_that_varies_is_the_unit_process_in_another_time(process: Process) -> None:
    """Read through the expected count, ramps and steps have exponential gaps of mean 1."""
    loop = OpenLoop(process=process, seed=9, requests=12_000)
    reached = [float(loop.expected(due) or 0) for _, due in loop.arrivals()]
    n = len(reached)
    assert n > 10_000
    ordered = sorted(after - before for before, after in pairwise(reached))
    assert max(abs((rank + 0.5) / n - (1 - exp(-x))) for rank, x in enumerate(ordered)) < 2.23 / sqrt(n)
    assert abs(n - reached[-1]) < 5 * isqrt(n)


def test_nothing_arrives_in_a_pause() -> None:
    """In a step of rate 0 no request is due, at the start, between and at the end; steps end by themselves."""
    steps = (Step(0.0, 5 * S), Step(50.0, 4 * S), Step(0.0, 10 * S), Step(10.0, 2 * S), Step(0.0, S))
    for gap in (Even(), Exponential(), GammaGaps(0.3)):
        loop = OpenLoop(process=Steps(steps, gap), seed=4)
        found = times(loop)
        assert all(5 * S <= due < 9 * S or 19 * S <= due < 21 * S for due in found)
        assert loop.end_ns == 22 * S and loop.prompts == len(found) > 100
    assert loop.expected(9 * S) == loop.expected(19 * S) == 200
    even = times(OpenLoop(process=Steps(steps, Even())))
    assert (
        len(even) == 220 and even[0] == 5 * S and even[199:202] == [9 * S - S // 50, 19 * S, 19 * S + S // 10]
    )


def test_a_ramp_to_zero_ends() -> None:
    """Where the rate falls to 0 for good, the requests that remain never come, without a search for them."""
    loop = OpenLoop(process=Ramp(100.0, 0.0, 10 * S, Even()), requests=10**9)
    assert loop.prompts == 500 and not loop.has(500) and (loop.due_ns(499) or 0) < 10 * S


def test_traces_are_repeated() -> None:
    """Recorded times come as recorded, within the bounds; the seed has no part in it and there is no rate."""
    recorded = [0, 0, 5, 5 * S, 7 * S]
    trace = Trace.of(recorded)
    assert len(trace) == 5 and times(OpenLoop(process=trace, seed=3)) == recorded
    assert times(OpenLoop(process=trace, duration_ns=5 * S)) == recorded[:3]
    assert times(OpenLoop(process=trace, requests=2)) == [0, 0]
    assert OpenLoop(process=trace).prompts == 5 and OpenLoop(process=trace).expected(S) is None
    assert OpenLoop(process=Trace.of([])).prompts == 0


def test_sums_of_gaps_do_not_drift() -> None:
    """Sums of gaps are whole numbers: the last of many arrivals is where their exact sum puts it."""
    requests = 3000
    gap = Exponential()
    loop = OpenLoop(process=Poisson(1000.0), seed=5, requests=requests)
    key = key_of(5, "arrivals")
    exact = sum(gap.gap(key, index) for index in range(requests))
    assert loop.due_ns(requests - 1) == exact * S // (1000 << 52)


def test_each_gap_is_drawn_once_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Asked in order a gap is drawn once; whether an earlier request exists costs nothing, when it was due little."""
    drawn: list[int] = []
    gap = Exponential.gap

    def counted(self: Exponential, key: int, index: int) -> int:
        drawn.append(index)
        return gap(self, key, index)

    monkeypatch.setattr(Exponential, "gap", counted)
    loop = OpenLoop(process=Poisson(1000.0), seed=6, duration_ns=10 * S)
    first = [loop.due_ns(offset) for offset in range(3000)]
    assert all(loop.has(offset) for offset in range(3000)) and len(drawn) == 3000
    assert loop.due_ns(3000) is not None and loop.due_ns(1023) == first[1023]
    assert len(drawn) == 3001 + 255
    assert loop.due_ns(3001) is not None and len(drawn) == 3002 + 255
    assert [loop.due_ns(offset) for offset in range(3000)] == first and len(drawn) < 6300
    assert loop.prompts > 9000 and len(drawn) < 6300 + 10_500 + 14 * 255


@pytest.mark.parametrize(
    "bad",
    [
        lambda: OpenLoop(process=Poisson(1.0)),
        lambda: OpenLoop(process=Poisson(1.0), requests=-1),
        lambda: OpenLoop(process=Poisson(1.0), duration_ns=-1),
        lambda: Poisson(0.0),
        lambda: Poisson(float("nan")),
        lambda: Constant(float("inf")),
        lambda: Constant(-1.0),
        lambda: Constant(1e9),
        lambda: Gamma(1.0, 0.0),
        lambda: Gamma(1.0, float("nan")),
        lambda: Ramp(0.0, 0.0, S),
        lambda: Ramp(0.0, 1.0, 0),
        lambda: Ramp(0.0, 1.0, S, GammaGaps(-1.0)),
        lambda: Steps(()),
        lambda: Steps((Step(0.0, S),)),
        lambda: Steps((Step(1.0, 0),)),
        lambda: Trace.of([3, 2]),
        lambda: Trace.of([-1]),
        lambda: Trace.of([2**63]),
        lambda: Trace(b"1234567"),
    ],
)
def test_what_cannot_be_offered_is_refused(bad: object) -> None:
    """Rates, shapes, bounds and times that make no schedule are the caller's mistake, said in words."""
    with pytest.raises(CallerError):
        bad()  # type: ignore[operator]


def test_a_share_that_does_not_exist_is_refused() -> None:
    """Worker w of W is from 0 to W - 1."""
    with pytest.raises(ValueError):
        next(OpenLoop(process=Constant(1.0), requests=1).arrivals(2, 2))
    assert list(islice(OpenLoop(process=Constant(1.0), requests=3).arrivals(1, 2), 5)) == [(1, S)]


def lower_gamma(shape: float, x: float) -> float:
    """Return the distribution function of a gamma variable: the series of Abramowitz and Stegun 6.5.29."""
    if x <= 0:
        return 0.0
    term = total = 1 / shape
    n = 0
    while term > total * 1e-13:
        n += 1
        term *= x / (shape + n)
        total += term
    return min(1.0, total * exp(-x + shape * log(x) - lgamma(shape)))


POISSON: list[int] = [42763610, 248896594, 327144880, 466489771]
GAMMA: list[int] = [117014760, 118825862, 193629874, 209169159]
RAMP: list[int] = [924809280, 2231127943, 2557908833, 3054471382]
