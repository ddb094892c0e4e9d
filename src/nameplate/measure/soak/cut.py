"""A segment cut into its windows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from nameplate.evidence.header import ClockPair
from nameplate.measure.soak.client import ClientColumns
from nameplate.measure.soak.segment import Outage, Part
from nameplate.measure.soak.server import Server
from nameplate.measure.soak.steps import MICRO, outstanding_in
from nameplate.measure.soak.tally import FROM_SCHEDULE, SEND_LAG, Tally, WindowTally
from nameplate.measure.soak.window import WindowResult

_NOTHING = WindowTally()


def windows_of(
    tally: Tally,
    server: Server,
    client: ClientColumns,
    started: ClockPair,
    parts: Sequence[Part],
    outages: Sequence[Outage],
    *,
    submit_ended_ns: int | None,
    observed_ns: int,
    whole: bool,
) -> tuple[WindowResult, ...]:
    """Return a segment's windows from the begin of submission to the last evidence; `whole` if it ended in order."""
    steps, width = tally.steps, tally.steps_a_window
    length_ns = width * steps.step_ns
    # What happens in the very last moment belongs to a window as well.
    count = (observed_ns - steps.begin_ns) // length_ns + 1
    levels = list(steps.levels(min(count * width, len(steps))))
    levels += [levels[-1] if levels else 0] * (count * width - len(levels) + 1)
    found = []
    for number in range(count):
        begin_ns = steps.begin_ns + number * length_ns
        end_ns = begin_ns + length_ns
        observed = min(end_ns, observed_ns) - begin_ns
        held = tally.windows.get(number, _NOTHING)
        first, after = number * width, (number + 1) * width
        tokens = sum(steps.micro_tokens[first:after]) / MICRO
        load = _load(begin_ns, end_ns, submit_ended_ns)
        part, notes = _place(begin_ns, min(end_ns, observed_ns), parts, outages)
        if observed < length_ns:
            seen = f"{observed / 1e9:.0f} s of {length_ns / 1e9:.0f} s were observed"
            notes.append(seen + ("" if whole else ": evidence ends here"))
        if load == "both":
            notes.append("submission ended in it")
        shown = -(-observed // steps.step_ns)
        found.append(
            WindowResult(
                number=number,
                begin_ns=begin_ns,
                end_ns=end_ns,
                observed_ns=observed,
                begin_wall_ns=begin_ns - started.monotonic_ns + started.wall_ns,
                load=load,
                part=part,
                partial=observed < length_ns,
                notes=tuple(notes),
                sent=held.sent,
                completed=held.completed,
                failed=dict(sorted(held.failed.items())),
                cancelled=held.cancelled,
                output_tokens=tokens,
                estimated=any(steps.estimated[first:after]),
                output_tokens_per_s=_per_s(tokens, observed),
                input_tokens=held.input_tokens,
                input_tokens_per_s=_per_s(held.input_tokens, observed),
                requests_per_s=_per_s(held.completed, observed),
                ttft=held.sketches["ttft"].summarise(),
                ttft_from_schedule=held.sketches[FROM_SCHEDULE].summarise(),
                itl=held.sketches["itl"].summarise(),
                e2e=held.sketches["e2e"].summarise(),
                send_lag=held.sketches[SEND_LAG].summarise(),
                outstanding=outstanding_in(steps, levels, first, first + shown, observed),
                server=server.window(begin_ns, end_ns),
                client=client.window(begin_ns, end_ns),
            )
        )
    return tuple(found)


def _load(begin_ns: int, end_ns: int, submit_ended_ns: int | None) -> Literal["submission", "drain", "both"]:
    if submit_ended_ns is None or end_ns <= submit_ended_ns:
        return "submission"
    return "drain" if begin_ns >= submit_ended_ns else "both"


def _place(
    begin_ns: int, end_ns: int, parts: Sequence[Part], outages: Sequence[Outage]
) -> tuple[int | None, list[str]]:
    """Return the part that a window lies in, and what it touches beside it."""
    notes = []
    for outage in outages:
        # What failed with the server may end before anybody noted the loss, and recovery takes longer than its return.
        first = (
            outage.lost_ns
            if outage.first_failure_ns is None
            else min(outage.lost_ns, outage.first_failure_ns)
        )
        last = outage.first_success_ns if outage.first_success_ns is not None else outage.back_ns
        if first < end_ns and (last is None or last >= begin_ns):
            notes.append(f"the server was lost ({outage.sign}) or had not recovered")
    inside = [part.number for part in parts if part.begin_ns <= begin_ns and end_ns <= part.end_ns]
    return (inside[0] if inside and not notes else None), notes


def _per_s(count: float, observed_ns: int) -> float | None:
    return count * 1e9 / observed_ns if observed_ns > 0 else None
