"""From what a fold holds to a segment's result."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from nameplate.evidence import soak_events
from nameplate.evidence.header import TrialHeader
from nameplate.evidence.journal import JournalEntry
from nameplate.measure.from_disk import ENDED
from nameplate.measure.rates import Rate
from nameplate.measure.soak.client import Client
from nameplate.measure.soak.course import courses_of
from nameplate.measure.soak.cut import windows_of
from nameplate.measure.soak.lives import outages_of, parts_of
from nameplate.measure.soak.segment import SegmentResult, Unfinished
from nameplate.measure.soak.server import Server
from nameplate.measure.soak.steps import MICRO, Steps
from nameplate.measure.soak.tally import Tally
from nameplate.measure.windows import Window
from nameplate.verdict.tolerances import lateness_budget_ns

SUBMISSION = "submission began", "submission ended, to the whole step before"
RUNNING = "submission began", "the last evidence, to the whole step before"
SUBMITTING = SUBMISSION[1], RUNNING[1]
DRAINED = "submission began", "the drain ended"
SEEN = "submission began", "the last evidence"
COMPLETED = "first request sent", "last ok request ended"
# What is counted by the time in which all of it happened, as other tools do.
OUTPUT_ALONE, REQUESTS_ALONE = "output tokens of ok requests alone", "ok requests alone"


class Folded(Struct, kw_only=True):
    """Hold everything a fold has taken in, and what was found of requests without a row."""

    segment: str
    header: TrialHeader
    journal: Sequence[JournalEntry]
    tally: Tally
    server: Server
    client: Client
    unfinished: Sequence[Unfinished]
    never_sent: int
    duplicates: int
    untraced: int
    sealed: bool
    last_ns: int
    torn: tuple[str, ...]


def assemble(held: Folded) -> SegmentResult:
    """Return the segment's result."""
    header, tally, journal = held.header, held.tally, held.journal
    steps = tally.steps
    client = held.client.summed()
    submitted_ns = steps.begin_ns
    submit_ended_ns = moment(journal, soak_events.SUBMIT_ENDED)
    drained_ns = moment(journal, soak_events.DRAIN_ENDED)
    # What the parent does after the drain (idle, identity) belongs to nobody's time.
    seen_ns = max(submitted_ns, tally.last_ns, drained_ns if drained_ns is not None else held.last_ns)
    observed_ns = min(seen_ns, steps.horizon_ns)
    outages = outages_of(held.segment, journal, held.server, tally)
    parts = parts_of(held.segment, header, journal, held.server, tally, outages, observed_ns)
    counts = tally.counts(never_sent=held.never_sent, duplicates=held.duplicates, untraced=held.untraced)
    ended = drained_ns is not None
    given_up_ns = drained_ns if drained_ns is not None else observed_ns
    if held.unfinished:
        given_up_ns = max(left.watched_until_ns for left in held.unfinished)
    damage = list(tally.unknown)
    if counts.duplicates:
        damage.append(f"{counts.duplicates} rows repeat an index that has one")
    # A process that is killed takes its last second along: that is no damage.
    if counts.untraced and ended:
        damage.append(f"{counts.untraced} requests left no trace although the segment ended in order")
    if _reason(journal) == soak_events.OUTSTANDING_LIMIT:
        damage += _not_so_many(held, submit_ended_ns, counts.sent + counts.untraced)
    if steps.beyond:
        damage.append(f"{steps.beyond} moments or counts lie far beyond anything that the plan allows")
    return SegmentResult(
        segment=held.segment,
        plan=header.plan,
        contract=header.contract,
        clock=header.clock,
        tool_version=header.tool_version,
        started=header.started,
        sealed=held.sealed,
        ended=ended or moment(journal, ENDED) is not None,
        ended_by=_reason(journal),
        submitted_ns=submitted_ns,
        submit_ended_ns=submit_ended_ns,
        drained_ns=drained_ns,
        opening_ended_ns=tally.opening_ended_ns,
        observed_ns=observed_ns,
        step_ns=steps.step_ns,
        window_ns=steps.step_ns * tally.steps_a_window,
        counts=counts,
        tokens=tally.tokens(),
        rates=_rates(tally, submit_ended_ns, drained_ns, observed_ns),
        latencies={name: sketch.state() for name, sketch in tally.sketches().items()},
        slos=tally.slos,
        windows=windows_of(
            tally,
            held.server,
            client,
            header.started,
            parts,
            outages,
            submit_ended_ns=submit_ended_ns,
            observed_ns=observed_ns,
            whole=ended,
        ),
        courses=courses_of(tally, held.server, client, observed_ns),
        parts=parts,
        outages=outages,
        unfinished=tuple(held.unfinished),
        server_at_end=held.server.at_end(given_up_ns),
        clock_steps=held.client.clock_steps(held.segment, header.started),
        lateness_budget_ns=lateness_budget_ns(header.contract.slos),
        torn=held.torn,
        damage=tuple(damage),
    )


def moment(journal: Sequence[JournalEntry], what: str) -> int | None:
    """Return when something first happened, by the journal; None where it did not."""
    return next((entry.t_ns for entry in journal if entry.what == what), None)


def _reason(journal: Sequence[JournalEntry]) -> str | None:
    for entry in journal:
        if entry.what == soak_events.SUBMIT_ENDED:
            return str(entry.detail.get("reason", "")) or None
    return None


def _not_so_many(held: Folded, at_ns: int | None, sent: int) -> list[str]:
    """Say where the load is said to have come to its outstanding limit and rows do not bear it out.

    Nothing was sent after that moment; what did not end in the whole steps before it may have been unanswered.
    """
    arrivals, steps = held.header.plan.arrivals, held.tally.steps
    if arrivals is None or at_ns is None:
        return ["a closed loop is said to have come to an outstanding limit"]
    # Of several workers each has its share.
    limit = max(1, arrivals.outstanding_limit // held.header.workers)
    most = sent - sum(steps.ended[: steps.place(at_ns)])
    if most >= limit:
        return []
    return [
        f"the outstanding limit of {limit} is said to have ended the load, and at most {most} were unanswered"
    ]


def _rates(
    tally: Tally, submit_ended_ns: int | None, drained_ns: int | None, observed_ns: int
) -> tuple[Rate, ...]:
    """Return every rate with its window; none where the window is empty."""
    steps = tally.steps
    begin_ns = steps.begin_ns
    until_ns = submit_ended_ns if submit_ended_ns is not None else observed_ns
    whole_steps = max(0, (until_ns - begin_ns) // steps.step_ns)
    submission = Window(
        begin_ns, steps.edge_ns(whole_steps), *(SUBMISSION if submit_ended_ns is not None else RUNNING)
    )
    end_ns = drained_ns if drained_ns is not None else observed_ns
    everything = Window(begin_ns, end_ns, *(DRAINED if drained_ns is not None else SEEN))
    spread = any(steps.estimated)
    found = [
        _rate("output tokens that arrived", _tokens(steps, whole_steps), submission, spread),
        _rate("output tokens that arrived", _tokens(steps, len(steps)), everything, spread),
        _rate("requests sent", sum(steps.sent[:whole_steps]), submission),
        _rate("ok requests that ended", sum(steps.ok[:whole_steps]), submission),
        _rate("ok requests that ended", tally.ok, everything),
        _rate("input tokens of ok requests", tally.input_ok, everything),
    ]
    if tally.first_sent_ns is not None and tally.last_ok_ns is not None:
        completed = Window(tally.first_sent_ns, tally.last_ok_ns, *COMPLETED)
        found.append(_rate(OUTPUT_ALONE, tally.output_ok, completed, tally.estimated))
        found.append(_rate(REQUESTS_ALONE, tally.ok, completed))
    return tuple(rate for rate in found if rate is not None)


def _tokens(steps: Steps, count: int) -> float:
    return sum(steps.micro_tokens[:count]) / MICRO


def _rate(of: str, counted: float, window: Window, estimated: bool = False) -> Rate | None:
    if window.length_ns <= 0:
        return None
    return Rate(
        per_s=counted * 1e9 / window.length_ns,
        counted=float(counted),
        window=window,
        of=of,
        estimated=estimated,
    )
