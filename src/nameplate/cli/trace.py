"""The options that name a recorded trace, and the trace that they name."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from nameplate.cli.options import F
from nameplate.contract.errors import CallerError
from nameplate.contract.quantity import parse_duration_ns
from nameplate.contract.trace import TracePlan

# Some 200 MB of prompts of an ordinary trace; all are written before the first request.
TRACE_LIMIT = 100_000

OPTIONS = (
    "trace_format",
    "trace_time_unit",
    "trace_block_tokens",
    "trace_speed",
    "trace_from",
    "trace_to",
    "trace_classes",
    "trace_limit",
    "trace_too_long",
    "trace_too_short",
)
_FORMATS = ("jsonl", "mooncake", "burstgpt")
_UNITS = ("s", "ms", "us", "ns")
_PIECE_BYTES = 1 << 20


def trace_options(command: F) -> F:
    """Add the recorded trace that an open loop repeats, and how it is read."""
    file = click.Path(exists=True, dir_okay=False, path_type=Path)
    options = (
        click.option("--trace", type=file, help="Repeat a recorded trace: each request with its time and lengths."),
        click.option("--trace-format", type=click.Choice(_FORMATS), help="With --trace: the file's form."),
        click.option("--trace-time-unit", type=click.Choice(_UNITS),
                     help="What the file's times are in: needed, unless a header of jsonl tells it."),
        click.option("--trace-block-tokens", type=click.IntRange(min=1),
                     help="Tokens of a prefix block.  [mooncake: 512; jsonl: in its header, or told]"),
        click.option("--trace-speed", type=float, default=1.0, show_default=True,
                     help="Repeat it so many times as fast; lengths stay."),
        click.option("--trace-from", metavar="TIME", help="Begin at this time of the file, e.g. 90s."),
        click.option("--trace-to", metavar="TIME", help="End before this time of the file."),
        click.option("--trace-class", "trace_classes", multiple=True, metavar="NAME",
                     help="Only this class. May repeat."),
        click.option("--trace-limit", type=click.IntRange(min=1), default=TRACE_LIMIT, show_default=True,
                     help="Repeat so many requests at most, the first."),
        click.option("--trace-too-long", type=click.Choice(["refuse", "skip"]), default="refuse", show_default=True,
                     help="Requests beyond the server's context."),
        click.option("--trace-too-short", type=click.Choice(["refuse", "skip", "raise"]), default="refuse",
                     show_default=True, help="Requests below the shortest prompt; raise sends that one."),
    )  # fmt: skip
    for option in reversed(options):
        command = option(command)
    return command


def read_trace(options: Mapping[str, Any]) -> TracePlan:
    """Read the trace with the requests that are to be repeated; CallerError where it is wrong or what it is unsaid."""
    from nameplate.prompts.trace import RecordedTrace
    from nameplate.prompts.trace_fit import with_rows
    from nameplate.prompts.trace_options import TraceOptions

    path: Path = options["trace"]
    form = options["trace_format"]
    if form is None:
        raise CallerError(
            f"What form {path.name} has is not told.",
            why="It is not guessed.",
            hint=f"Give --trace-format {', '.join(_FORMATS[:-1])} or {_FORMATS[-1]}.",
        )
    read = TraceOptions(
        format=form,
        time_unit=options["trace_time_unit"],
        block_tokens=options["trace_block_tokens"],
        speed_up=options["trace_speed"],
        from_ns=parse_duration_ns(options["trace_from"]) if options["trace_from"] else None,
        to_ns=parse_duration_ns(options["trace_to"]) if options["trace_to"] else None,
        classes=options["trace_classes"],
    )
    recorded = RecordedTrace.open(path, read)
    counts, limit = recorded.counts, options["trace_limit"]
    left_out = {
        name: count
        for name, count in (
            ("before the window", counts.before_window),
            ("after the window", counts.after_window),
            ("without input", counts.no_input),
            ("without output (failed when recorded)", counts.no_output),
            ("of another class", counts.other_class),
            ("beyond the limit of requests", max(0, len(recorded) - limit)),
        )
        if count
    }
    rows = recorded.rows(limit)
    plan = TracePlan(
        name=path.name,
        sha256=_digest(path),
        format=form,
        time_unit=read.time_unit,
        speed_up=read.speed_up,
        from_ns=read.from_ns,
        to_ns=read.to_ns,
        classes=read.classes,
        limit=limit,
        read=counts.read,
        left_out=left_out,
        requests=0,
        duration_ns=0,
        rows_sha256="",
    )
    return with_rows(plan, rows)


def _digest(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(_PIECE_BYTES):
            digest.update(piece)
    return digest.hexdigest()
