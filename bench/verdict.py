"""How good is the verdict? The capacity study driven many times over servers whose boundary is known.

    python -m bench.verdict [--runs N] [--quick] [--seed S] [--noise SPEC ...] [--slope 5%] [--protocol NAME ...]

Each run is the real study with real verdicts, over a drawn server (`bench/drawn.py`). Its boundary lies at a level that
is known, at a position between two levels that goes evenly through all there are. Tables are printed as Markdown. With
`--engine N`, N runs a protocol of the whole program in simulated time, with its evidence, stand beside them.

*Over-rated* means that the population's percentile at the rated level exceeds the limit by more than 5% of it.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from random import Random

import msgspec
from msgspec import Struct, structs

from bench.drawn import SHAPE, Drawn, Noise, Server, drawn_target
from bench.exact import odds, pass_chance
from nameplate.contract.contract import Contract
from nameplate.contract.errors import CallerError
from nameplate.contract.quantity import parse_duration_ns, parse_ratio
from nameplate.contract.rules import Rules
from nameplate.contract.slo import Slo
from nameplate.statistics.binomial import upper_bound
from nameplate.statistics.censoring import Bounds
from nameplate.studies.capacity import capacity, require_levels
from nameplate.studies.runner import run
from nameplate.verdict.boundary import Status
from nameplate.verdict.level import judge_level
from nameplate.verdict.trial import PhaseValues, SloResult, judge_slo

OVER_RATED = 0.05
CURVE = (0.0, 0.01, 0.02, 0.03, 0.05, 0.075, 0.10, 0.15, 0.20)
SLOPES = (0.02, 0.05, 0.10, 0.20)
SHARES = (0.01, 0.02, 0.025, 0.03, 0.04, 0.05, 0.06, 0.07, 0.08, 0.10)
PROTOCOLS = ("default", "confirmations=5", "95%", "99%")
NOISES = (
    "spread=0.1",
    "spread=0.3",
    "spread=0.5",
    "spread=100%",
    "spread=0.3,between=2%",
    "spread=0.3,between=5%",
    "spread=0.3,between=10%",
    "spread=0.05,between=10%",
    "spread=0.3,within=ar:0.5",
    "spread=0.3,within=ar:0.9",
    "spread=0.3,within=block:8",
    "spread=0.3,tail=pareto:3",
    "spread=0.3,tail=outliers:2%:10",
    "spread=0.02,between=2%,opening=6",
)
# Those whose slopes are looked at one by one: the plainest, and two whose trials differ.
STEEPNESS = ("spread=0.3", "spread=0.3,between=10%", "spread=0.05,between=10%")

TABLES = ("noise", "level", "slope", "engine")


class Protocol(Struct, frozen=True):
    """Name a way to rate, with its rules."""

    name: str
    rules: Rules

    @classmethod
    def parse(cls, text: str) -> Protocol:
        """Read `default`, `confirmations=5`, or a confidence such as `95%`; CallerError."""
        # Without a budget: it would cut the search, and what it costs is what is measured.
        free = Rules(quiet_s=0.0, max_trials=100_000)
        if text == "default":
            return cls("default", free)
        if text.startswith("confirmations="):
            number = text.partition("=")[2]
            return cls(f"--confirmations {number}", structs.replace(free, confirmations=int(number)))
        return cls(f"--confidence {text}", structs.replace(free, confidence=parse_ratio(text)))


class Run(Struct, frozen=True):
    """Hold one study's end: its status, the rated level and how far above the limit its population's percentile is."""

    status: Status
    rated: int | None
    steps: int
    excess: float
    trials: int
    requests: int


class Setting(Struct, frozen=True, kw_only=True):
    """Hold what all runs of a table have in common."""

    slo: Slo
    boundary: int
    runs: int
    seed: int

    def contract(self, protocol: Protocol) -> Contract:
        return Contract(
            target=drawn_target(), shapes=(SHAPE,), slos=(self.slo,), nonce="drawn", rules=protocol.rules
        )

    def server(self, noise: Noise, slope: float, position: float) -> Server:
        assert self.slo.percentile is not None and self.slo.limit_ns is not None
        return Server(noise, slope, self.boundary, position, self.slo.percentile, self.slo.limit_ns)

    def study(self, protocol: Protocol, noise: Noise, slope: float) -> list[Run]:
        """Run the study of one protocol over servers of one noise and slope."""
        contract = self.contract(protocol)
        require_levels(contract)
        return [self._one(contract, noise, slope, number) for number in range(self.runs)]

    def _one(self, contract: Contract, noise: Noise, slope: float, number: int) -> Run:
        server = self.server(noise, slope, (number + 0.5) / self.runs)
        # The same draws for every protocol, as far as they ask for the same trials.
        executor = Drawn(contract, server, f"{self.seed} {number}")
        found = run(capacity(contract, SHAPE), executor).boundary
        rated = found.rated
        excess = server.excess(rated) if rated else -1.0
        steps = 0 if rated is None else rated - self.boundary
        return Run(found.status, rated, steps, excess, executor.trials, executor.requests)


def share_of(runs: Sequence[Run], such: Callable[[Run], bool]) -> float:
    return sum(map(such, runs)) / len(runs)


def percent(share: float) -> str:
    return f"{share * 100:.1f}%"


def over_rated(runs: Sequence[Run]) -> str:
    """Write how often a run was over-rated, with the exact one-sided 95% upper bound of that share."""
    count = sum(one.excess > OVER_RATED for one in runs)
    said = f"{percent(count / len(runs))} (< {percent(upper_bound(count, len(runs)))})"
    return f"**{said}**" if count / len(runs) > 0.01 else said


def row(runs: Sequence[Run]) -> list[str]:
    rated = [one for one in runs if one.rated is not None]
    steps = sum(one.steps for one in rated) / len(rated) if rated else 0.0
    return [
        over_rated(runs),
        percent(share_of(runs, lambda one: one.steps > 0)),
        percent(share_of(runs, lambda one: one.rated is not None and one.steps == 0)),
        percent(share_of(runs, lambda one: one.rated is not None and one.steps < 0)),
        f"{steps:+.2f}",
        percent(share_of(runs, lambda one: one.status is Status.confirmed)),
        f"{sum(one.trials for one in runs) / len(runs):.1f}",
        f"{sum(one.requests for one in runs) / len(runs):,.0f}",
    ]


HEAD = ["over-rated by > 5%", "above", "at", "below", "levels off", "confirmed", "trials", "requests"]


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Write a Markdown table, each row as soon as it is there."""
    yield f"| {' | '.join(head)} |"
    yield f"|{'---|' * len(head)}"
    for cells in rows:
        yield f"| {' | '.join(cells)} |"
    yield ""


def main_tables(
    setting: Setting, noises: Sequence[str], protocols: Sequence[Protocol], slope: float
) -> Iterator[str]:
    """Run each protocol over each noise; then the curve over the excess, all noises together and the worst of them."""
    held: dict[tuple[str, str], list[Run]] = {}

    def rows() -> Iterator[list[str]]:
        for spec in noises:
            for protocol in protocols:
                tell(f"{spec}, {protocol.name}")
                runs = held[spec, protocol.name] = setting.study(protocol, Noise.parse(spec), slope)
                yield [f"`{spec}`", protocol.name, *row(runs)]

    yield f"### By noise, {percent(slope)} a level\n"
    yield from table(["noise", "protocol", *HEAD], rows())
    yield "### How far over: the share of runs whose rated level is over the limit by more than\n"
    lines = []
    for protocol in protocols:
        every = [one for spec in noises for one in held[spec, protocol.name]]
        lines.append(["all noises", protocol.name, *_curve(every)])
    for spec in noises:
        lines += [[f"`{spec}`", protocol.name, *_curve(held[spec, protocol.name])] for protocol in protocols]
    yield from table(["noise", "protocol", *(f"{x * 100:g}%" for x in CURVE)], lines)


def _curve(runs: Sequence[Run]) -> list[str]:
    return [percent(share_of(runs, partial(_above, x))) for x in CURVE]


def _above(x: float, one: Run) -> bool:
    return one.excess > x


def slope_table(
    setting: Setting, noises: Sequence[str], slopes: Sequence[float], protocols: Sequence[Protocol]
) -> Iterator[str]:
    """Run each protocol over boundaries that are flat and steep."""
    rows = []
    for spec in noises:
        for slope in slopes:
            for protocol in protocols:
                tell(f"{spec}, slope {slope}, {protocol.name}")
                runs = setting.study(protocol, Noise.parse(spec), slope)
                rows.append([f"`{spec}`", percent(slope), protocol.name, *row(runs)])
    yield "### By how steeply the percentile grows with the level\n"
    yield from table(["noise", "a level", "protocol", *HEAD], rows)


def characteristic(
    setting: Setting, noise: Noise, protocols: Sequence[Protocol], draws: int
) -> Iterator[str]:
    """Compare the exact chance that one trial of 64 and that a whole level passes with drawn ones."""
    n, slo = 64, setting.slo
    assert slo.percentile is not None
    rows = []
    for share in SHARES:
        tell(f"share {share}")
        server = _with_share(setting, noise, share, n)
        level = setting.boundary
        exact = pass_chance(n, slo.percentile, partial(_over, server, level, n))
        binomial = odds(n, slo.percentile, share)
        drawn = [_trial(setting, server, number) for number in range(draws)]
        passed = sum(one[0].status == "pass" for one in drawn) / draws
        levels = [percent(_level_chance(protocol, drawn)) for protocol in protocols]
        rows.append(
            [
                percent(share),
                f"{server.excess(level) * 100:+.1f}%",
                f"{percent(binomial.surely)} to {percent(binomial.maybe)}",
                percent(exact),
                percent(passed),
                percent(binomial.surely**3),
                percent(exact**3),
                *levels,
            ]
        )
    yield f"### A single level, its share over the limit known: trials of {n}, drawn with `{noise_spec(noise)}`\n"
    names = [f"level passes: {protocol.name}" for protocol in protocols]
    head = ["share over", "excess", "a trial passes: binomial", "exact", "drawn", "three: binomial", "exact"]
    yield from table([*head, *names], rows)


def noise_spec(noise: Noise) -> str:
    """Write what of a noise differs from its defaults."""
    found = msgspec.structs.asdict(noise)
    return ", ".join(f"{name} {value:g}" for name, value in found.items() if value != getattr(Noise(), name))


def _with_share(setting: Setting, noise: Noise, share: float, n: int) -> Server:
    """Return a server whose boundary level has this share over the limit; slope and position only carry the scale."""
    low, high = -40.0, 40.0
    for _ in range(80):
        middle = (low + high) / 2
        if setting.server(noise, 0.05, middle).share_over(setting.boundary, n) > share:
            low = middle
        else:
            high = middle
    return setting.server(noise, 0.05, (low + high) / 2)


def _over(server: Server, level: int, n: int, x: float) -> float:
    """Return the population's share above x limits."""
    return server.noise.population_over(math.log(x * server.limit_ns / server.scale_ns(level, n)), level, n)


def _trial(setting: Setting, server: Server, number: int) -> tuple[SloResult]:
    n = 64
    scale_ns = server.scale_ns(setting.boundary, n)
    drawn = server.noise.draw(setting.boundary, n, Random(f"{setting.seed} single {number}"))
    values = tuple(Bounds(x, x) for x in (round(y * scale_ns) for y in drawn))
    return (judge_slo(setting.slo, PhaseValues((), values)),)


def _level_chance(protocol: Protocol, drawn: Sequence[tuple[SloResult]]) -> float:
    """Judge one level after the other from drawn trials, each trial used once."""
    levels = passes = at = 0
    while True:
        taken: list[tuple[SloResult]] = []
        while (
            judged := judge_level(1, [t[0].status for t in taken], protocol.rules, taken)
        ).status == "open":
            if at == len(drawn):
                return passes / levels if levels else 0.0
            taken.append(drawn[at])
            at += 1
        levels += 1
        passes += judged.status == "pass"


def tell(text: str) -> None:
    print(f"  {time.process_time():7.1f} s of CPU  {text}", file=sys.stderr, flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the tables; a mistake in what was asked for is said and is exit code 2."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.verdict", description="How good is the verdict?", allow_abbrev=False
    )
    add = parser.add_argument
    add("--runs", type=int, default=1000, help="studies a row (default 1000)")
    add("--quick", action="store_true", help="40 studies a row, fewer noises, no slopes")
    add("--seed", type=int, default=1)
    add(
        "--noise",
        action="append",
        help="e.g. spread=0.3,between=10%%,within=ar:0.5,tail=pareto:3; may repeat",
    )
    add(
        "--slope",
        action="append",
        help="growth of the percentile a level, e.g. 5%%; may repeat in the table of slopes",
    )
    add("--limit", default="1s", help="the SLO's limit; it scales everything alike")
    add("--percentile", type=float, default=95.0)
    add("--boundary", type=int, default=10, help="the true boundary (default 10)")
    add("--protocol", action="append", help="default, confirmations=5, or a confidence; may repeat")
    add(
        "--table",
        action="append",
        choices=TABLES,
        help="only this table; may repeat (default: all but engine)",
    )
    add("--engine", type=int, default=24, metavar="N", help="runs a row in the table of the built-in engine")
    given = parser.parse_args(arguments)
    try:
        slo = Slo("ttft", given.percentile, limit_ns=parse_duration_ns(given.limit))
        if not 0 < given.percentile < 100 or given.boundary < 1 or given.runs < 1:
            raise CallerError("The percentile, the boundary or the runs cannot be.", hint="See --help.")
        runs = 40 if given.quick else given.runs
        setting = Setting(slo=slo, boundary=given.boundary, runs=runs, seed=given.seed)
        for line in _lines(setting, given):
            print(line, flush=True)
    except CallerError as error:
        print(f"{error} {error.hint or ''}".strip(), file=sys.stderr)
        return 2
    return 0


def _lines(setting: Setting, given: argparse.Namespace) -> Iterator[str]:
    protocols = [Protocol.parse(text) for text in given.protocol or PROTOCOLS]
    noises = given.noise or (NOISES[1::4] if given.quick else NOISES)
    slopes = [parse_ratio(text) for text in given.slope or ()]
    tables = given.table or [name for name in TABLES[:3] if name != "slope" or not given.quick]
    yield f"`{setting.slo}`, boundary {setting.boundary}, {setting.runs:,} runs a row, seed {setting.seed}.\n"
    if "noise" in tables:
        yield from main_tables(setting, noises, protocols, slopes[0] if slopes else 0.05)
    if "level" in tables:
        noise = Noise.parse(given.noise[0] if given.noise else "spread=0.5")
        yield from characteristic(setting, noise, protocols, 1000 if given.quick else 20_000)
    if "slope" in tables:
        yield from slope_table(setting, given.noise or STEEPNESS, slopes or SLOPES, protocols)
    if "engine" in tables:
        from bench.simulated import engine_tables

        yield from engine_tables(given.engine, protocols, setting.seed)
    yield f"CPU time: {time.process_time():,.0f} s."


if __name__ == "__main__":
    raise SystemExit(main())
