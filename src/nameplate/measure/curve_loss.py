"""A loss of service, named from what is on disk: after what, during which request, in which state, and for how long."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from nameplate.engines.state import ServerSample
from nameplate.evidence import layout
from nameplate.evidence.journal import JournalEntry
from nameplate.evidence.reader import TrialReader
from nameplate.evidence.rows import RequestRow
from nameplate.wire.outcome import Outcome

# The entry of a study's journal that says so.
LOST = "service_lost"
# An error's words are shown to people: a server may send a page.
_WORDS = 500


class LastState(Struct, frozen=True, kw_only=True):
    """Hold what the server last said of itself, `before_s` before the first request failed; null is not told."""

    before_s: float | None
    running: int | None
    waiting: int | None
    kv_usage: float | None


class LostRequest(Struct, frozen=True, kw_only=True):
    """Hold the first request that failed: its index and phase, asked lengths in tokens, what it had got, and how long
    after it was sent it failed."""

    index: int
    phase: str
    input_tokens: int
    output_tokens: int
    got_tokens: int
    outcome: str
    error: str | None
    after_s: float | None


class Loss(Struct, frozen=True, kw_only=True):
    """Hold one loss of service.

    `load` is the level at which it happened, `trial` null where no load had begun. `completed` of `planned` requests of
    that trial had ended well, warm-up included. `returned` says whether the server answered its health check
    again, `waited_s` after the loss at most; null where that was not seen.
    """

    load: float
    trial: str | None
    error: str
    completed: int = 0
    planned: int = 0
    request: LostRequest | None = None
    last_state: LastState | None = None
    returned: bool | None = None
    waited_s: float | None = None


def losses_of(directory: Path, journal: Sequence[JournalEntry]) -> tuple[Loss, ...]:
    """Name every loss of service that a study's journal holds, from the evidence of its trials; in order of time."""
    found = []
    for entry in journal:
        if entry.what != LOST:
            continue
        detail = entry.detail
        # A name of one directory, whatever a journal holds: nothing outside the study is read.
        trial = Path(str(detail["trial"])).name if detail.get("trial") is not None else None
        loss = Loss(
            load=float(detail["load"]),
            trial=trial,
            error=str(detail["error"])[:_WORDS],
            returned=detail.get("returned"),
            waited_s=detail.get("waited_s"),
        )
        path = directory / layout.TRIALS / str(trial)
        found.append(_named(loss, path) if trial is not None and (path / layout.HEADER).exists() else loss)
    return tuple(found)


def refusal_words(rows: Sequence[RequestRow]) -> str | None:
    """Return what the server said to the first request that it refused; None where it said nothing."""
    said = next((row.error for row in rows if row.outcome == Outcome.http_error and row.error), None)
    return None if said is None else said[:_WORDS]


def read_refusal(directory: Path) -> str | None:
    """Return the refusal's words of a trial on disk."""
    return refusal_words(list(TrialReader(directory).rows()))


def _named(loss: Loss, path: Path) -> Loss:
    reader = TrialReader(path)
    header, rows = reader.header(), list(reader.rows())
    failed = [row for row in rows if row.outcome not in (Outcome.ok, Outcome.cancelled)]
    first = min(failed, key=lambda row: (row.end_ns is None, row.end_ns, row.index), default=None)
    request = None
    if first is not None:
        after_s = None
        if first.sent_ns is not None and first.end_ns is not None:
            after_s = (first.end_ns - first.sent_ns) / 1e9
        request = LostRequest(
            index=first.index,
            phase=first.phase,
            input_tokens=header.plan.shape.input_tokens,
            output_tokens=header.plan.shape.output_tokens,
            got_tokens=first.output_tokens if first.output_tokens is not None else first.output_events,
            outcome=first.outcome,
            error=None if first.error is None else first.error[:_WORDS],
            after_s=after_s,
        )
    samples = [s for s in reader.lines(layout.SERVER, ServerSample) if s.error is None]
    end_ns = first.end_ns if first is not None else None
    before = [sample for sample in samples if end_ns is None or sample.t_ns <= end_ns]
    state = None
    if before:
        last = before[-1]
        state = LastState(
            before_s=None if end_ns is None else (end_ns - last.t_ns) / 1e9,
            running=last.running,
            waiting=last.waiting,
            kv_usage=last.kv_usage_max if last.kv_usage_max is not None else last.kv_usage_mean,
        )
    return Loss(
        load=loss.load,
        trial=loss.trial,
        error=loss.error,
        completed=sum(row.outcome == Outcome.ok for row in rows),
        planned=header.plan.warmup + header.plan.requests,
        request=request,
        last_state=state,
        returned=loss.returned,
        waited_s=loss.waited_s,
    )
