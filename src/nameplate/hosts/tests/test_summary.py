"""What the GPUs did in a window."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from nameplate.hosts.sample import GpuSample
from nameplate.hosts.summary import summarise

S = 10**9


def steady(
    seconds: range, watts: int = 300, index: int = 0, *, counter: bool = True, offset_ns: int = 0
) -> list[GpuSample]:
    """Return a sample a second of a GPU that draws a steady power."""
    return [
        GpuSample(
            t_ns=second * S + offset_ns,
            index=index,
            uuid=f"GPU-{index}",
            utilisation_percent=90 + second % 2 * 10,
            memory_used_bytes=1000 + second,
            power_milliwatts=watts * 1000,
            temperature_c=60 + second,
            sm_clock_mhz=1980 if second % 4 else 1200,
            memory_clock_mhz=2619,
            throttle_reasons=("sw_power_cap",) if second % 4 == 0 else (),
            energy_millijoules=10**12 + (second * S + offset_ns) * watts // 10**6 if counter else None,
        )
        for second in seconds
    ]


def test_one_gpu() -> None:
    """Each figure is of the samples in the half-open window, and the counter gives the energy."""
    summary = summarise(steady(range(20)), 4 * S, 12 * S, "server")
    (gpu,) = summary.gpus
    assert (gpu.samples, gpu.failed, gpu.uuid) == (8, 0, "GPU-0")
    assert (gpu.utilisation_mean_percent, gpu.utilisation_max_percent) == (95, 100)
    assert (gpu.memory_max_bytes, gpu.temperature_max_c) == (1011, 71)
    assert (gpu.sm_clock_min_mhz, gpu.sm_clock_mean_mhz) == (1200, (2 * 1200 + 6 * 1980) / 8)
    assert (gpu.memory_clock_min_mhz, gpu.memory_clock_mean_mhz) == (2619, 2619)
    assert [(share.reason, share.share) for share in gpu.throttle] == [("sw_power_cap", 0.25)]
    assert (gpu.power_mean_w, gpu.energy_j, gpu.energy_source) == (300, 2400, "counter")
    assert summary.energy_per_token_j(1200) == 2.0
    assert summary.scope == "the one GPU that was seen on the server's host"


def test_several_gpus_are_summed_and_said() -> None:
    """Memory, power and energy are sums over all GPUs, whether the server uses them or not, and that is said."""
    samples = steady(range(20)) + steady(range(20), 50, 1)
    summary = summarise(samples, 4 * S, 12 * S, "server")
    whole = summary.all_gpus
    assert (whole.power_mean_w, whole.energy_j, whole.memory_max_bytes) == (350, 2800, 2022)
    assert (whole.samples, whole.index) == (16, None)
    assert summary.scope == "all 2 GPUs of the server's host, whether the server uses them or not"


def test_mean_power_stands_in_for_the_counter() -> None:
    """Without a counter energy is mean power x time, and says so; with one of each it is mixed."""
    plain = steady(range(20), counter=False)
    assert summarise(plain, 4 * S, 12 * S, "server").gpus[0].energy_source == "power"
    summary = summarise(plain + steady(range(20), 100, 1), 4 * S, 12 * S, "server")
    assert (summary.all_gpus.energy_j, summary.all_gpus.energy_source) == (3200, "mixed")


def test_counter_that_fell_is_not_used() -> None:
    """A counter that starts anew in the window (a driver was reloaded) gives way to mean power."""
    samples = steady(range(20))
    samples = [
        structs.replace(sample, energy_millijoules=5) if sample.t_ns >= 8 * S else sample
        for sample in samples
    ]
    gpu = summarise(samples, 4 * S, 12 * S, "server").gpus[0]
    assert (gpu.energy_j, gpu.energy_source) == (2400, "power")


def test_counter_that_stands_still_is_not_used() -> None:
    """A counter that does not move while power is drawn is broken, and gives way to mean power."""
    samples = [structs.replace(sample, energy_millijoules=7) for sample in steady(range(20))]
    gpu = summarise(samples, 4 * S, 12 * S, "server").gpus[0]
    assert (gpu.energy_j, gpu.energy_source) == (2400, "power")


def test_window_between_two_samples() -> None:
    """A window that holds no sample still has its share of the counter, and nothing else."""
    gpu = summarise(steady(range(20)), 4 * S + S // 4, 4 * S + S // 2, "server").gpus[0]
    assert gpu.energy_j == pytest.approx(75)
    assert (gpu.samples, gpu.power_mean_w, gpu.utilisation_mean_percent, gpu.throttle) == (0, None, None, ())


@pytest.mark.parametrize("counter", [True, False])
def test_half_a_window_is_no_energy(counter: bool) -> None:
    """Samples over half of the window do not tell the energy of all of it."""
    gpu = summarise(steady(range(4, 9), counter=counter), 4 * S, 12 * S, "server").gpus[0]
    assert (gpu.energy_j, gpu.energy_source, gpu.power_mean_w) == (None, None, 300)


@pytest.mark.parametrize("counter", [True, False])
def test_most_of_a_window_is_extended(counter: bool) -> None:
    """Samples over nearly all of the window are extended at their mean rate."""
    gpu = summarise(steady(range(5, 12), counter=counter), 5 * S, 12 * S, "server").gpus[0]
    assert gpu.energy_j == pytest.approx(2100)


def test_a_lost_gpu_makes_the_sum_unknown() -> None:
    """One GPU that told nothing is counted as failed, and the sum over all is unknown rather than too small."""
    lost = [GpuSample(t_ns=second * S, index=1, error="GPU is lost") for second in range(20)]
    summary = summarise(steady(range(20)) + lost, 4 * S, 12 * S, "server")
    assert [gpu.energy_j for gpu in summary.gpus] == [2400, None]
    assert (summary.all_gpus.energy_j, summary.all_gpus.power_mean_w) == (None, None)
    assert (summary.all_gpus.samples, summary.all_gpus.failed) == (8, 8)
    assert summary.errors == ("GPU is lost",)
    assert summary.energy_per_token_j(100) is None


def test_nothing_sampled() -> None:
    """Without samples everything is null, and why is kept."""
    summary = summarise([GpuSample(t_ns=5 * S, error="pynvml is not installed")], 4 * S, 12 * S, "server")
    assert summary.gpus == () and summary.all_gpus.energy_j is None
    assert (summary.all_gpus.samples, summary.all_gpus.failed) == (0, 1)
    assert summary.errors == ("pynvml is not installed",)
    assert summary.scope == "no GPU of the server's host was sampled"


def test_client_has_no_energy_per_token() -> None:
    """The energy of the client's GPUs is never told as the tokens'."""
    summary = summarise(steady(range(20)), 4 * S, 12 * S, "client")
    assert summary.all_gpus.energy_j == 2400
    assert summary.energy_per_token_j(1200) is None
    assert "not known to be the server's" in summary.scope


@pytest.mark.parametrize("tokens", [None, 0, -1])
def test_no_tokens_no_energy_per_token(tokens: int | None) -> None:
    """Without tokens there is no figure, not an infinite one."""
    assert summarise(steady(range(20)), 4 * S, 12 * S, "server").energy_per_token_j(tokens) is None


def test_slow_sampling_needs_a_longer_reach() -> None:
    """Samples every ten seconds tell mean power only when the reach is stated to be longer."""
    slow = steady(range(0, 100, 10), counter=False)
    assert summarise(slow, 20 * S, 80 * S, "server").gpus[0].energy_j is None
    assert summarise(slow, 20 * S, 80 * S, "server", reach_ns=30 * S).gpus[0].energy_j == pytest.approx(18000)


COUNTS = st.none() | st.integers(0, 10**6)
SAMPLES = st.lists(
    st.builds(
        GpuSample,
        t_ns=st.integers(0, 30 * S),
        index=st.none() | st.integers(0, 2),
        utilisation_percent=st.none() | st.integers(0, 100),
        memory_used_bytes=COUNTS,
        power_milliwatts=COUNTS,
        sm_clock_mhz=COUNTS,
        energy_millijoules=COUNTS,
        throttle_reasons=st.none() | st.lists(st.sampled_from(["a", "b"]), max_size=3).map(tuple),
        error=st.none() | st.just("x"),
    ),
    max_size=30,
    unique_by=lambda sample: (sample.t_ns, sample.index),
)


@given(SAMPLES, st.integers(0, 30 * S), st.integers(-S, 30 * S), st.randoms(use_true_random=False))
def test_invariants(samples: list[GpuSample], begin_ns: int, length_ns: int, random: object) -> None:
    """Whatever was sampled: nothing raises, order does not matter, means lie below maxima, sums are sums or unknown."""
    end_ns = begin_ns + length_ns
    summary = summarise(samples, begin_ns, end_ns, "server")
    shuffled = list(samples)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert summarise(shuffled, begin_ns, end_ns, "server") == summary
    whole = summary.all_gpus
    assert whole.samples + whole.failed == sum(begin_ns <= sample.t_ns < end_ns for sample in samples)
    for use in (*summary.gpus, whole):
        assert (use.energy_j is None) == (use.energy_source is None)
        assert use.energy_j is None or use.energy_j >= 0
        assert all(0 < share.share <= 1 for share in use.throttle)
        if use.utilisation_mean_percent is not None:
            assert use.utilisation_mean_percent <= (use.utilisation_max_percent or 0) + 1e-9
        if use.sm_clock_mean_mhz is not None:
            assert (use.sm_clock_min_mhz or 0) <= use.sm_clock_mean_mhz + 1e-9
    energies = [gpu.energy_j for gpu in summary.gpus]
    if whole.energy_j is not None:
        assert whole.energy_j == pytest.approx(sum(energy or 0 for energy in energies))
        assert None not in energies


@given(
    st.integers(1, 1500),
    st.integers(0, S - 1),
    st.integers(5 * S, 20 * S),
    st.integers(S, 30 * S),
    st.booleans(),
)
def test_steady_power_is_told_whatever_the_phase(
    watts: int, offset_ns: int, begin_ns: int, length_ns: int, counter: bool
) -> None:
    """A steady draw of P watts over T seconds is P x T joules, wherever the samples fall."""
    samples = steady(range(60), watts, counter=counter, offset_ns=offset_ns)
    gpu = summarise(samples, begin_ns, begin_ns + length_ns, "server").gpus[0]
    assert gpu.energy_source == ("counter" if counter else "power")
    assert gpu.energy_j == pytest.approx(watts * length_ns / S, rel=1e-4, abs=0.01)


@given(
    st.lists(st.integers(0, 10**6), min_size=20, max_size=20),
    st.integers(0, 19 * S),
    st.integers(0, 19 * S),
    st.integers(0, 19 * S),
)
def test_windows_add_up(steps: list[int], one: int, two: int, three: int) -> None:
    """By the counter, the energies of two windows that follow each other are that of both together."""
    total = 0
    samples = []
    for second, step in enumerate(steps):
        total += step
        samples.append(GpuSample(t_ns=second * S, index=0, energy_millijoules=total))
    begin_ns, middle_ns, end_ns = sorted((one, two, three))
    parts = [
        summarise(samples, from_ns, to_ns, "server").gpus[0].energy_j or 0.0
        for from_ns, to_ns in ((begin_ns, middle_ns), (middle_ns, end_ns))
    ]
    both = summarise(samples, begin_ns, end_ns, "server").gpus[0].energy_j or 0.0
    assert sum(parts) == pytest.approx(both, rel=1e-6, abs=1e-6)
