"""How good is a rate? Queues of known capacity, judged as a rate study judges a server.

    python -m bench.rate queues  [--runs 20]
    python -m bench.rate studies [--runs 5] [--resolution 5%] [--requests N]

`queues` says how often the outstanding requests of a queue at a known load are called rising, undecided or bounded, and
its latency rising. `studies` runs whole rate studies and says by how many steps of the grid the rated rate misses the
highest one that keeps the promise in the long run. docs/rate.md has what both printed.
"""

from __future__ import annotations

import argparse
import random
from collections import Counter
from collections.abc import Callable, Iterator

from msgspec import Struct, structs

from nameplate.contract.contract import Contract
from nameplate.contract.plan import TrialPlan
from nameplate.contract.quantity import parse_ratio
from nameplate.contract.rate_plan import at_rate
from nameplate.contract.rates import Grid, RateRules
from nameplate.contract.rules import Rules
from nameplate.contract.shape import Shape
from nameplate.contract.slo import Slo
from nameplate.contract.target import Target
from nameplate.statistics.percentile import percentile
from nameplate.statistics.queue_growth import QueueGrowth
from nameplate.studies.capacity import capacity
from nameplate.studies.runner import run
from nameplate.studies.tests.queues import Batching, QueueServer, Serve, fixed

SHAPE = Shape(1000, 11)
LOADS = (0.8, 0.9, 0.95, 1.05, 1.1)
# Arrivals from which the long-run percentile is taken.
LONG_RUN = 60_000


class Known(Struct, frozen=True):
    """Name a server of known capacity, in requests a second, and a promise on the p95 TTFT that a study looks for."""

    name: str
    serve: Serve
    capacity: float
    alone_s: float
    limit_s: float


ENGINE = Batching()
SERVERS = (
    Known("1 server, fixed time", fixed(1, 0.1), 10.0, 0.1, 0.5),
    Known("8 servers, fixed time", fixed(8, 0.8), 10.0, 0.8, 0.8),
    Known("8 servers, log-normal 0.5", fixed(8, 0.8, spread=0.5), 10.0, 0.8, 0.8),
    Known("continuous batching", ENGINE, ENGINE.capacity, 0.2, 0.25),
    Known("1 server, loose promise", fixed(1, 0.1), 10.0, 0.1, 10.0),
)


def contract_of(known: Known, rates: RateRules, seed: int, requests: int | None = None) -> Contract:
    """Return the contract of a study of this server."""
    rules = Rules(quiet_s=0.0, requests=requests, max_trials=100)
    slo = Slo.parse(f"ttft p95 < {known.limit_s:g}s")
    return Contract(Target("http", "sim", 80), (SHAPE,), (slo,), "n", rules=rules, seed=seed, rate=rates)


def conclusions(known: Known, load: float, requests: int, runs: int) -> Iterator[tuple[QueueGrowth, bool]]:
    """Yield of each run what was concluded on its queue, and whether its latency was called rising."""
    for seed in range(runs):
        contract = contract_of(known, RateRules(), seed, requests)
        assert contract.rate is not None
        level = contract.rate.grid.at_most(known.capacity * load)
        plan = at_rate(contract, TrialPlan("t", "confirmation", SHAPE, 1, 1, 0), level, None)
        assert plan.arrivals is not None
        # The grid has no such rate: the load is what counts here.
        plan = structs.replace(plan, arrivals=structs.replace(plan.arrivals, rate=known.capacity * load))
        found = QueueServer(contract, known.serve, known.alone_s, seed)(plan).measurement.queueing
        if found is not None and found.outstanding is not None:
            yield found.outstanding, found.latency_rises


def queues(runs: int) -> None:
    """Print the share of queues called rising / undecided / bounded, and of latencies called rising."""
    print(f"Of {runs} queues: rising / undecided / bounded (latency rising), by load")
    print(f"{'':<28}{'n':>6}  " + "".join(f"{load:<24}" for load in LOADS))
    for known in SERVERS[:4]:
        for requests in (400, 1000):
            cells = []
            for load in LOADS:
                found = list(conclusions(known, load, requests, runs))
                said = Counter(growth.conclusion for growth, _ in found)
                shares = [said[name] / max(1, len(found)) for name in ("rising", "undecided", "bounded")]
                rises = sum(rising for _, rising in found) / max(1, len(found))
                cells.append(" ".join(f"{share:.2f}" for share in shares) + f" ({rises:.2f})")
            print(f"{known.name:<28}{requests:>6}  " + "".join(f"{cell:<24}" for cell in cells), flush=True)


def true_level(known: Known, grid: Grid) -> int:
    """Return the highest level below capacity whose p95 TTFT is within the promise in the long run."""
    level = grid.at_most(known.capacity * 0.999)
    while not holds(known, grid.rate(level)):
        level -= 1
    return level


def holds(known: Known, rate: float) -> bool:
    draws = random.Random(round(rate * 1000))
    now, arrivals = 0.0, []
    for _ in range(LONG_RUN):
        now += draws.expovariate(rate)
        arrivals.append(now)
    waits = sorted(
        first - due for (first, _), due in zip(known.serve(arrivals, draws), arrivals, strict=True)
    )
    return percentile(waits, 95.0) < known.limit_s


def studies(runs: int, rates: RateRules, requests: int | None) -> None:
    """Print by how many steps studies miss the truth, how they ended, and what they cost."""
    print(f"Of {runs} studies at a resolution of {rates.resolution:.0%}")
    for known in SERVERS:
        truth = true_level(known, rates.grid)
        off: Counter[int] = Counter()
        ends: Counter[str] = Counter()
        sent = trials = 0
        for seed in range(runs):
            contract = contract_of(known, rates, seed, requests)
            server = QueueServer(contract, known.serve, known.alone_s, seed)
            found = run(capacity(contract, SHAPE), server).boundary
            ends[found.status] += 1
            sent, trials = sent + server.requests, trials + len(server.ran)
            if found.rated is not None:
                off[found.rated - truth] += 1
        steps = ", ".join(f"{step:+d}: {count}" for step, count in sorted(off.items()))
        ended = ", ".join(f"{name} {count}" for name, count in ends.items())
        print(
            f"{known.name:<28} true {rates.grid.rate(truth):g} req/s ({rates.grid.rate(truth) / known.capacity:.2f} of "
            f"capacity): steps off {steps}; {ended}; {trials / runs:.0f} trials, {sent / runs:,.0f} requests a study",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.rate", description=__doc__)
    parser.add_argument("what", choices=("queues", "studies"))
    parser.add_argument("--runs", type=int)
    parser.add_argument("--resolution", default="5%")
    parser.add_argument("--requests", type=int)
    asked = parser.parse_args()
    doing: Callable[[], None] = (
        (lambda: queues(asked.runs or 20))
        if asked.what == "queues"
        else (
            lambda: studies(
                asked.runs or 5, RateRules(resolution=parse_ratio(asked.resolution)), asked.requests
            )
        )
    )
    doing()


if __name__ == "__main__":
    main()
