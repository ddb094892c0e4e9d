"""What a curve says, in one sentence with its figures."""

from __future__ import annotations

from nameplate.contract.curve import CurveKind, say_load
from nameplate.verdict.curve import GROWS, Curve, CurveLevel, Knee, Spread, factor

_MORE = {"concurrency": "more clients add", "rate": "a higher rate adds", "input": ""}


def sentence(kind: CurveKind, curve: Curve) -> str:
    """Say from which level on more load adds waiting and hardly any output, or that output still rises."""
    if kind == "input":
        return _climbed(curve)
    knee = curve.knee
    if knee.rule == "queue":
        return _fell_behind(curve)
    if knee.status == "unknown":
        return "One level alone makes no curve: give several."
    below, above = _around(curve)
    step = f"from {say_load(kind, below.load)} to {say_load(kind, above.load)} {moved(below, above)}"
    if knee.status == "not_reached":
        return f"The knee is not reached, output still rises at the highest level: {step}."
    assert knee.level is not None
    added = {
        "waiting": "waiting and hardly any output",
        "slower streams": "slower streams and hardly any output",
        "nothing": "hardly any output",
    }[knee.adds or "nothing"]
    start = f"From {say_load(kind, knee.level)} on {_MORE[kind]} {added}: {step}."
    return f"{start} {where(kind, knee)}"


def _fell_behind(curve: Curve) -> str:
    """Say between which rates an open loop's queue began to grow."""
    knee = curve.knee
    assert knee.level is not None
    level = next(one for one in curve.levels if one.load == knee.level)
    if knee.after is None:
        return (
            f"The server does not keep up with {say_load('rate', level.load)}, the lowest rate measured: the queue "
            f"grew all the while, and {_rate(level.output_per_s.middle)} tok/s came out."
        )
    below = next(one for one in curve.levels if one.load == knee.after)
    return (
        f"The server keeps up with {say_load('rate', below.load)} and not with {say_load('rate', level.load)}, where "
        f"the queue grew all the while: {moved(below, level)}. The knee lies between them."
    )


def where(kind: CurveKind, knee: Knee) -> str:
    """Say where a knee that was found lies, and how certain that is."""
    assert knee.level is not None
    if knee.after is None:
        said = f"The knee lies at {say_load(kind, knee.level)}, the lowest level measured, or below"
    else:
        said = f"The knee lies between {say_load(kind, knee.after)} and {say_load(kind, knee.level)}"
    if knee.lowest is None or (knee.lowest, knee.highest) == (knee.level, knee.level):
        return f"{said}."
    high = "not within the levels" if knee.highest is None else f"at {say_load(kind, knee.highest)}"
    low = f"at {say_load(kind, knee.lowest)} at the lowest"
    return f"{said}; by other combinations of the trials {low}, {high} at the highest."


def moved(below: CurveLevel, above: CurveLevel) -> str:
    """Say what a step did: `output rose 0.2% (1,018.93 -> 1,021.06 tok/s) while median TTFT rose 44-fold (...)`."""
    outputs = below.output_per_s.middle, above.output_per_s.middle
    said = f"output {_by(*outputs)} ({_rate(outputs[0])} -> {_rate(outputs[1])} tok/s)"
    waits = factor(below.ttft_ns, above.ttft_ns)
    told = [] if waits is None else [_latency("TTFT", below.ttft_ns, above.ttft_ns)]
    # E2E says something new where it is not the wait before the first output that grew.
    lasts = factor(below.e2e_ns, above.e2e_ns)
    if lasts is not None and lasts > max(GROWS, waits or 0.0):
        told.append(_latency("E2E", below.e2e_ns, above.e2e_ns))
    return f"{said} while {' and '.join(told)}" if told else said


def _latency(name: str, below: Spread | None, above: Spread | None) -> str:
    assert below is not None and above is not None
    times = _times(below.middle, above.middle)
    return f"median {name} {_by(below.middle, above.middle)} ({times})"


def _around(curve: Curve) -> tuple[CurveLevel, CurveLevel]:
    """Return the levels of the telling step: the first beyond the knee, or the last where there is none."""
    levels, knee = curve.levels, curve.knee
    at = next((at for at, level in enumerate(levels) if level.load == knee.level), len(levels) - 2)
    return levels[at], levels[at + 1]


def _climbed(curve: Curve) -> str:
    first, last = curve.levels[0], curve.levels[-1]
    end = f"a prompt of {say_load('input', last.load)} alone waits {_wait(last.ttft_ns)} for its first token"
    if first is last or first.ttft_ns is None or last.ttft_ns is None:
        return f"At concurrency one {end}."
    times = factor(first.ttft_ns, last.ttft_ns) or 0.0
    return (
        f"At concurrency one {end}, {times:.3g} times that of {say_load('input', first.load)}, which is "
        f"{last.load / first.load:.3g} times shorter."
    )


def _wait(ttft: Spread | None) -> str:
    return "an unknown time" if ttft is None else _seconds(ttft.middle)


def _by(before: float, after: float) -> str:
    if not before:
        return "rose from nothing" if after else "stayed at nothing"
    times = after / before
    if times >= 2:
        return f"rose {times:.0f}-fold" if times >= 10 else f"rose {times:.2g}-fold"
    change = f"{abs(times - 1):.1%}"
    if change == "0.0%":
        return "did not move"
    return f"{'rose' if times > 1 else 'fell'} {change}"


def _rate(per_s: float) -> str:
    return f"{per_s:,.2f}"


def _times(before_ns: float, after_ns: float) -> str:
    """Write two times in one unit, so that they can be compared at a glance."""
    if max(before_ns, after_ns) < 1e8:
        return f"{before_ns / 1e6:.3g} ms -> {after_ns / 1e6:.3g} ms"
    return f"{_seconds(before_ns)} -> {_seconds(after_ns)}"


def _seconds(ns: float) -> str:
    return f"{ns / 1e9:,.3f} s"
