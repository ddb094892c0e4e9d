"""Spells: a machine that is a little faster now than a minute later, the same whenever it is asked again."""

import math

import msgspec
import pytest

from nameplate.sim.parameters import EngineParameters

SECOND_NS = 10**9
NOISY = EngineParameters(spell_noise=0.1, spell_ns=15 * SECOND_NS)


def test_a_spell_has_one_factor_and_the_next_another() -> None:
    """It is a function of seed and time, and nothing where no noise is asked for."""
    assert NOISY.spell(0) == NOISY.spell(15 * SECOND_NS - 1) != NOISY.spell(15 * SECOND_NS)
    assert NOISY.spell(0) == msgspec.structs.replace(NOISY).spell(0)
    assert NOISY.spell(0) != msgspec.structs.replace(NOISY, seed=1).spell(0)
    assert EngineParameters().spell(0) == 1.0


def test_factors_scatter_as_asked() -> None:
    """Their logarithms have the stated deviation around zero, within five of its own standard errors."""
    logs = [math.log(NOISY.spell(number * NOISY.spell_ns)) for number in range(2000)]
    spread = math.sqrt(sum(log * log for log in logs) / len(logs))
    assert abs(sum(logs) / len(logs)) < 5 * 0.1 / math.sqrt(2000)
    assert spread == pytest.approx(0.1, abs=5 * 0.1 / math.sqrt(2 * 2000))


def test_a_spell_without_length_is_refused() -> None:
    """As is a negative noise."""
    for wrong in ({"spell_ns": 0}, {"spell_noise": -0.1}):
        with pytest.raises(ValueError):
            EngineParameters(**wrong)
