"""The soak: one load for a stated time, in as many segments as it takes. It decides and never does."""

from __future__ import annotations

from collections.abc import Generator, Sequence

from nameplate.contract.contract import Contract
from nameplate.contract.errors import CallerError
from nameplate.contract.plan import TrialPlan
from nameplate.contract.soak import SOAK_REQUESTS
from nameplate.contract.soak_terms import SoakTerms
from nameplate.measure.soak.segment import SegmentResult
from nameplate.measure.soak_record import left_of, left_terms

Soak = Generator[TrialPlan, SegmentResult, tuple[SegmentResult, ...]]


def soak(contract: Contract, reads_bytes: Sequence[int] = ()) -> Soak:
    """Yield the plan of each segment that is still to be run, take its result, and return all of them.

    `reads_bytes` has an entry for each segment that ended before: how many bytes of raw reads it keeps. Their ends,
    whatever they were, do not end the soak; a later one that ends before its time does. CallerError, on the first
    step, for a contract without a soak.
    """
    terms = terms_of(contract)
    segments: list[SegmentResult] = []
    while (left_ns := left_of(terms, segments)) > 0:
        number = len(segments) + 1
        segments.append((yield segment_plan(contract, number, left_ns, sum(reads_bytes[: number - 1]))))
        if number > len(reads_bytes) and segments[-1].ended_by != "duration":
            break
    return tuple(segments)


def terms_of(contract: Contract) -> SoakTerms:
    """Return the terms of a soak's contract; CallerError where it has none."""
    if contract.soak is None or len(contract.shapes) != 1:
        raise CallerError("The contract is that of another study, and no soak.")
    return contract.soak


def segment_plan(contract: Contract, number: int, left_ns: int, reads_bytes: int = 0) -> TrialPlan:
    """Return the plan of a segment that submits for `left_ns`; those before it keep `reads_bytes` of raw reads."""
    terms = terms_of(contract)
    return TrialPlan(
        name=f"soak.s{number}",
        role="soak",
        shape=contract.shapes[0],
        concurrency=terms.concurrency,
        requests=SOAK_REQUESTS,
        warmup=0,
        arrivals=terms.arrivals,
        soak=left_terms(terms, left_ns, reads_bytes),
    )
