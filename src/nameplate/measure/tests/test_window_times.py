"""Times of a window: means of what was observed between two samples, and nothing where nothing was."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from nameplate.engines.state import ServerSample
from nameplate.measure.from_disk import load_evidence
from nameplate.measure.tests.trials import MS, S
from nameplate.measure.window_times import MeanTime, WindowTimes, times_between, times_in
from nameplate.sim.app import App
from nameplate.sim.presets import DEMO
from nameplate.verify.tests.making import make_trial


def sample(t_ns: int, queue_s: float, count: int, error: str | None = None) -> ServerSample:
    return ServerSample(t_ns, queue_s=(queue_s, count), error=error)


def test_a_window_has_the_means_between_its_first_and_last_sample() -> None:
    """A failed scrape at an edge is passed over, and what the server does not tell is null."""
    held = [ServerSample(0, error="down"), sample(S, 2.0, 4), sample(2 * S, 2.5, 6), sample(3 * S, 5.0, 10)]
    assert times_in(held) == WindowTimes(span_ns=2 * S, queue=MeanTime(6, 500 * MS))


def test_nothing_observed_is_null() -> None:
    """No request finished, the histogram began anew, or there is one sample: no mean."""
    assert times_between(sample(0, 2.0, 4), sample(S, 2.0, 4)).queue is None
    assert times_between(sample(0, 2.0, 4), sample(S, 0.5, 1)).queue is None
    assert times_in([sample(0, 2.0, 4)]) is None


@given(st.lists(st.integers(0, 10**12), min_size=1, max_size=40), st.data())
def test_windows_that_meet_add_up_to_the_whole(times_ns: list[int], data: st.DataObject) -> None:
    """Cut anywhere, the sums of the two windows are those of both together, to a rounding a request."""
    cut = data.draw(st.integers(0, len(times_ns)))
    at = [
        sample(moment, sum(times_ns[:done]) / 1e9, done)
        for moment, done in enumerate((0, cut, len(times_ns)))
    ]
    parts = [times_between(at[0], at[1]).queue, times_between(at[1], at[2]).queue]
    total = sum(part.n * part.mean_ns for part in parts if part is not None)
    assert sum(part.n for part in parts if part is not None) == len(times_ns)
    assert abs(total - sum(times_ns)) <= 3 * len(times_ns) + sum(times_ns) * 1e-9


def test_a_real_window_tells_what_finished_in_it(tmp_path: Path) -> None:
    """Between two samples of a trial the means are of as many requests as the server finished there."""
    make_trial(tmp_path / "t", app=App(DEMO), shape="512/64", concurrency=10, requests=32)
    held = [one for one in load_evidence(tmp_path / "t").samples if one.finished is not None]
    found = times_in(held)
    assert found is not None and found.queue is not None and found.prefill is not None
    finished = [sum(count for _, count in one.finished or ()) for one in (held[0], held[-1])]
    assert found.queue.n == found.prefill.n == finished[1] - finished[0] > 0
    assert found.queue.mean_ns > 0
