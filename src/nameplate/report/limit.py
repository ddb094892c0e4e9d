"""What a limit is made of, in a sentence with its figures, and the levels' figures side by side."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from nameplate.measure.level_figures import LevelFigures
from nameplate.measure.limit import Behind, Growth, Limit, Made, Name
from nameplate.measure.server_side import Gauge
from nameplate.report import numbers
from nameplate.report.layout import Cell, heading, indented
from nameplate.report.safe import safe
from nameplate.report.table import Column, FittingTable
from nameplate.report.waits import between, estimate_words, time_of

PART = {
    Name.send_lag: "the client's send lag",
    Name.queue: "queue",
    Name.prefill: "prefill",
    Name.wait: "queue or slower prefill, by an estimate",
    Name.decode: "decode",
    Name.rest: "network, client and the server's front",
}
_INTERFERENCE = {Name.prefill: "slower prefill", Name.decode: "slower decode"}
_TIME = {"ttft": "TTFT", "decode": "decode time", "e2e": "E2E latency"}
_BEHIND = {
    Behind.running_limit: "for a place among those that run at once",
    Behind.kv_full: "for room in the KV pool",
    Behind.prompts_before: "for the prompts before them: places and KV room were left",
    Behind.preemption: "with preemption",
    Behind.more_at_once: "while more run at once",
}


def limit_section(limit: Limit | None, names: dict[str, str]) -> RenderableType | None:
    """Return what the limit is made of; `names` are what people call the passing and the failing level (`C=9`)."""
    if limit is None:
        return None
    failing = names.get("fail", "the failing level")
    lines = [Text(line) for line in limit_words(limit, failing)]
    return Group(
        heading("What the limit is made of"),
        *(indented(line) for line in lines),
        Text(""),
        indented(_table(limit.levels, names)),
        *(indented(Text(note, style="dim")) for note in _notes(limit)),
    )


def limit_words(limit: Limit, failing: str) -> list[str]:
    """Say what the limit is made of, with the figures that say so."""
    lines = []
    if limit.made_of:
        made = " and ".join(_made(one) for one in limit.made_of)
        lines.append(f"The limit is made of {made}.")
    else:
        lines.append(f"What the limit is made of is not known: {safe(limit.reason)}.")
    if limit.alone_ns is not None and limit.fail_ns is not None and limit.of is not None:
        lines.append(_step(limit, failing))
    fail = limit.fail
    if fail is not None:
        if limit.estimated and fail.estimate is not None:
            lines.append(f"{estimate_words(fail.estimate)}.")
        lines += [line for line in (_waiting(fail), _pressure(fail)) if line]
    if limit.slo is not None and limit.slo.percentile is not None and fail is not None:
        judged = f"{limit.slo.metric} p{limit.slo.percentile:g}"
        queue = f" p95 of the queue: within {between(fail.queue_p95)}." if fail.queue_p95 is not None else ""
        lines.append(f"Means are taken apart, since quantiles do not add up; judged is {judged}.{queue}")
    return lines


def _made(made: Made) -> str:
    behind = ", ".join(_BEHIND[one] for one in made.behind)
    name = _INTERFERENCE.get(made.name, PART[made.name])
    return f"{name} ({behind})" if behind else name


def _step(limit: Limit, failing: str) -> str:
    assert limit.alone_ns is not None and limit.fail_ns is not None and limit.of is not None
    grew = limit.fail_ns - limit.alone_ns
    said = f"the mean {_TIME[limit.of]} grew from one request alone to {failing}"
    span = f"({numbers.duration(limit.alone_ns)} to {numbers.duration(limit.fail_ns)})"
    if not limit.parts:
        return f"By {numbers.duration(grew)} {said} {span}."
    parts = ", ".join(_part(part) for part in limit.parts)
    return f"Of the {numbers.duration(grew)} by which {said} {span}: {parts}."


def _part(part: Growth) -> str:
    return f"{time_of(part.grew_ns)} ({numbers.share(part.share, 0)}) {PART[part.name]}"


def _waiting(fail: LevelFigures) -> str:
    seen = fail.held_back
    if seen is None:
        return ""
    if not seen.waited:
        return f"No request waited in any of {numbers.count(seen.samples, 'sample')} of the server."
    said = f"Requests waited in {seen.waited:,} of {numbers.count(seen.samples, 'sample')} of the server"
    if seen.running_limit is None:
        return f"{said}; how many it runs at once is not told."
    said += f": in {numbers.count(seen.at_limit)} all {seen.running_limit:,} places were taken"
    if seen.kv_full is not None and seen.neither is not None:
        said += f", in {seen.kv_full:,} the KV pool was full, in {seen.neither:,} neither"
    return f"{said}."


def _pressure(fail: LevelFigures) -> str:
    kv = "" if fail.kv_usage is None else f"KV at most {numbers.share(fail.kv_usage.max)}"
    if fail.preemptions is None:
        return f"{kv}." if kv else ""
    told = numbers.count(fail.preemptions, "preemption") if fail.preemptions else "no preemption"
    return f"{kv}, {told}." if kv else f"{told.capitalize()}."


_COLUMNS = (
    Column("\nlevel", side="left"),
    Column("\nn", rank=3),
    Column("mean\nTTFT"),
    Column("\n= queue"),
    Column("\n+ prefill"),
    Column("\n+ rest"),
    Column("queue p95\nwithin", rank=4),
    Column("running\nmean, most", rank=1, name="running"),
    Column("waiting\nmean, most", rank=1, name="waiting"),
    Column("KV\nmost", rank=2),
    Column("\npreempted", rank=5),
)


def _table(levels: Sequence[LevelFigures], names: dict[str, str]) -> RenderableType:
    rows: list[Sequence[Cell]] = [
        (
            names.get(level.side, level.side),
            f"{level.n:,}",
            numbers.duration(level.ttft_mean_ns),
            numbers.duration(level.queue_mean_ns),
            numbers.duration(level.prefill_mean_ns),
            time_of(level.rest_mean_ns),
            between(level.queue_p95),
            _gauge(level.running),
            _gauge(level.waiting),
            numbers.share(level.kv_usage.max) if level.kv_usage is not None else numbers.ABSENT,
            numbers.count(level.preemptions),
        )
        for level in levels
    ]
    return FittingTable(_COLUMNS, rows)


def _gauge(gauge: Gauge | None) -> str:
    return numbers.ABSENT if gauge is None else f"{gauge.mean:.1f}, {gauge.max:,.0f}"


def _notes(limit: Limit) -> list[str]:
    unsplit = sorted({safe(level.reason) for level in limit.levels if not level.split and level.reason})
    notes = [f"- : {reason}" for reason in unsplit]
    if any(level.unmeasured for level in limit.levels):
        notes.append("Where no sample fell between them, warm-up requests are in the means.")
    return notes
