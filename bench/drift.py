"""Measure the drift verdict on series of known truth: how often a steady soak is called anything else, and its power.

    python -m bench.drift [--runs 150] [--windows 12,24,96] [--phi 0,0.5,0.8]

A soak is eight series whose windows are a first-order process around a level; pure arithmetic, no server. The table of
`nameplate.verdict.drift` is what this prints.
"""

from __future__ import annotations

import argparse
import random
from collections import Counter
from collections.abc import Iterator

from nameplate.statistics.tests.noise import first_order
from nameplate.verdict.drift import Series, SeriesPoints, judge_drift

WINDOW_S = 300.0
# Level, and the noise of one window as a share of it.
LEVELS: dict[Series, tuple[float, float]] = {
    "ttft_p50": (2e9, 0.05),
    "ttft_p95": (3e9, 0.10),
    "itl_p50": (40e6, 0.02),
    "output_tokens_per_s": (1200.0, 0.03),
    "outstanding": (62.0, 0.0),
    "waiting": (40.0, 0.10),
    "kv_floor": (0.8, 0.05),
    "client_memory": (200e6, 0.005),
}
CHANGED: Series = "ttft_p50"


def soak(
    n: int, phi: float, draws: random.Random, *, scale: float = 1.0, ramp: float = 0.0, step: float = 0.0
) -> Iterator[SeriesPoints]:
    """Yield the series of one soak; the median TTFT rises by `ramp` and steps by `step`, as shares of its level."""
    starts = tuple(WINDOW_S * at for at in range(n))
    for name, (level, noise) in LEVELS.items():
        values = [level * (1 + scale * noise * value) for value in first_order(n, phi, draws)]
        if name == CHANGED:
            values = [
                value + level * (ramp * at / (n - 1) + (step if at >= n // 2 else 0.0))
                for at, value in enumerate(values)
            ]
        yield SeriesPoints(
            series=name,
            stretch="all",
            times_s=tuple(start + WINDOW_S / 2 for start in starts),
            starts_s=starts,
            values=tuple(max(0.0, value) for value in values),
        )


def told(counts: Counter[str], runs: int) -> str:
    """Return shares in words."""
    return ", ".join(f"{name} {count / runs:.3f}" for name, count in counts.most_common())


def main() -> None:
    """Print one line a number of windows, dependence and truth."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=150)
    parser.add_argument("--windows", default="12,24,96")
    parser.add_argument("--phi", default="0,0.5,0.8")
    given = parser.parse_args()
    for n in map(int, given.windows.split(",")):
        for phi in map(float, given.phi.split(",")):
            for scale in (1.0, 3.0):
                draws = random.Random(n)
                found: Counter[str] = Counter()
                for _ in range(given.runs):
                    found[judge_drift(tuple(soak(n, phi, draws, scale=scale))).conclusion] += 1
                print(f"n {n} phi {phi:g} noise x{scale:g}, steady: {told(found, given.runs)}", flush=True)
            for ramp, step in ((0.2, 0.0), (0.0, 0.2)):
                draws = random.Random(n)
                found = Counter()
                for _ in range(given.runs):
                    drift = judge_drift(tuple(soak(n, phi, draws, ramp=ramp, step=step)))
                    found[next(s.conclusion for s in drift.series if s.series == CHANGED)] += 1
                what = f"ramp of {ramp:.0%}" if ramp else f"step of {step:.0%}"
                print(f"n {n} phi {phi:g}, {what}: {told(found, given.runs)}", flush=True)


if __name__ == "__main__":
    main()
