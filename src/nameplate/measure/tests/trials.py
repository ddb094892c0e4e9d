"""Build evidence of trials for tests: rows, timelines and samples of a server with known times."""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Callable, Sequence

from msgspec import structs

from nameplate.contract.contract import Contract
from nameplate.contract.identity import Fact, Identity
from nameplate.contract.plan import TrialPlan
from nameplate.contract.rules import Rules
from nameplate.contract.shape import Shape
from nameplate.contract.slo import Slo
from nameplate.contract.target import Target
from nameplate.evidence.rows import RequestRow
from nameplate.evidence.timeline import Timeline
from nameplate.measure.trial_evidence import TrialEvidence
from nameplate.schedule.open_loop import OpenLoop
from nameplate.schedule.stage import Phase, stages_of

MS = 1_000_000
S = 1_000_000_000
SHAPE = Shape(1000, 11)


def contract(*slos: str, rules: Rules | None = None, shapes: Sequence[Shape] = (SHAPE,)) -> Contract:
    """Return a contract of these SLOs, p95 TTFT below ten seconds by default."""
    return Contract(
        target=Target.parse("http://127.0.0.1:8000"),
        shapes=tuple(shapes),
        slos=tuple(Slo.parse(text) for text in slos or ("ttft p95 < 10s",)),
        nonce="n0",
        rules=rules or Rules(),
    )


def identity(**facts: str | float | bool) -> Identity:
    return Identity({name: Fact(value, "test") for name, value in facts.items()})


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def ok_row(
    index: int,
    sent_ns: int,
    *,
    phase: Phase = "steady",
    slot: int = 0,
    ttft_ns: int = 100 * MS,
    itl_ns: int = 10 * MS,
    tokens: int = SHAPE.output_tokens,
    **more: object,
) -> RequestRow:
    """Return an ok row whose `tokens` outputs come one by one, `itl_ns` apart; it ends with its last output."""
    first = sent_ns + ttft_ns
    last = first + itl_ns * (tokens - 1)
    values: dict[str, object] = {
        "index": index,
        "phase": phase,
        "class_": str(SHAPE),
        "slot": slot,
        "scheduled_ns": sent_ns,
        "sent_ns": sent_ns,
        "body_sent_ns": sent_ns,
        "first_output_ns": first,
        "first_answer_ns": first,
        "last_output_ns": last,
        "finish_ns": last,
        "end_ns": last,
        "outcome": "ok",
        "http_status": 200,
        "finish_reason": "length",
        "asked_output_tokens": tokens,
        "prompt_tokens": SHAPE.input_tokens,
        "cached_tokens": 0,
        "output_tokens": tokens,
        "output_tokens_source": "usage",
        "output_events": tokens,
        "first_event_tokens": 1,
        "longest_gap_ns": itl_ns,
        "output_bytes": 4 * tokens,
        "longest_channel_chars": 4 * tokens,
        "prompt_sha256": digest(f"prompt {index}"),
        "prompt_head_sha256": digest(f"head {index}"),
        "output_sha256": digest(f"output {index}"),
    }
    return RequestRow(**{**values, **more})  # type: ignore[arg-type]


def timeline_of(row: RequestRow, *, counted: bool = True) -> Timeline:
    """Return the timeline of an `ok_row`: its events stand evenly between first and last output."""
    assert row.first_output_ns is not None and row.last_output_ns is not None
    steps = max(1, row.output_events - 1)
    width = (row.last_output_ns - row.first_output_ns) // steps
    times = array("q", (row.first_output_ns + width * i for i in range(row.output_events)))
    return Timeline(row.index, times, array("i", [1] * row.output_events) if counted else None)


def closed_loop(
    concurrency: int,
    requests: int,
    *,
    warmup: int = 2,
    ttft: Callable[[int], int] = lambda _: 100 * MS,
    itl_ns: int = 10 * MS,
) -> list[RequestRow]:
    """Return the rows of a perfect closed loop: warm-up alone, then `requests` over the slots, none ever empty."""
    rows = []
    now = S
    for index in range(warmup):
        rows.append(ok_row(index, now, phase="warmup", itl_ns=itl_ns))
        now = rows[-1].end_ns or now
    now += S
    free = [(now, slot) for slot in range(concurrency)]
    for number in range(requests):
        free.sort()
        sent, slot = free.pop(0)
        phase: Phase = "opening" if number < concurrency else "steady"
        row = ok_row(warmup + number, sent, phase=phase, slot=slot, ttft_ns=ttft(number), itl_ns=itl_ns)
        rows.append(row)
        free.append((row.end_ns or sent, slot))
    return rows


def open_loop(plan: TrialPlan, *, began_ns: int = 10 * S, ttft_ns: int = 100 * MS) -> list[RequestRow]:
    """Return the rows of a plan of arrivals that was delivered to the nanosecond."""
    stage = stages_of(plan)[-1]
    assert isinstance(stage.schedule, OpenLoop)
    return [
        structs.replace(ok_row(stage.first_index + offset, began_ns + due, ttft_ns=ttft_ns), slot=None)
        for offset, due in stage.schedule.arrivals()
    ]


def late(row: RequestRow, sent_ns: int) -> RequestRow:
    """Return the row of a request that was sent at another time than it was due."""
    return structs.replace(row, sent_ns=sent_ns, body_sent_ns=sent_ns)


def evidence(
    rows: Sequence[RequestRow] | None = None, *, concurrency: int = 4, requests: int = 64, **more: object
) -> TrialEvidence:
    """Return whole, sound evidence of a closed loop, with fields replaced by `more`."""
    held = closed_loop(concurrency, requests) if rows is None else list(rows)
    facts = identity(engine="vllm", model="m", block_size_tokens=16)
    values: dict[str, object] = {
        "contract": contract(),
        "plan": TrialPlan("t", "single", SHAPE, concurrency, requests, 2),
        "clock": "live",
        "rows": held,
        "timelines": [timeline_of(row) for row in held if row.outcome == "ok" and row.output_events],
        "since_empty_ns": [200_000] * 100,
        "arrival_doubt_ns": [0] * 100,
        "identity_before": facts,
        "identity_after": facts,
        "template_floor_tokens": 0,
        "started_ns": 0,
        "ended_ns": max((row.end_ns or 0 for row in held), default=0) + S,
    }
    return TrialEvidence(**{**values, **more})  # type: ignore[arg-type]
