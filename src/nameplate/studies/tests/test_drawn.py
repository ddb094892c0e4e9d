"""The study of the method itself: drawn servers are what they claim to be, and a confidence keeps its promise."""

from __future__ import annotations

import math
from functools import partial
from random import Random

import pytest

from bench.drawn import Drawn, Noise, Server
from bench.exact import odds, pass_chance
from bench.verdict import OVER_RATED, Protocol, Setting, main
from nameplate.contract.errors import CallerError
from nameplate.contract.plan import TrialPlan
from nameplate.contract.shape import Shape
from nameplate.contract.slo import Slo
from nameplate.statistics.binomial import log_tail, upper_bound
from nameplate.statistics.percentile import percentile

SLO = Slo.parse("ttft p95 < 1s")
S = 1_000_000_000


def server(spec: str, position: float = 0.5, slope: float = 0.05) -> Server:
    return Server(Noise.parse(spec), slope, 10, position, 95.0, S)


@pytest.mark.parametrize(
    "spec",
    [
        "spread=0.3",
        "spread=0.3,between=10%",
        "spread=0.3,tail=pareto:3",
        "spread=0.3,between=5%,tail=outliers:2%:10",
        "spread=0.02,between=2%,opening=6",
        "spread=0.3,within=block:8,tail=pareto:2,opening=3",
        "spread=0.3,within=ar:0.5",
    ],
)
def test_the_formula_is_the_truth_of_what_is_drawn(spec: str) -> None:
    """The share of drawn requests over the population's percentile is 5%, within five deviations."""
    noise, rng, level = Noise.parse(spec), Random(3), 9
    held = server(spec)
    limit = held.limit_ns / held.scale_ns(level, 64) * (1 + held.excess(level))
    shares = [sum(x > limit for x in noise.draw(level, 64, rng)) / 64 for _ in range(400)]
    mean = sum(shares) / len(shares)
    deviation = math.sqrt(sum((share - mean) ** 2 for share in shares) / len(shares) ** 2)
    assert mean == pytest.approx(0.05, abs=5 * deviation)
    assert held.share_over(level, 64) < 0.05


def test_the_boundary_lies_where_it_is_said_to_lie() -> None:
    """Its percentile is below the limit and the next level's is not, at every position."""
    for position in (0.01, 0.5, 1.0):
        held = server("spread=0.5,between=5%", position)
        assert held.excess(10) < 0 <= held.excess(11) + 1e-12
        assert held.share_over(10, 64) < 0.05 <= held.share_over(11, 64) + 1e-9


def test_a_trial_is_a_function_of_seed_and_key() -> None:
    """The same plan gives the same verdict, another seed another one; warm-ups are counted."""
    setting = Setting(slo=SLO, boundary=10, runs=1, seed=1)
    contract = setting.contract(Protocol.parse("default"))
    plan = TrialPlan("x", "confirmation", Shape(10, 10), 10, 64, 8)
    first, again, other = (Drawn(contract, server("spread=0.3"), seed) for seed in ("1", "1", "2"))
    assert first(plan).verdict == again(plan).verdict != other(plan).verdict
    assert (first.trials, first.requests) == (1, 72)


def test_a_server_at_six_percent_passes_three_trials_of_64_one_time_in_ten() -> None:
    """By the binomial with certainty about it, and hardly more often by the exact sum."""
    assert odds(64, 95.0, 0.06).surely ** 3 == pytest.approx(0.097, abs=5e-4)
    assert odds(64, 95.0, 0.06).surely == pytest.approx(math.exp(log_tail(3, 64, 0.06)))


@pytest.mark.parametrize("spec", ["spread=0.3", "spread=0.3,tail=pareto:3"])
@pytest.mark.parametrize("share", [0.03, 0.06])
def test_the_exact_chance_is_that_of_drawn_trials(spec: str, share: float) -> None:
    """It lies between the binomial's two, and 2,000 drawn trials agree; they fail this once in 10,000 runs."""
    noise, n, runs, rng = Noise.parse(spec), 64, 2000, Random(7)
    low, high = -20.0, 20.0
    while high - low > 1e-9:
        middle = (low + high) / 2
        low, high = (middle, high) if noise.over(middle) > share else (low, middle)
    chance = pass_chance(n, 95.0, lambda x: noise.over(low + math.log(x)))
    assert odds(n, 95.0, share).surely < chance < odds(n, 95.0, share).maybe
    limit = math.exp(low)
    passed = sum(percentile(sorted(noise.draw(8, n, rng)), 95.0) < limit for _ in range(runs))
    assert upper_bound(passed, runs, 1 - 5e-5) > chance > 1 - upper_bound(runs - passed, runs, 1 - 5e-5)


@pytest.mark.parametrize("spec", ["spread=0.5", "spread=0.3,between=5%", "spread=0.02,between=2%,opening=6"])
def test_a_confidence_keeps_its_promise(spec: str) -> None:
    """Of 30 studies at 90% no more are rated above the truth than one in ten allows, nor over-rated than one in 100.

    Were the shares as large as that, this would fail once in 10,000 runs; the seed is fixed.
    """
    setting = Setting(slo=SLO, boundary=10, runs=30, seed=11)
    runs = setting.study(Protocol.parse("90%"), Noise.parse(spec), 0.1)
    above = sum(one.steps > 0 for one in runs)
    over = sum(one.excess > OVER_RATED for one in runs)
    assert all(one.rated is not None for one in runs)
    assert log_tail(len(runs) - above, len(runs), 0.9) > math.log(1e-4)
    assert log_tail(len(runs) - over, len(runs), 0.99) > math.log(1e-4)
    assert sum(one.steps for one in runs) / len(runs) > -3


def test_the_default_is_the_protocol_of_the_reference() -> None:
    """Three confirmations and no confidence; another number, and a confidence, are named as on the command line."""
    assert (
        Protocol.parse("default").rules.confirmations == 3
        and Protocol.parse("default").rules.confidence is None
    )
    assert Protocol.parse("confirmations=5").rules.confirmations == 5
    assert Protocol.parse("99%").rules.confidence == 0.99


@pytest.mark.parametrize(
    "text", ["spread=0", "nonsense", "spread=0.3,within=ar:1", "tail=pareto", "opening=0.5", "between=-1%"]
)
def test_a_noise_that_cannot_be_is_refused(text: str) -> None:
    """With words that show how to write one, and exit code 2 on the command line."""
    with pytest.raises(CallerError):
        Noise.parse(text)
    assert main(["--noise", text, "--quick"]) == 2


def test_the_command_prints_tables(capsys: pytest.CaptureFixture[str]) -> None:
    """One noise of one's own: how often over, above, at, below, its price, the curve; the same for the same seed."""
    arguments = ["--noise", "spread=0.4", "--runs", "3", "--table", "noise", "--protocol", "default"]
    assert main(arguments) == 0
    first = capsys.readouterr().out
    assert "| over-rated by > 5% |" in first and "| `spread=0.4` | default |" in first and "20% |" in first
    assert main(arguments) == 0
    tables = [text.partition("CPU time")[0] for text in (first, capsys.readouterr().out)]
    assert tables[0] == tables[1]


def test_shares_of_a_level_agree_with_the_scale() -> None:
    """The share over the limit is the survival at the limit in units of the scale."""
    held = server("spread=0.5")
    at = math.log(held.limit_ns / held.scale_ns(11, 64))
    assert held.share_over(11, 64) == pytest.approx(partial(held.noise.over, at)())
