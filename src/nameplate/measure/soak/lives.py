"""The lives of a server under a soak: parts between its restarts, and how it was lost and came back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec
from msgspec import Struct, structs

from nameplate.contract.identity import Identity, compare
from nameplate.evidence import soak_events
from nameplate.evidence.header import TrialHeader
from nameplate.evidence.journal import JournalEntry
from nameplate.evidence.soak_events import ServerBack, ServerLost
from nameplate.measure.soak.segment import Outage, Part
from nameplate.measure.soak.server import Server
from nameplate.measure.soak.tally import Tally


class _Loss(Struct):
    lost_ns: int
    sign: str
    back_ns: int | None = None
    restarted: bool | None = None


def outages_of(
    segment: str, journal: Sequence[JournalEntry], server: Server, tally: Tally
) -> tuple[Outage, ...]:
    """Return every loss of the server: as the journal noted it, and restarts that only the samples show."""
    losses = _losses(journal)
    for before_ns, after_ns in server.restarts:
        if not any(loss.lost_ns <= after_ns and before_ns <= _until(loss) for loss in losses):
            losses.append(_Loss(before_ns, "samples of another process", after_ns, True))
    losses.sort(key=lambda loss: loss.lost_ns)
    return tuple(_outage(segment, loss, tally) for loss in losses)


def parts_of(
    segment: str,
    header: TrialHeader,
    journal: Sequence[JournalEntry],
    server: Server,
    tally: Tally,
    outages: Sequence[Outage],
    observed_ns: int,
) -> tuple[Part, ...]:
    """Return the server's parts of a segment; where nobody knows whether it is the same process, a new one begins."""
    identities = {
        entry.t_ns: _back(entry).identity for entry in journal if entry.what == soak_events.SERVER_BACK
    }
    parts: list[Part] = []
    identity, begin_ns, begins = header.identity, tally.steps.begin_ns, "submission began"
    for outage in [held for held in outages if held.restarted is not False]:
        end_ns = max(begin_ns, outage.lost_ns)
        parts.append(_part(segment, len(parts), identity, begin_ns, end_ns, header, server, tally))
        parts[-1] = structs.replace(parts[-1], begins=begins, ends=f"server lost: {outage.sign}")
        if outage.back_ns is None:
            return _compared(parts)
        # Without a reading of its own a part's identity is unknown, not that of the part before.
        identity = identities.get(outage.back_ns, Identity())
        begin_ns, begins = outage.back_ns, "server back"
    last = _part(segment, len(parts), identity, begin_ns, max(begin_ns, observed_ns), header, server, tally)
    parts.append(structs.replace(last, begins=begins, ends="end of the segment"))
    return _compared(parts)


def _part(
    segment: str,
    number: int,
    identity: Identity,
    begin_ns: int,
    end_ns: int,
    header: TrialHeader,
    server: Server,
    tally: Tally,
) -> Part:
    inside = server.between(begin_ns, end_ns)
    running, kv_usage = server.spread("running", inside), server.spread("kv_usage", inside)
    pool, budget = (
        identity.integer("kv_tokens"),
        header.plan.shape.input_tokens + header.plan.shape.output_tokens,
    )
    resident = kv_usage.mean * pool if kv_usage is not None and pool is not None else None
    steps = tally.steps
    first, after = steps.place(begin_ns), steps.place(end_ns)
    return Part(
        segment=segment,
        number=number,
        begin_ns=begin_ns,
        end_ns=end_ns,
        begins="",
        ends="",
        identity=identity,
        process_start_time_s=_number(identity, "process_start_time_s"),
        kv_tokens=pool,
        full_budget_tokens=budget,
        equivalents_full=None if pool is None else pool / budget,
        running=running,
        kv_usage=kv_usage,
        resident_tokens=resident,
        equivalents_resident=None if resident is None else resident / budget,
        tokens_per_running=resident / running.mean
        if resident is not None and running and running.mean
        else None,
        ok=sum(steps.ok[first:after]),
        failed=sum(steps.failed[first:after]),
    )


def _compared(parts: Sequence[Part]) -> tuple[Part, ...]:
    return tuple(
        structs.replace(part, changes=compare(parts[at - 1].identity, part.identity)) if at else part
        for at, part in enumerate(parts)
    )


def _losses(journal: Sequence[JournalEntry]) -> list[_Loss]:
    found: list[_Loss] = []
    for entry in journal:
        if entry.what == soak_events.SERVER_LOST:
            lost = msgspec.convert(entry.detail, ServerLost)
            found.append(_Loss(entry.t_ns, lost.detail or lost.sign))
        elif entry.what == soak_events.SERVER_BACK:
            back = _back(entry)
            open_loss = next((loss for loss in reversed(found) if loss.back_ns is None), None)
            if open_loss is None:
                open_loss = _Loss(back.lost_ns, "its return")
                found.append(open_loss)
            open_loss.back_ns, open_loss.restarted = entry.t_ns, back.restarted
    return found


def _back(entry: JournalEntry) -> ServerBack:
    return msgspec.convert(entry.detail, ServerBack)


def _until(loss: _Loss) -> int:
    return loss.back_ns if loss.back_ns is not None else 1 << 62


def _outage(segment: str, loss: _Loss, tally: Tally) -> Outage:
    steps = tally.steps
    last_success = steps.latest_ok(loss.lost_ns)
    first_failure = steps.earliest(
        steps.first_failed_ns, last_success + 1 if last_success is not None else steps.begin_ns
    )
    back_ns = loss.back_ns
    success = steps.earliest(steps.first_ok_ns, loss.lost_ns + 1)
    output = None if back_ns is None else steps.earliest(steps.first_output_ns, loss.lost_ns + 1)
    if first_failure is not None and success is not None and first_failure > success:
        first_failure = None
    failed = _failures(tally, last_success, success)
    since = first_failure if first_failure is not None else loss.lost_ns
    return Outage(
        segment=segment,
        lost_ns=loss.lost_ns,
        back_ns=back_ns,
        restarted=loss.restarted,
        sign=loss.sign,
        away_ns=None if back_ns is None else back_ns - loss.lost_ns,
        last_success_ns=last_success,
        first_failure_ns=first_failure,
        first_output_ns=output,
        first_success_ns=success,
        recovery_ns=None if success is None else success - since,
        failures=sum(failed.values()),
        failed_by=dict(sorted(failed.items())),
    )


def _failures(tally: Tally, after_ns: int | None, before_ns: int | None) -> Counter[str]:
    """Count failures between two successes, to the step that each lies in."""
    steps = tally.steps
    first = 0 if after_ns is None else steps.place(after_ns)
    last = len(steps) if before_ns is None else steps.place(before_ns)
    found: Counter[str] = Counter()
    for (step, name), count in tally.failed_at.items():
        if first <= step <= last:
            found[name] += count
    return found


def _number(identity: Identity, name: str) -> float | None:
    value = identity.value(name)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
