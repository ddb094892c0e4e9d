"""Series of known truth: first-order noise, and a queue of known load."""

from __future__ import annotations

import math
import random


def first_order(n: int, phi: float, draws: random.Random) -> list[float]:
    """Return n values of a stationary first-order process with unit variance."""
    kept = math.sqrt(1 - phi * phi)
    value = draws.gauss(0, 1)
    found = []
    for _ in range(n):
        found.append(value)
        value = phi * value + kept * draws.gauss(0, 1)
    return found


def queue_lengths(n: int, load: float, draws: random.Random, *, step: float = 20.0) -> list[int]:
    """Return how many are in a single-server queue (Poisson arrivals, exponential service of mean 1), each `step`."""
    waiting, now, due = 0, 0.0, step
    found: list[int] = []
    while len(found) < n:
        rate = load + (1.0 if waiting else 0.0)
        now += draws.expovariate(rate)
        while now >= due and len(found) < n:
            found.append(waiting)
            due += step
        waiting += 1 if draws.random() < load / rate else -1
    return found
