"""The whole program in simulated time against a noisy engine, beside what very many trials say of each level.

The engine's steps vary one by one and, all together, from one spell of 15 seconds to the next; quiet intervals of 15
seconds put each trial into a spell of its own. What is true of a level is found from many trials of it, all of the
study's own size: the share over the limit of a burst depends on how many requests follow the opening wave.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, structs

from nameplate.contract.contract import Contract
from nameplate.contract.rules import Rules
from nameplate.contract.shape import Shape
from nameplate.contract.slo import Slo
from nameplate.contract.target import Credentials
from nameplate.evidence.header import Keeping
from nameplate.measure.from_disk import load_evidence
from nameplate.measure.samples import slo_values
from nameplate.report.live import QuietView
from nameplate.sim.app import App
from nameplate.sim.preset import Preset
from nameplate.sim.presets import DEMO
from nameplate.sim.virtual import SIMULATED
from nameplate.statistics.percentile import percentile
from nameplate.studies.archive import StudyArchive
from nameplate.studies.conduct import Conditions, Prepared, conduct, prepare
from nameplate.studies.plans import Planner
from nameplate.trial.ground import VirtualGround
from nameplate.trial.interruption import Interruption
from nameplate.trial.life import run_trial

if TYPE_CHECKING:
    from bench.verdict import Protocol, Run

SLO = Slo.parse("ttft p95 < 250ms")
SHAPE = Shape(128, 4)
# Trials a level that its truth is read off, and the levels around the boundary that are looked at.
TRUTH_TRIALS = 30
LEVELS = range(7, 12)
STEP_NOISE = 0.02
SPELLS = (0.02, 0.10)


class Truth(Struct, frozen=True):
    """Hold one level's percentile over all requests of many trials, and how many requests those are."""

    percentile_ns: float
    requests: int

    @property
    def excess(self) -> float:
        assert SLO.limit_ns is not None
        return self.percentile_ns / SLO.limit_ns - 1


def machine(spell_noise: float) -> Preset:
    """Return the demonstration engine with noise in its steps, and prompts a quarter as long at four times the cost."""
    engine = structs.replace(
        DEMO.engine,
        prefill_token_ns=4 * DEMO.engine.prefill_token_ns,
        chunk_tokens=DEMO.engine.chunk_tokens // 4 + 36,
        noise=STEP_NOISE,
        spell_noise=spell_noise,
    )
    return structs.replace(DEMO, engine=engine)


def contract_of(rules: Rules, nonce: str) -> Contract:
    return Contract(target=SIMULATED, shapes=(SHAPE,), slos=(SLO,), nonce=nonce, rules=rules)


@contextmanager
def prepared(preset: Preset, contract: Contract, seed: int) -> Iterator[Prepared]:
    """Survey an engine of this seed, in a directory that goes away."""
    with tempfile.TemporaryDirectory(prefix="nameplate-bench-") as directory:
        conditions = Conditions(
            ground=VirtualGround(App(preset, seed=seed)),
            credentials=Credentials(),
            keeping=Keeping(reads="none", prompts=False),
            command=(),
            client_host={},
            interruption=Interruption(),
            watch=QuietView(),
        )
        yield prepare(conditions, contract, StudyArchive.create(Path(directory) / "study"))


def truth(preset: Preset, rules: Rules, level: int, seed: int) -> Truth:
    """Measure one level many times over."""
    contract = contract_of(rules, f"truth{level}.{seed}")
    values: list[float] = []
    with prepared(preset, contract, seed) as study:
        planner = Planner(study.contract, SHAPE)
        for number in range(1, TRUTH_TRIALS + 1):
            plan = planner.confirmation(level, number)
            directory = study.archive.trial(plan.key)
            run_trial(study.setup, plan, study.corpora[SHAPE], directory)
            evidence = load_evidence(directory)
            held = slo_values(SLO, evidence.rows, plan.requests, evidence.ended_ns)
            values += [value.worst for value in (*held.opening, *held.steady)]
    assert SLO.percentile is not None
    return Truth(percentile(sorted(values), SLO.percentile), len(values))


def one_run(preset: Preset, rules: Rules, truths: dict[int, Truth], boundary: int, seed: int) -> Run:
    """Run one study of the whole program; a level that is beyond what is known of the truth counts as its nearest."""
    from bench.verdict import Run

    with prepared(preset, contract_of(rules, f"run{seed}"), seed) as study:
        found = conduct(study)
    (shape,) = found.plate.shapes
    rated = shape.rated
    nearest = None if not rated else min(truths, key=lambda level: abs(level - rated))
    excess = -1.0 if nearest is None else truths[nearest].excess
    requests = sum(result.plan.requests + result.plan.warmup for result in found.results)
    steps = 0 if rated is None else rated - boundary
    return Run(shape.status, rated, steps, excess, len(found.results), requests)


def engine_tables(runs: int, protocols: Sequence[Protocol], seed: int) -> Iterator[str]:
    """Run each protocol against engines of several noises."""
    from bench.verdict import HEAD, row, table, tell

    rows, known = [], []
    for noise in SPELLS:
        preset = machine(noise)
        spell_s = preset.engine.spell_ns / 1e9
        truths = {}
        for level in LEVELS:
            truths[level] = truth(preset, Rules(quiet_s=spell_s), level, 1000 * seed + level)
            tell(f"engine, spells {noise:g}: C={level} {truths[level].excess:+.1%}")
        boundary = max((level for level, found in truths.items() if found.excess < 0), default=0)
        known.append(
            [f"{noise:.0%}", str(boundary), *(f"{found.excess * 100:+.1f}%" for found in truths.values())]
        )
        for protocol in protocols:
            rules = structs.replace(protocol.rules, quiet_s=spell_s)
            began = time.process_time()
            held = [one_run(preset, rules, truths, boundary, 100 * seed + number) for number in range(runs)]
            tell(f"engine, spells {noise:g}, {protocol.name}: {time.process_time() - began:.0f} s")
            rows.append([f"{noise:.0%}", protocol.name, *row(held)])
    yield (
        f"### The whole program in simulated time: {SHAPE}, `{SLO}`, steps vary by {STEP_NOISE:.0%} each, "
        f"{runs} runs a row\n"
    )
    yield from table(["spells vary by", "protocol", *HEAD], rows)
    yield f"The p95 of {TRUTH_TRIALS} trials together, against the limit:\n"
    yield from table(["spells vary by", "boundary", *(f"C={level}" for level in LEVELS)], known)
