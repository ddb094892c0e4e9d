"""How good is a comparison? Its verdicts over drawn trials of servers whose difference is known.

    python -m bench.compare [--runs N] [--seed S] [--quick]

Each run draws two sides of two loads of eight measures each, one of them a promise. A trial's measures share a part
of their noise, as those of one server do, and a side's trials share its session's: what a restart or another day
changes.
Tables are printed as Markdown; the first holds the ways to make an interval against each other.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator, Sequence
from random import Random

from msgspec import Struct

from nameplate.compare.document import Compared, Settings
from nameplate.compare.judge import Drawn, Samples, compare_measure, settle
from nameplate.compare.measures import Statistic
from nameplate.compare.side import Observed
from nameplate.statistics.percentile import percentile
from nameplate.statistics.tails import student_quantile
from nameplate.statistics.two_samples import welch

TRIALS = (3, 5, 9)
NOISES = (0.005, 0.01, 0.02, 0.05)
SESSIONS = (0.0, 0.005, 0.01, 0.02)
LOADS, MEASURES = 2, 8
# Of a trial's variance so much is common to all of its measures.
SHARED = 0.5
RESAMPLES = 400
SETTINGS = Settings()
TTFT = Statistic("ttft", "p95")

Side = list[list[float]]
Differs = Callable[[Sequence[float], Sequence[float]], bool]


class World(Struct, frozen=True, kw_only=True):
    """Hold what a pair of runs is drawn from; all are relative: `moved` is by how much B is slower, in all measures."""

    trials: int
    noise: float
    session: float = 0.0
    moved: float = 0.0
    results: int = 1

    def side(self, draws: Random, moved: float) -> list[Side]:
        """Return each result's trials, each with its measures as logarithms."""
        level = math.log1p(moved)
        common, own = self.noise * math.sqrt(SHARED), self.noise * math.sqrt(1 - SHARED)
        drawn = []
        for _ in range(self.results):
            offset = draws.gauss(0, self.session)
            result = []
            for _ in range(self.trials):
                shared = draws.gauss(level + offset, common)
                result.append([shared + draws.gauss(0, own) for _ in range(LOADS * MEASURES)])
            drawn.append(result)
        return drawn


def compared(world: World, draws: Random) -> tuple[Compared, ...]:
    """Draw a pair of runs and compare them; the first measure of each load is a promise."""
    a, b = world.side(draws, 0.0), world.side(draws, world.moved)
    found = []
    for at in range(LOADS * MEASURES):
        sides = [
            tuple(
                Drawn(number, Observed(math.exp(trial[at]), 64))
                for number, result in enumerate(side)
                for trial in result
            )
            for side in (a, b)
        ]
        samples = Samples(sides[0], sides[1], by_result=world.results >= SETTINGS.least_trials)
        found.append(compare_measure(TTFT, samples, SETTINGS, gated=at % MEASURES == 0))
    return settle(found, SETTINGS)


class Tally:
    """Count what comparisons came to."""

    def __init__(self) -> None:
        self.runs = self.gated = self.any = self.equal = self.found = self.broken = self.unknown = 0

    def take(self, found: Sequence[Compared]) -> None:
        gated = [one for one in found if one.gated]
        self.runs += 1
        self.gated += any(one.verdict in ("better", "worse") for one in gated)
        self.any += any(one.verdict in ("better", "worse") for one in found)
        self.found += any(one.verdict == "worse" for one in gated)
        self.equal += all(one.verdict == "equal" for one in gated)
        limits = [_beyond(one, 0.05) for one in gated]
        self.broken += "broken" in limits
        self.unknown += "broken" not in limits and "not known" in limits

    def share(self, name: str) -> str:
        return f"{getattr(self, name) / self.runs * 100:.1f}%"


def _beyond(one: Compared, limit: float) -> str:
    interval = one.relative
    if interval is None or interval.low is None or interval.high is None:
        return "not known"
    return "broken" if interval.low > limit else "held" if interval.high <= limit else "not known"


def tally(world: World, runs: int, seed: str) -> Tally:
    held, draws = Tally(), Random(f"{seed} {world}")
    for _ in range(runs):
        held.take(compared(world, draws))
    return held


def pooled(a: Sequence[float], b: Sequence[float]) -> bool:
    """Student's t test with one variance for both sides."""
    n = len(a)
    means = [math.fsum(side) / n for side in (a, b)]
    squares = math.fsum((x - mean) ** 2 for side, mean in zip((a, b), means, strict=True) for x in side)
    half = student_quantile(0.975, 2 * n - 2) * math.sqrt(squares / (n - 1) / n)
    return abs(means[1] - means[0]) > half


def resampled(draws: Random) -> Differs:
    """Return the percentile bootstrap of the difference of means."""

    def differs(a: Sequence[float], b: Sequence[float]) -> bool:
        n = len(a)
        found = sorted(
            (math.fsum(draws.choices(b, k=n)) - math.fsum(draws.choices(a, k=n))) / n
            for _ in range(RESAMPLES)
        )
        return percentile(found, 2.5) > 0 or percentile(found, 97.5) < 0

    return differs


def methods(runs: int, seed: int) -> Iterator[str]:
    """Yield how often each way tells two like samples apart, at nominally 5%; unlike: B varies four times as much."""
    draws = Random(f"methods {seed}")
    ways: dict[str, Differs] = {
        "percentile bootstrap": resampled(draws),
        "Student's t, one variance": pooled,
        "Welch's t": lambda a, b: welch(a, b).p_value < 0.05,
    }
    yield "| interval | " + " | ".join(f"{n} trials | {n}, unlike" for n in TRIALS) + " |"
    yield "|---|" + "--:|--:|" * len(TRIALS)
    for name, differs in ways.items():
        cells = []
        for n in TRIALS:
            for wider in (1.0, 4.0):
                wrong = sum(
                    differs([draws.gauss(0, 1) for _ in range(n)], [draws.gauss(0, wider) for _ in range(n)])
                    for _ in range(runs)
                )
                cells.append(f"{wrong / runs * 100:.1f}%")
        yield f"| {name} | {' | '.join(cells)} |"


def trials_table(runs: int, seed: int) -> Iterator[str]:
    """Yield what comparisons of one result a side come to, with no difference and with one of 5%."""
    yield (
        "| trials a side | noise | A/A: promise differs | A/A: anything differs | A/A: equal | A/A: fails +5% | "
        "5% slower: found | 10% slower: fails +5% |"
    )
    yield "|--:|--:|--:|--:|--:|--:|--:|--:|"
    for n in TRIALS:
        for noise in NOISES:
            like = tally(World(trials=n, noise=noise), runs, f"{seed}")
            slower = tally(World(trials=n, noise=noise, moved=0.05), runs, f"{seed}")
            far = tally(World(trials=n, noise=noise, moved=0.10), runs, f"{seed}")
            yield (
                f"| {n} | {noise * 100:g}% | {like.share('gated')} | {like.share('any')} | {like.share('equal')} | "
                f"{like.share('broken')} | {slower.share('found')} | {far.share('broken')} |"
            )


def sessions_table(runs: int, seed: int) -> Iterator[str]:
    """Yield what a session's own noise does, with one result of three trials a side, and with three and five."""
    yield (
        "| results a side | noise of a session | A/A: promise differs | A/A: anything differs | A/A: fails +5% | "
        "5% slower: found |"
    )
    yield "|--:|--:|--:|--:|--:|--:|"
    for results in (1, 3, 5):
        for session in SESSIONS:
            like = tally(World(trials=3, noise=0.01, session=session, results=results), runs, f"{seed}")
            slower = tally(
                World(trials=3, noise=0.01, session=session, results=results, moved=0.05), runs, f"{seed}"
            )
            yield (
                f"| {results} | {session * 100:g}% | {like.share('gated')} | {like.share('any')} | "
                f"{like.share('broken')} | {slower.share('found')} |"
            )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="30 runs of each: to see that it works")
    asked = parser.parse_args()
    runs = 30 if asked.quick else asked.runs
    for title, lines in (
        ("Two like samples called different, at nominally 5%", methods(10 * runs, asked.seed)),
        ("One result a side", trials_table(runs, asked.seed)),
        ("Sessions of three trials that vary by 1%", sessions_table(runs, asked.seed)),
    ):
        print(f"### {title}\n")
        for line in lines:
            print(line, flush=True)
        print()


if __name__ == "__main__":
    main()
