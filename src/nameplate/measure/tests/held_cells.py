"""Build evidence of held streams for tests: streams that are ready at BEGIN and cut at the end of a window."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

from msgspec import structs

from nameplate.contract.plan import Arrival, Hold, Role, TrialPlan
from nameplate.contract.shape import Shape
from nameplate.engines.state import ServerSample
from nameplate.evidence.rows import RequestRow
from nameplate.evidence.timeline import Timeline
from nameplate.measure.held import Held
from nameplate.measure.readiness import Look
from nameplate.measure.tests.trials import MS, SHAPE, S, evidence, ok_row
from nameplate.measure.trial_evidence import TrialEvidence

BEGIN, WINDOW = 10 * S, 4 * S
END = BEGIN + WINDOW
LONG = Shape(5000, 16)


def hold_plan(streams: int, *, arrival: bool = False, warm: bool = False, shared: int = 0) -> TrialPlan:
    """Plan held streams with a window of four seconds."""
    hold = Hold(
        window_ns=WINDOW,
        stable_ns=S,
        ready_ns=60 * S,
        warm_streams=warm,
        arrival=Arrival(LONG, S, S, 30 * S) if arrival else None,
    )
    warmup = streams if warm else 0
    role: Role = "mixed" if arrival else "decode"
    return TrialPlan("t", role, Shape(1000, 4000), streams, streams, warmup, hold=hold, shared_tokens=shared)


def held(streams: int, **changes: object) -> Held:
    """Return the account of streams that were ready at BEGIN, nine seconds after they began."""
    saw = Look(streams=streams, produced=streams, running=streams, waiting=0, server_tells=True)
    whole = Held(
        streams_began_ns=S,
        decided_ns=BEGIN,
        deadline_ns=61 * S,
        saw=saw,
        server_tells=True,
        begin_ns=BEGIN,
        end_ns=END,
    )
    return structs.replace(whole, **changes)


class Part:
    """One request of a stream with its events: `times_ns` with `tokens` each, uncounted where None."""

    def __init__(
        self,
        stream: int,
        times_ns: Sequence[int],
        tokens: int | Sequence[int] | None = 1,
        *,
        index: int | None = None,
        sent_ns: int = S,
        **more: object,
    ) -> None:
        counts = [tokens] * len(times_ns) if isinstance(tokens, int) else tokens
        total = len(times_ns) if counts is None else sum(counts)
        values: dict[str, object] = {
            "phase": "opening",
            "outcome": "cancelled",
            "end_ns": END + MS,
            "finish_ns": None,
            "finish_reason": None,
            "first_output_ns": times_ns[0] if times_ns else None,
            "first_answer_ns": times_ns[0] if times_ns else None,
            "second_output_ns": times_ns[1] if len(times_ns) > 1 else None,
            "last_output_ns": times_ns[-1] if times_ns else None,
            "output_events": len(times_ns),
            "output_tokens": total if times_ns else None,
            "output_tokens_source": ("usage" if counts is not None else "estimated") if times_ns else None,
            "asked_output_tokens": 4000,
            "cached_tokens": 0,
        }
        self.row: RequestRow = ok_row(
            stream if index is None else index,
            sent_ns,
            slot=stream,
            **{**values, **more},  # type: ignore[arg-type]
        )
        self.timeline = Timeline(
            self.row.index, array("q", times_ns), None if counts is None else array("i", counts)
        )


def every(gap_ns: int, begin_ns: int = 2 * S, end_ns: int = END + MS) -> range:
    """Return event times at a fixed distance."""
    return range(begin_ns, end_ns, gap_ns)


def sample(t_ns: int, running: int | None = 2, waiting: int | None = 0, **more: object) -> ServerSample:
    """Return one look at the server."""
    return ServerSample(t_ns=t_ns, running=running, waiting=waiting, **more)  # type: ignore[arg-type]


def samples(running: int, waiting: int = 0, step_ns: int = S // 2) -> list[ServerSample]:
    """Return looks at a steady server from the start to the end of the window."""
    return [sample(t_ns, running, waiting) for t_ns in range(S, END, step_ns)]


def cell_evidence(
    parts: Sequence[Part], *, streams: int = 2, plan: TrialPlan | None = None, **more: object
) -> TrialEvidence:
    """Return evidence of held streams made of these requests, with an observed, quiet server."""
    values: dict[str, object] = {
        "plan": plan or hold_plan(streams),
        "timelines": [part.timeline for part in parts],
        "held": held(streams),
        "samples": samples(streams),
        "ended_ns": END + 5 * S,
    }
    return evidence([part.row for part in parts], **{**values, **more})  # type: ignore[arg-type]


def shifted(given: TrialEvidence, by_ns: int) -> TrialEvidence:
    """Return the same evidence on a clock that shows another time."""
    row_times = [name for name in RequestRow.__struct_fields__ if name.endswith("_ns")]
    durations = {"longest_gap_ns", "connect_ns", "idle_ns"}

    def moved(row: RequestRow) -> RequestRow:
        changes = {
            name: getattr(row, name) + by_ns
            for name in row_times
            if name not in durations and getattr(row, name) is not None
        }
        return structs.replace(row, **changes)

    account = given.held
    if account is not None:
        names = ("streams_began_ns", "decided_ns", "deadline_ns", "begin_ns", "end_ns")
        account = structs.replace(
            account,
            **{n: getattr(account, n) + by_ns for n in names if getattr(account, n) is not None},
        )
    return structs.replace(
        given,
        rows=[moved(row) for row in given.rows],
        timelines=[
            Timeline(t.index, array("q", (at + by_ns for at in t.times_ns)), t.tokens)
            for t in given.timelines
        ],
        samples=[structs.replace(each, t_ns=each.t_ns + by_ns) for each in given.samples],
        held=account,
        started_ns=given.started_ns + by_ns,
        ended_ns=given.ended_ns + by_ns,
    )


__all__ = ["BEGIN", "END", "LONG", "MS", "SHAPE", "WINDOW", "Part", "S", "cell_evidence", "every", "held"]
