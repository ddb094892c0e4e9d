"""The answer of a curve study: the sentence first, then the levels, then two panels that show them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import Group, RenderableType
from rich.text import Text

from nameplate.contract.curve import CurvePlan, say_load
from nameplate.contract.identity import Value
from nameplate.measure.curve_loss import Loss
from nameplate.measure.curve_point import Point
from nameplate.measure.curve_result import CurveResult, LevelRow
from nameplate.measure.waits import Estimate
from nameplate.report import numbers
from nameplate.report.bars import Bar, Panel, Panels
from nameplate.report.curve_tables import climb_table, load_table
from nameplate.report.identity import one_line
from nameplate.report.layout import Command, facts, heading, indented, stacked
from nameplate.report.safe import safe, safe_text
from nameplate.report.style import style_of
from nameplate.verdict.curve import Curve, differing
from nameplate.verdict.curve_level import LevelStatus

# Steady and whole rates that differ by more than this are told: ramp, drain and the window's edges make up for it.
EDGES = 0.03


def curve_summary(result: CurveResult, directory: Path | str, again: str | None = None) -> RenderableType:
    """Return the whole answer of a curve study; `again` is the command line that repeats it, quoted for a shell."""
    plan = _plan(result)
    table = climb_table(result) if plan.kind == "input" else load_table(result)
    return stacked(
        (
            _answer(result),
            Group(heading(sample_words(result)), indented(table)),
            _panels(result),
            _without_number(result),
            _notes(result),
            _ending(result, directory, again),
        )
    )


def _plan(result: CurveResult) -> CurvePlan:
    assert result.contract.curve is not None
    return result.contract.curve


def _answer(result: CurveResult) -> RenderableType:
    lines: list[RenderableType] = [
        Text(loss_words(result, loss), style=style_of("failed")) for loss in result.losses
    ]
    several = len(result.curves) > 1
    if several:
        lines.append(Text(split_words(result), style=style_of("noisy")))
    for curve, said in zip(result.curves, result.sentences, strict=True):
        text = f"{limits_words(curve, result.curves)}: {said}" if several else said
        lines.append(Text(safe(text, 2000), style="bold green" if result.exit_code == 0 else "bold yellow"))
    if not result.curves:
        lines.append(Text("No level has a number, so there is no curve.", style="bold yellow"))
    if result.exit_code not in (0, None):
        lines.append(Text(f"Incomplete: {safe(result.reason.rstrip('.'), 1000)}."))
    lines.append(Text(f"{safe(result.contract.target.url)}: {one_line(result.identity.facts)}"))
    return Group(*lines)


def split_words(result: CurveResult) -> str:
    """Say by what the server's configurations differ: their levels are no one curve."""
    first = result.curves[0].configuration
    names = {name for other in result.curves[1:] for name in differing(first, other.configuration)}
    said = " and ".join(_words(name) for name in sorted(names))
    return f"{len(result.curves)} curves, not one: {said} changed between levels."


def limits_words(curve: Curve, curves: Sequence[Curve]) -> str:
    """Name a curve by what tells it from the others."""
    names = sorted({name for other in curves for name in differing(curve.configuration, other.configuration)})
    return ", ".join(f"{_words(name)} {_value(curve.configuration, name)}" for name in names)


def _value(configuration: Mapping[str, Value], name: str) -> str:
    value = configuration[name]
    return f"{value:,}" if isinstance(value, int) else safe(value, 80)


def _words(name: str) -> str:
    return name.replace("_", " ")


def sample_words(result: CurveResult) -> str:
    """Say which requests the numbers are of."""
    plan = _plan(result)
    if plan.kind == "input":
        return f"One request at a time, {plan.output_tokens:,} output tokens"
    shape = result.contract.shapes[0]
    sample = "requests after the opening wave" if result.basis == "steady" else "all requests"
    if plan.kind == "rate":
        sample = "requests after the warm-up" if result.basis == "steady" else "all requests"
        sample += ", TTFT from when each was due"
    return f"{shape}, {sample}"


def _panels(result: CurveResult) -> RenderableType | None:
    """Draw output and TTFT by level, or for a climb TTFT and KV use, each on its own scale."""
    plan = _plan(result)
    rows = [row for row in result.rows if row.points]
    if len(rows) < 2:
        return None
    knees = {curve.knee.level for curve in result.curves}
    ttft, other = [], []
    for row in rows:
        point = middle(result, row)
        sample = point.sample(result.basis)
        label = say_load(plan.kind, row.load)
        mark = " < knee" if row.load in knees else ""
        ttft.append(Bar(label, sample.ttft.p50, numbers.brief(sample.ttft.p50)))
        if plan.kind == "input":
            used = (point.kv_usage.max or None) if point.kv_usage is not None else None
            other.append(Bar(label, used, numbers.share(used)))
        else:
            other.append(Bar(label, sample.output_per_s, numbers.rate(sample.output_per_s) + mark))
    waits = Panel("median TTFT", tuple(ttft), "yellow")
    if plan.kind == "input":
        return Panels((waits, Panel("most of the KV pool in use", tuple(other))))
    return Panels((Panel("output tok/s", tuple(other)), waits))


def middle(result: CurveResult, row: LevelRow) -> Point:
    """Return the trial of a level with the middle output rate, the lower of two; the row must have points."""
    ordered = sorted(row.points, key=lambda point: point.sample(result.basis).output_per_s or 0.0)
    return ordered[(len(ordered) - 1) // 2]


def _without_number(result: CurveResult) -> RenderableType | None:
    """Say of each level without a number why."""
    kind = _plan(result).kind
    rows = [row for row in result.rows if row.status is not LevelStatus.valid]
    if not rows:
        return None
    lines: list[tuple[str, RenderableType]] = []
    for row in rows:
        word = row.status.value.replace("_", " ")
        said = Text(word, style=style_of(row.status.value)).append(
            f": {safe(row.reason, 1000)}", style="none"
        )
        lines.append((say_load(kind, row.load), said))
    return Group(heading("Levels without a number"), facts(lines))


def loss_words(result: CurveResult, loss: Loss) -> str:
    """Name a loss of service: after what, during which request, in which state, and whether it came back."""
    plan = _plan(result)
    said = f"Service was lost at {say_load(plan.kind, loss.load)}"
    if loss.trial is None:
        said += ", before its first request"
    else:
        said += f", after {loss.completed:,} of {numbers.count(loss.planned, 'request')} had ended well"
    went_on = any(row.load == loss.load and row.status is not LevelStatus.lost for row in result.rows)
    if not went_on:
        measured = sum(row.status is LevelStatus.valid for row in result.rows)
        said += f" and {measured:,} of {numbers.count(len(result.rows), 'level')} had been measured"
    request = loss.request
    if request is not None:
        said += (
            f". Request {request.index} ({request.input_tokens:,} tokens in, {request.got_tokens:,} of "
            f"{request.output_tokens:,} out) ended as {safe(request.outcome, 60).replace('_', ' ')}"
        )
        if request.after_s is not None:
            said += f" {numbers.rough(request.after_s)} after it was sent"
    said += f". {_state(loss)} {_returned(loss)}"
    if went_on:
        said += " The study went on later."
    return said


def _state(loss: Loss) -> str:
    state = loss.last_state
    if state is None:
        return "What the server held then is not known."
    before = "" if state.before_s is None else f", {numbers.rough(state.before_s)} before"
    return (
        f"Last known{before}: {numbers.count(state.running)} running, {numbers.count(state.waiting)} waiting, "
        f"{numbers.share(state.kv_usage)} of the KV pool."
    )


def _returned(loss: Loss) -> str:
    if loss.returned is None:
        return "Whether it came back was not seen."
    if not loss.returned:
        return f"It did not come back within {numbers.rough(loss.waited_s)}."
    return (
        f"It came back within {numbers.rough(loss.waited_s)}." if loss.waited_s else "It came back by itself."
    )


def _notes(result: CurveResult) -> RenderableType | None:
    lines = note_lines(result)
    return Group(heading("Notes"), *(indented(Text(line)) for line in lines)) if lines else None


def note_lines(result: CurveResult) -> list[str]:
    """Say what the numbers rest on, and what is odd about them; each sentence once."""
    plan, lines = _plan(result), []
    for curve in result.curves:
        least = curve.knee.least_load
        if plan.kind == "concurrency" and least is not None and len(curve.levels) > 1:
            lines.append(
                f"The highest output needs at least {least:.3g} clients: requests get no faster for being more "
                "(asymptotic bound, Denning & Buzen 1978)."
            )
        if curve.knee.status != "unknown" and curve.knee.rule == "output":
            lines.append(
                "Knee: the lowest level from which every higher one gives less than "
                f"{100 * plan.hardly:.3g}% more output a doubling of the load."
            )
    lines += _parts(result)
    lines += _edges(result)
    off = [
        point
        for row in result.rows
        for point in row.points
        if point.by_little and point.in_flight and abs(point.by_little / point.in_flight - 1) > 0.05
    ]
    for point in off:
        assert point.by_little is not None and point.in_flight is not None
        lines.append(
            f"{point.trial}: by Little's law {point.by_little:.3g} requests were in flight, by the records "
            f"{point.in_flight:.3g}: its rate and latencies are of different requests."
        )
    grew = [say_load(plan.kind, row.load) for row in result.rows for p in row.points if p.queue == "rising"]
    if grew:
        lines.append(
            f"The queue grew all the while at {', '.join(dict.fromkeys(grew))}: no such rate is sustained."
        )
    if any(point.estimated for row in result.rows for point in row.points):
        lines.append("Output rates are estimated: the server does not count tokens along.")
    border = result.border
    if border is not None and border.source == "found":
        lines.append(
            f"The context ends between {border.accepted_tokens:,} tokens of input, which were taken, and "
            f"{border.refused_tokens:,}, which were not (the server does not tell its limit)."
        )
    return list(dict.fromkeys(lines))


def _parts(result: CurveResult) -> list[str]:
    """Say what the first level beyond the knee waits for: by the server's own clock, or else by an estimate."""
    lines = []
    for curve in result.curves:
        knee = curve.knee
        at = (
            knee.level
            if knee.rule == "queue"
            else next((s.above for s in curve.steps if s.below == knee.level), None)
        )
        row = next((row for row in result.rows if row.points and row.load == at), None)
        waits = middle(result, row).waits if row is not None else None
        if row is None or waits is None:
            continue
        if waits.queue is None or waits.prefill is None:
            if (guess := waits.estimate) is not None:
                lines.append(_guessed(say_load(_plan(result).kind, row.load), guess))
            continue
        queue, prefill = numbers.duration(waits.queue.mean_ns), numbers.duration(waits.prefill.mean_ns)
        where, means = say_load(_plan(result).kind, row.load), numbers.count(waits.queue.n, "request")
        lines.append(
            f"At {where} a request spends {queue} in the queue and {prefill} in prefill before its first token: means "
            f"of {means} by the server's own clock."
        )
    return lines


def _guessed(where: str, guess: Estimate) -> str:
    low, high = numbers.duration(guess.low_ns), numbers.duration(guess.high_ns)
    return (
        f"At {where} a request waits some {numbers.duration(guess.mean_ns)} ({numbers.between(low, high)}) longer for "
        "its first token than one alone, queue and slower prefill together: an estimate, since the server's own times "
        "are not known."
    )


def _edges(result: CurveResult) -> list[str]:
    """Say where the steady and the whole run's output differ, which only few waves of requests do."""
    if _plan(result).kind != "concurrency" or result.basis != "steady":
        return []
    off = []
    for row in result.rows:
        for point in row.points:
            whole, steady = point.whole.output_per_s, point.sample("steady").output_per_s
            if whole and steady and abs(steady / whole - 1) > EDGES:
                off.append(f"{point.trial} {steady / whole - 1:+.1%}")
    if not off:
        return []
    said = f"Output after the opening wave and of the whole run differ: {', '.join(off)}. "
    return [
        f"{said}Few waves of requests fit the window, and its edges cut some; more --requests make it less."
    ]


def _ending(result: CurveResult, directory: Path | str, again: str | None) -> RenderableType:
    where, trials = str(directory), sum(len(row.trials) for row in result.rows) + len(result.probes)
    lines: list[tuple[str, RenderableType]] = [
        (
            "Spent",
            f"{numbers.count(trials, 'trial')}, {numbers.rough(result.spent_s)} with their quiet intervals",
        )
    ]
    if result.spoiled:
        lines.append(("Cut short", f"{safe(', '.join(result.spoiled), 1000)} (they do not count)"))
    lines += [
        ("Evidence", safe_text(where, "bold", 1000)),
        ("Recompute", Command(("nameplate", "verify", where))),
    ]
    if again:
        lines.append(("Repeat", Command.of(again)))
    return facts(lines, indent=0)
