"""A drawn server: each level's TTFT distribution is known by formula, with the noise that one asks for.

The logarithm of a request's TTFT is a sum: the level's scale, a normal part of `spread` a request, a normal part of
`between` a trial (all its requests alike), and what a heavy tail, outliers or the opening wave add. All of it has a
closed form, so each level's scale is set such that its population's percentile is exactly what the boundary asks for.
The population is of all requests of all trials at that level: what trials differ by is part of it.
"""

from __future__ import annotations

import math
from functools import cache
from random import Random

from msgspec import Struct

from nameplate.contract.contract import Contract
from nameplate.contract.errors import CallerError
from nameplate.contract.identity import Identity
from nameplate.contract.plan import TrialPlan
from nameplate.contract.quantity import parse_ratio
from nameplate.contract.shape import Shape
from nameplate.contract.target import Target
from nameplate.measure.result import TrialResult, evaluate
from nameplate.measure.trial_evidence import TrialEvidence
from nameplate.statistics.censoring import Bounds
from nameplate.statistics.tails import normal_cdf
from nameplate.verdict.trial import PhaseValues, judge_slo, judge_trial

SHAPE = Shape(1000, 100)
# The share of requests that a Pareto factor makes longer.
TAILED = 0.1


class Noise(Struct, frozen=True, kw_only=True):
    """Say how a level's TTFTs scatter; the defaults are requests that know nothing of each other.

    `spread` is the standard deviation of a request's logarithm, `between` that of a trial's common factor. Neighbouring
    requests' normal scores correlate by `ar`, or those of a block of `block` share half of their variance. A tenth of
    the requests take a further Pareto factor of index `pareto`; a share `outliers` takes `outlier_factor` times
    as long.
    The prompts of the opening wave take up to `opening` times as long, each more than the one before.
    """

    spread: float = 0.3
    between: float = 0.0
    ar: float = 0.0
    block: int = 1
    pareto: float | None = None
    outliers: float = 0.0
    outlier_factor: float = 1.0
    opening: float = 1.0

    @classmethod
    def parse(cls, text: str) -> Noise:
        """Read `spread=0.3,between=10%,within=ar:0.5,tail=pareto:3,tail=outliers:1%:10,opening=5`; CallerError."""
        found: dict[str, float | int] = {}
        try:
            for part in filter(None, (piece.strip() for piece in text.split(","))):
                name, _, value = part.partition("=")
                kind, *numbers = value.split(":")
                match name, kind, numbers:
                    case ("spread" | "between", _, []):
                        found[name] = parse_ratio(kind)
                    case "opening", _, []:
                        found["opening"] = float(kind)
                    case "within", "ar", [rho]:
                        found["ar"] = parse_ratio(rho)
                    case "within", "block", [length]:
                        found["block"] = int(length)
                    case "tail", "pareto", [index]:
                        found["pareto"] = float(index)
                    case "tail", "outliers", [share, factor]:
                        found["outliers"], found["outlier_factor"] = parse_ratio(share), float(factor)
                    case _:
                        raise ValueError(part)
            noise = cls(**found)  # type: ignore[arg-type]
            noise.require()
        except ValueError as error:
            raise CallerError(
                f"{text!r} is not a noise: {error}.",
                hint="Write it like spread=0.3,between=10%,within=ar:0.5,tail=pareto:3,opening=5.",
            ) from None
        return noise

    def require(self) -> None:
        """Refuse values that no distribution has; ValueError."""
        sound = self.spread > 0 and self.between >= 0 and 0 <= self.ar < 1 and self.block >= 1
        sound = sound and (self.pareto is None or self.pareto > 0) and self.opening >= 1
        if not (sound and 0 <= self.outliers < 1 and self.outlier_factor >= 1):
            raise ValueError("a value is out of range")

    def over(self, log_factor: float) -> float:
        """Return the share of steady requests that take more than exp(log_factor) times the level's scale."""
        sigma = math.hypot(self.spread, self.between)

        def plain(y: float) -> float:
            share = normal_cdf(-y / sigma)
            if self.pareto is None:
                return share
            # A normal and an exponential variable in sum: the logarithm of a lognormal times a Pareto factor.
            a, tilt = self.pareto, self.pareto * sigma
            return (1 - TAILED) * share + TAILED * (
                share + math.exp(a * (a * sigma * sigma / 2 - y)) * normal_cdf(y / sigma - tilt)
            )

        if not self.outliers:
            return plain(log_factor)
        far = plain(log_factor - math.log(self.outlier_factor))
        return (1 - self.outliers) * plain(log_factor) + self.outliers * far

    def opening_shift(self, slot: int, level: int) -> float:
        """Return the logarithm of what the opening wave adds to the request of a slot, from 0."""
        return math.log1p((self.opening - 1) * (slot + 1) / level)

    def population_over(self, log_factor: float, level: int, requests: int) -> float:
        """Return the share over exp(log_factor) scales among all requests of a trial of that size, over all trials."""
        if self.opening == 1:
            return self.over(log_factor)
        first = min(level, requests)
        wave = sum(self.over(log_factor - self.opening_shift(slot, level)) for slot in range(first))
        return (wave + (requests - first) * self.over(log_factor)) / requests

    def scores(self, n: int, rng: Random) -> list[float]:
        """Draw the standard normal scores of a trial's requests, dependent as asked."""
        if self.block > 1:
            half = math.sqrt(0.5)
            common = [rng.gauss() for _ in range(-(-n // self.block))]
            return [half * common[i // self.block] + half * rng.gauss() for i in range(n)]
        if not self.ar:
            return [rng.gauss() for _ in range(n)]
        fresh, score, scores = math.sqrt(1 - self.ar * self.ar), rng.gauss(), []
        for _ in range(n):
            scores.append(score)
            score = self.ar * score + fresh * rng.gauss()
        return scores

    def draw(self, level: int, requests: int, rng: Random) -> list[float]:
        """Draw a trial's TTFTs in units of the level's scale, in the order of sending."""
        common = rng.gauss() * self.between if self.between else 0.0
        logs = [common + self.spread * score for score in self.scores(requests, rng)]
        if self.pareto is not None:
            logs = [x + rng.expovariate(self.pareto) if rng.random() < TAILED else x for x in logs]
        if self.outliers:
            far = math.log(self.outlier_factor)
            logs = [x + far if rng.random() < self.outliers else x for x in logs]
        if self.opening > 1:
            for slot in range(min(level, requests)):
                logs[slot] += self.opening_shift(slot, level)
        return [math.exp(x) for x in logs]


@cache
def log_quantile(noise: Noise, percent: float, level: int, requests: int) -> float:
    """Return the logarithm of a population's percentile in units of the level's scale."""
    share, low, high = 1 - percent / 100, -50.0, 50.0
    while high - low > 1e-12:
        middle = (low + high) / 2
        if noise.population_over(middle, level, requests) > share:
            low = middle
        else:
            high = middle
    return (low + high) / 2


class Server(Struct, frozen=True):
    """Hold a server of known boundary: the highest level whose population's percentile is below the limit.

    The percentile grows by `slope` a level. At the boundary it is (1 + slope)^-position of the limit, with a position
    in (0, 1]: just below the limit, or just below the next level's.
    """

    noise: Noise
    slope: float
    boundary: int
    position: float
    percent: float
    limit_ns: int

    def excess(self, level: int) -> float:
        """Return by which share of the limit a level's true percentile is above it; negative below."""
        return math.exp((level - self.boundary - self.position) * math.log1p(self.slope)) - 1

    def scale_ns(self, level: int, requests: int) -> float:
        unit = math.exp(log_quantile(self.noise, self.percent, level, requests))
        return self.limit_ns * (1 + self.excess(level)) / unit

    def share_over(self, level: int, requests: int) -> float:
        """Return the population's share over the limit at a level."""
        factor = math.log(self.limit_ns / self.scale_ns(level, requests))
        return self.noise.population_over(factor, level, requests)


class Drawn:
    """Execute plans by drawing: the verdict of each trial is the real one, of values that were never measured.

    A trial is a function of the seed and its key. `trials` and `requests` count what was asked for, warm-ups included.
    """

    def __init__(self, contract: Contract, server: Server, seed: str) -> None:
        self._contract = contract
        self._server = server
        self._seed = seed
        self.trials = 0
        self.requests = 0

    def __call__(self, plan: TrialPlan) -> TrialResult:
        self.trials += 1
        self.requests += plan.requests + plan.warmup
        rng = Random(f"{self._seed} {plan.key}")
        scale_ns = self._server.scale_ns(plan.concurrency, plan.requests)
        drawn = self._server.noise.draw(plan.concurrency, plan.requests, rng)
        # The whole sample decides; that the opening wave would be shown apart changes nothing here.
        held = PhaseValues((), tuple(Bounds(x, x) for x in (round(y * scale_ns) for y in drawn)))
        slos = [judge_slo(slo, held) for slo in self._contract.slos]
        blank = _blank(self._contract)
        return TrialResult(
            plan=plan,
            measurement=blank.measurement,
            facts=blank.facts,
            gates=blank.gates,
            verdict=judge_trial((), slos),
            identity_before=blank.identity_before,
            identity_after=blank.identity_after,
            started_ns=0,
            ended_ns=1,
        )


_BLANK: dict[int, TrialResult] = {}


def _blank(contract: Contract) -> TrialResult:
    """Return the result of a trial without requests: all that the study does not look at."""
    if not _BLANK:
        identity = Identity({})
        plan = TrialPlan("blank", "single", SHAPE, 1, 0, 0)
        _BLANK[0] = evaluate(
            TrialEvidence(
                contract=contract,
                plan=plan,
                clock="virtual",
                rows=[],
                identity_before=identity,
                identity_after=identity,
                started_ns=0,
                ended_ns=1,
            )
        )
    return _BLANK[0]


def drawn_target() -> Target:
    """Return an address that nothing is sent to."""
    return Target.parse("http://127.0.0.1:9")
