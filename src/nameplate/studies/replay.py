"""A trial that repeats a recorded trace: the server surveyed, the trace fitted to it, its prompts' lengths counted."""

from __future__ import annotations

import statistics

from msgspec import Struct, structs

from nameplate.contract.arrivals import ArrivalPlan
from nameplate.contract.contract import Contract
from nameplate.contract.errors import NameplateError
from nameplate.contract.plan import TrialPlan
from nameplate.contract.shape import Shape
from nameplate.contract.trace import TracePlan
from nameplate.prompts.lengths import Lengths
from nameplate.prompts.trace_fit import TooLong, TooShort, fit_trace
from nameplate.studies.archive import StudyArchive
from nameplate.studies.conduct import Conditions, Prepared, setup_of, surveyed
from nameplate.studies.single import open_plan
from nameplate.trial.corpus import Replayed
from nameplate.trial.site import count_for_replay


class Replay(Struct, frozen=True, kw_only=True):
    """Ask for a trace to be repeated; the limits are those of the open loop."""

    trace: TracePlan
    too_long: TooLong = "refuse"
    too_short: TooShort = "refuse"
    outstanding_limit: int


def typical(trace: TracePlan) -> Shape:
    """Return the median lengths of a trace: the shape of what is sent beside it, such as its warm-up."""
    assert trace.rows is not None
    return Shape(
        statistics.median_low(row.input_tokens for row in trace.rows),
        statistics.median_low(row.output_tokens for row in trace.rows),
    )


def prepare_replay(
    conditions: Conditions, wanted: Contract, archive: StudyArchive, replay: Replay
) -> tuple[Prepared, TrialPlan]:
    """Survey the server, refuse or leave out what it cannot be sent, and plan the trial; all before any load."""
    journal, clock = archive.journal(), conditions.ground.clock
    trace = replay.trace
    assert trace.rows is not None
    try:
        site = surveyed(conditions, wanted.target, wanted, wanted.nonce, journal)
        most = max(row.input_tokens for row in trace.rows)
        limit = site.report.identity.integer("context_limit_tokens")
        conditions.watch.tell(f"counting prompts of up to {min(most, limit or most)} tokens")
        length = count_for_replay(
            site,
            min(most, limit or most),
            trace.block_tokens,
            wanted.nonce,
            lambda what, **detail: journal.note(clock.now_ns(), what, **detail),
        )
        lengths = Lengths(length.counted)
        fitted = fit_trace(
            trace,
            context_tokens=limit,
            floor_tokens=lengths.floor_tokens,
            template_tokens=lengths.template_tokens,
            too_long=replay.too_long,
            too_short=replay.too_short,
        )
    except NameplateError:
        # Nothing was measured: an empty directory would only stand in the way of the next try.
        journal.close()
        archive.discard()
        raise
    assert fitted.rows is not None
    shape = typical(fitted)
    contract = structs.replace(wanted, target=site.target, shapes=(shape,))
    archive.write_contract(contract)
    arrivals = ArrivalPlan(
        kind="trace",
        rate=(fitted.requests - 1) * 1e9 / fitted.duration_ns if fitted.duration_ns else 0.0,
        outstanding_limit=replay.outstanding_limit,
        seed=contract.seed,
        trace=fitted,
    )
    plan = open_plan(contract, shape, arrivals)
    corpus = Replayed(contract.nonce, length, fitted.rows, plan.warmup, shape)
    prepared = Prepared(
        archive=archive,
        journal=journal,
        site=site,
        contract=contract,
        setup=setup_of(conditions, site, contract),
        corpora={shape: corpus},
    )
    return prepared, plan
