"""What the GPUs did in a window: a pure function of their samples.

Energy is the difference of the GPU's own counter between the window's two ends, read between samples on a straight
line; without a counter it is mean power x time, and the value says which. Both need samples around most of the window:
where they cover less than 80% of it the energy is unknown, and what is missing of the rest is taken at the mean rate of
what was covered.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Literal

from msgspec import Struct, structs

from nameplate.hosts.place import Which
from nameplate.hosts.sample import GpuSample

# A reading this far from the window's end no longer speaks for it: three readings at the default interval.
REACH_NS = 3 * 10**9
LEAST_COVERED = 0.8
# A counter that stands still this long while power is drawn is broken, as some drivers' have been; a working one moves
# every 10 to 100 ms.
_COUNTER_MOVES_NS = 10**9
_ERRORS_SHOWN = 5

EnergySource = Literal["counter", "power", "mixed"]


class ThrottleShare(Struct, frozen=True):
    """Hold in which share of the samples that told their reasons this one was among them."""

    reason: str
    share: float


class GpuUse(Struct, frozen=True, kw_only=True):
    """Hold what one GPU did in the window, or all of them; None is unknown. Power in watts, energy in joules.

    For all GPUs: utilisation and clocks over all their samples; memory, power and energy are sums, of maxima that need
    not coincide for memory, and None as soon as one GPU's is. `index` is None there. `samples` are those that read
    something, `failed` those with an error.
    """

    index: int | None = None
    uuid: str | None = None
    samples: int = 0
    failed: int = 0
    utilisation_mean_percent: float | None = None
    utilisation_max_percent: int | None = None
    memory_max_bytes: int | None = None
    power_mean_w: float | None = None
    energy_j: float | None = None
    energy_source: EnergySource | None = None
    temperature_max_c: int | None = None
    sm_clock_min_mhz: int | None = None
    sm_clock_mean_mhz: float | None = None
    memory_clock_min_mhz: int | None = None
    memory_clock_mean_mhz: float | None = None
    throttle: tuple[ThrottleShare, ...] = ()


class GpuSummary(Struct, frozen=True, kw_only=True):
    """Hold the window [begin_ns, end_ns) on one host. `scope` says in words which GPUs the sums are of."""

    which: Which
    begin_ns: int
    end_ns: int
    all_gpus: GpuUse
    gpus: tuple[GpuUse, ...]
    scope: str
    errors: tuple[str, ...] = ()

    def energy_per_token_j(self, tokens: int | None) -> float | None:
        """Return joules a token over all GPUs; None where unknown, and on a host that is not the server's."""
        energy_j = self.all_gpus.energy_j
        if self.which != "server" or energy_j is None or tokens is None or tokens <= 0:
            return None
        return energy_j / tokens


def summarise(
    samples: Iterable[GpuSample], begin_ns: int, end_ns: int, which: Which, *, reach_ns: int = REACH_NS
) -> GpuSummary:
    """Summarise one host's samples over [begin_ns, end_ns); those outside serve the energy at its two ends only.

    `reach_ns` is how far a reading speaks for its surroundings: for an interval of more than a second, three intervals.
    """
    by_gpu: dict[int, list[GpuSample]] = defaultdict(list)
    errors: Counter[str] = Counter()
    inside_all: list[GpuSample] = []
    for sample in sorted(samples, key=lambda sample: sample.t_ns):
        if begin_ns <= sample.t_ns < end_ns:
            inside_all.append(sample)
            if sample.error is not None:
                errors[sample.error] += 1
        if sample.index is not None and begin_ns - reach_ns <= sample.t_ns <= end_ns + reach_ns:
            by_gpu[sample.index].append(sample)
    gpus = tuple(_one(index, by_gpu[index], begin_ns, end_ns, reach_ns) for index in sorted(by_gpu))
    return GpuSummary(
        which=which,
        begin_ns=begin_ns,
        end_ns=end_ns,
        all_gpus=_together(gpus, inside_all),
        gpus=gpus,
        scope=_scope(len(gpus), which),
        errors=tuple(text for text, _ in errors.most_common(_ERRORS_SHOWN)),
    )


def _scope(count: int, which: Which) -> str:
    host = "the server's host" if which == "server" else "the client's host, not known to be the server's"
    if count == 0:
        return f"no GPU of {host} was sampled"
    if count == 1:
        return f"the one GPU that was seen on {host}"
    return f"all {count} GPUs of {host}, whether the server uses them or not"


def _one(index: int, readings: Sequence[GpuSample], begin_ns: int, end_ns: int, reach_ns: int) -> GpuUse:
    inside = [sample for sample in readings if begin_ns <= sample.t_ns < end_ns]
    power_mw = _mean([sample.power_milliwatts for sample in inside])
    source: EnergySource | None = "counter"
    energy_j = _counter_energy_j(readings, begin_ns, end_ns)
    if energy_j == 0 and power_mw and end_ns - begin_ns >= _COUNTER_MOVES_NS:
        energy_j = None
    if energy_j is None and power_mw is not None and _watched(readings, begin_ns, end_ns, reach_ns):
        energy_j, source = power_mw * (end_ns - begin_ns) / 1e12, "power"
    return structs.replace(
        _readings(inside),
        index=index,
        uuid=next((sample.uuid for sample in readings if sample.uuid is not None), None),
        memory_max_bytes=_most([sample.memory_used_bytes for sample in inside]),
        power_mean_w=None if power_mw is None else power_mw / 1000,
        energy_j=energy_j,
        energy_source=None if energy_j is None else source,
    )


def _together(gpus: Sequence[GpuUse], inside: Sequence[GpuSample]) -> GpuUse:
    sources = {gpu.energy_source for gpu in gpus}
    energy_j = _total([gpu.energy_j for gpu in gpus])
    memory = _total([gpu.memory_max_bytes for gpu in gpus])
    return structs.replace(
        _readings(inside),
        memory_max_bytes=None if memory is None else int(memory),
        power_mean_w=_total([gpu.power_mean_w for gpu in gpus]),
        energy_j=energy_j,
        energy_source=None if energy_j is None else sources.pop() if len(sources) == 1 else "mixed",
    )


def _readings(inside: Sequence[GpuSample]) -> GpuUse:
    """Summarise what is no sum over GPUs."""
    use = [sample.utilisation_percent for sample in inside]
    sm = [sample.sm_clock_mhz for sample in inside]
    memory = [sample.memory_clock_mhz for sample in inside]
    told = [sample.throttle_reasons for sample in inside if sample.throttle_reasons is not None]
    reasons = Counter(reason for names in told for reason in set(names))
    return GpuUse(
        samples=sum(sample.error is None for sample in inside),
        failed=sum(sample.error is not None for sample in inside),
        utilisation_mean_percent=_mean(use),
        utilisation_max_percent=_most(use),
        temperature_max_c=_most([sample.temperature_c for sample in inside]),
        sm_clock_min_mhz=_least(sm),
        sm_clock_mean_mhz=_mean(sm),
        memory_clock_min_mhz=_least(memory),
        memory_clock_mean_mhz=_mean(memory),
        throttle=tuple(
            ThrottleShare(reason, times / len(told))
            for reason, times in sorted(reasons.items(), key=lambda item: (-item[1], item[0]))
        ),
    )


def _counter_energy_j(readings: Sequence[GpuSample], begin_ns: int, end_ns: int) -> float | None:
    """Return the counter's rise over the window; None where it fell (a driver was reloaded) or covers too little."""
    points = [
        (sample.t_ns, sample.energy_millijoules)
        for sample in readings
        if sample.energy_millijoules is not None
    ]
    before = [point for point in points if point[0] <= begin_ns][-1:]
    after = [point for point in points if point[0] >= end_ns][:1]
    points = before + [point for point in points if begin_ns < point[0] < end_ns] + after
    if len(points) < 2 or any(later[1] < earlier[1] for earlier, later in pairwise(points)):
        return None
    from_ns, to_ns = max(begin_ns, points[0][0]), min(end_ns, points[-1][0])
    window_ns, covered_ns = end_ns - begin_ns, to_ns - from_ns
    if covered_ns <= 0 or covered_ns < LEAST_COVERED * window_ns:
        return None
    rise_mj = _between(points, to_ns) - _between(points, from_ns)
    return rise_mj * window_ns / covered_ns / 1000


def _between(points: Sequence[tuple[int, int]], t_ns: int) -> float:
    """Return the counter at a time within the points, above the first of them, on a straight line."""
    base = points[0][1]
    for (from_ns, low), (to_ns, high) in pairwise(points):
        if t_ns <= to_ns and to_ns > from_ns:
            return low - base + (high - low) * (t_ns - from_ns) / (to_ns - from_ns)
    return points[-1][1] - base


def _watched(readings: Sequence[GpuSample], begin_ns: int, end_ns: int, reach_ns: int) -> bool:
    """Tell whether readings of the power lie closely enough over most of the window for their mean to be its own."""
    times = [sample.t_ns for sample in readings if sample.power_milliwatts is not None]
    covered_ns = sum(
        max(0, min(later, end_ns) - max(earlier, begin_ns))
        for earlier, later in pairwise(times)
        if later - earlier <= reach_ns
    )
    return end_ns > begin_ns and covered_ns >= LEAST_COVERED * (end_ns - begin_ns)


def _known(values: Sequence[int | None]) -> list[int]:
    return [value for value in values if value is not None]


def _mean(values: Sequence[int | None]) -> float | None:
    known = _known(values)
    return sum(known) / len(known) if known else None


def _most(values: Sequence[int | None]) -> int | None:
    return max(_known(values), default=None)


def _least(values: Sequence[int | None]) -> int | None:
    return min(_known(values), default=None)


def _total(values: Sequence[float | None]) -> float | None:
    """Add up; unknown as soon as one is, and where there is nothing."""
    known = [value for value in values if value is not None]
    return sum(known) if known and len(known) == len(values) else None
