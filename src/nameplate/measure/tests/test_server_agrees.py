"""Where a cell is held against the server's own view: its KV pool, its counter behind slow pages, its ends."""

from __future__ import annotations

from msgspec import structs

from nameplate.contract.identity import Fact, Identity
from nameplate.measure.cell import Cell, measure_cell
from nameplate.measure.facts import facts_of
from nameplate.measure.measurement import measure
from nameplate.measure.prefill import measure_prefill
from nameplate.measure.server_side import ServerSide
from nameplate.measure.tests.held_cells import BEGIN, END, MS, Part, S, cell_evidence, every, sample
from nameplate.measure.tests.trials import evidence, ok_row
from nameplate.measure.trial_evidence import TrialEvidence

POOL, BLOCK = 16_000, 100


def known(given: TrialEvidence) -> TrialEvidence:
    """Return the evidence on a server that tells its pool and its blocks."""
    facts = {"kv_tokens": Fact(POOL, "test"), "block_size_tokens": Fact(BLOCK, "test")}
    return structs.replace(given, identity_before=Identity(facts))


def measured(given: TrialEvidence) -> Cell:
    return measure_cell(given, given.held)


def growing() -> tuple[list[Part], list[float]]:
    """Return two streams of 1,000 prompt tokens, a token each 10 ms, and how full the pool is at each second."""
    parts = [Part(stream, every(10 * MS), prompt_tokens=1000) for stream in range(2)]
    held = []
    for at in range(4):
        produced = sum(t_ns <= BEGIN + at * S for t_ns in every(10 * MS))
        own = -(-(1000 + produced) // BLOCK) * BLOCK
        held.append(2 * own / POOL)
    return parts, held


def test_the_claim_is_what_the_pool_holds_at_each_look() -> None:
    """Prompts and what was produced by then, in whole blocks, at the moments of the server's samples."""
    parts, held = growing()
    looks = [sample(BEGIN + at * S, kv_usage_mean=use, kv_usage_max=use) for at, use in enumerate(held)]
    claim = measured(known(cell_evidence(parts, samples=looks))).kv
    assert claim is not None and claim.held_tokens is not None
    assert claim.prompt_tokens == 2000
    assert abs(claim.held_tokens - claim.claim_tokens) <= 0.5


def test_a_request_that_ended_holds_nothing() -> None:
    """A stream's earlier request is out of the pool when its next one is in it."""
    parts = [
        Part(0, every(10 * MS, 2 * S, BEGIN + S), end_ns=BEGIN + S, outcome="ok", prompt_tokens=1000),
        Part(0, every(10 * MS, BEGIN + S + 50 * MS), index=1, sent_ns=BEGIN + S, phase="steady", prompt_tokens=1000),
    ]  # fmt: skip
    looks = [sample(BEGIN + 2 * S, 1, kv_usage_mean=0.1)]
    claim = measured(known(cell_evidence(parts, streams=1, samples=looks))).kv
    assert claim is not None and claim.claim_tokens == 1100


def test_without_gauges_the_claim_is_that_of_the_middle() -> None:
    """A server that does not tell its use leaves the claim as arithmetic, at the middle of the window."""
    parts, held = growing()
    claim = measured(known(cell_evidence(parts))).kv
    assert claim is not None and claim.held_tokens is None and claim.ratio is None
    assert claim.claim_tokens == round(held[2] * POOL)


def test_a_slow_page_is_no_end_of_a_comparison() -> None:
    """Of the first and last looks those are taken whose pages came fast: a slow one tells of an earlier time."""
    looks = [
        sample(BEGIN + at * S // 2, output_tokens_total=100 * at, scrape_ns=600 * MS if at in (0, 7) else 15 * MS)
        for at in range(8)
    ]  # fmt: skip
    counter = measured(cell_evidence([Part(0, every(10 * MS))], streams=1, samples=looks)).counter
    assert counter is not None
    assert (counter.begin_ns, counter.end_ns) == (BEGIN + S // 2, BEGIN + 3 * S)
    assert counter.doubt_tokens == 2
    quick = [structs.replace(look, scrape_ns=None) for look in looks]
    counter = measured(cell_evidence([Part(0, every(10 * MS))], streams=1, samples=quick)).counter
    assert counter is not None and (counter.begin_ns, counter.end_ns) == (looks[0].t_ns, looks[-1].t_ns)
    assert counter.doubt_tokens == 0


def test_more_ended_than_we_sent_is_other_traffic() -> None:
    """Where requests are cut the counts need not agree, but a server that ended more than we sent served a stranger."""
    given = cell_evidence([Part(stream, every(10 * MS)) for stream in range(2)])
    for finished, strangers in ((1, 0), (2, 0), (3, 1), (None, 0)):
        told = None if finished is None else (("length", finished),)
        after = sample(END + S, 0, finished=told)
        case = structs.replace(given, idle_before=sample(0, 0, finished=(("length", 0),)), idle_after=after)
        assert facts_of(case, measure(case)).extra_requests_seen == strangers


def test_a_prefill_that_was_cut_is_in_no_count() -> None:
    """The request after the last sample is cut before its first output, and both counts leave it out."""
    ended = [ok_row(index, index * S, prompt_tokens=1000, cached_tokens=0) for index in range(3)]
    cut = ok_row(
        3, 3 * S, outcome="cancelled", prompt_tokens=None, cached_tokens=None, first_output_ns=None, output_tokens=None
    )  # fmt: skip
    server = ServerSide(scrapes=2, scrape_failures=0, prompt_tokens=3000, cached_tokens=0)
    prefill = measure_prefill(evidence([*ended, cut]), server)
    assert prefill.counted_tokens == prefill.computed_tokens == 3000
    begun = structs.replace(cut, first_output_ns=3 * S + MS)
    assert measure_prefill(evidence([*ended, begun]), server).counted_tokens is None
