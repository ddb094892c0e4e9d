"""A running soak in a few lines: three numbers, time left, and a log that stays short."""

from __future__ import annotations

import io
from pathlib import Path

import msgspec
from msgspec import structs
from rich.console import Console

from nameplate.client.order import Progress
from nameplate.contract.contract import Contract
from nameplate.contract.plan import TrialPlan
from nameplate.contract.shape import Shape
from nameplate.contract.soak import SECOND_NS, SOAK_REQUESTS, Soak
from nameplate.contract.soak_terms import SoakTerms
from nameplate.contract.target import Target
from nameplate.engines.state import ServerSample
from nameplate.evidence import layout
from nameplate.report.soak_live import MOST_LINES, SoakView

HOURS = 3600 * SECOND_NS
SOAK = Soak(duration_ns=8 * HOURS, drain_ns=900 * SECOND_NS)
CONTRACT = Contract(
    target=Target("http", "server", 8000),
    shapes=(Shape(131072, 16384),),
    slos=(),
    nonce="n",
    soak=SoakTerms(soak=SOAK, concurrency=62),
)
PLAN = TrialPlan(
    "soak.s2",
    "soak",
    CONTRACT.shapes[0],
    62,
    SOAK_REQUESTS,
    0,
    soak=structs.replace(SOAK, duration_ns=6 * HOURS),
)


class Seen:
    """Hold a view on a log, with a clock of its own."""

    def __init__(self, directory: Path) -> None:
        self.now_ns = 0
        self.text = io.StringIO()
        self.directory = directory
        console = Console(file=self.text, width=200)
        self.view = SoakView(CONTRACT, console, now_ns=lambda: self.now_ns, wall_s=lambda: 0.0)

    def report(self, t_ns: int, in_flight: int = 62) -> None:
        progress = Progress(
            t_ns=t_ns, stage="measured", started=100 + in_flight, ended=100, in_flight=in_flight
        )
        self.now_ns = t_ns
        self.view.progress(PLAN, progress, {}, self.directory)


def test_three_numbers_and_the_time_left(tmp_path: Path) -> None:
    """What is outstanding, running and waiting are apart; hours of an earlier segment count."""
    sample = ServerSample(t_ns=1, running=20, waiting=42, kv_usage_mean=0.998)
    (tmp_path / layout.SERVER).write_bytes(msgspec.json.encode(sample) + b"\n")
    seen = Seen(tmp_path)
    for t_ns in (0, HOURS):
        seen.report(t_ns)
    said = seen.text.getvalue()
    assert "131072/16384 at concurrency 62: 3 h 00 min of 8 h 00 min, 5 h 00 min left, until" in said
    assert "outstanding 62, running 20, waiting 42, KV 99.8%" in said
    assert "162 sent, 100 ended" in said


def test_the_drain_is_told(tmp_path: Path) -> None:
    """After the last submission it says for how long it waits at most; a server without a page tells nothing."""
    seen = Seen(tmp_path)
    for t_ns in (0, 6 * HOURS + 300 * SECOND_NS):
        seen.report(t_ns, in_flight=38)
    said = seen.text.getvalue()
    assert "submission is over, draining for 10 min at most" in said and "the server tells nothing" in said


def test_a_submission_that_ended_before_its_time_is_over(tmp_path: Path) -> None:
    """At the outstanding limit the drain begins at once, whatever was left of the time."""
    seen = Seen(tmp_path)
    seen.report(0)
    progress = Progress(
        t_ns=HOURS, stage="measured", started=99, ended=1, in_flight=98, submitted_ns=HOURS - 60 * SECOND_NS
    )
    seen.now_ns = HOURS
    seen.view.progress(PLAN, structs.replace(progress, overrun=True), {}, tmp_path)
    said = seen.text.getvalue()
    assert "submission is over at its limit of unanswered requests, draining for 14 min at most" in said


def test_a_log_of_eight_hours_is_short(tmp_path: Path) -> None:
    """However often it is reported to, a log gets a bounded number of lines."""
    seen = Seen(tmp_path)
    for second in range(0, 6 * 3600, 5):
        seen.report(second * SECOND_NS)
    assert 50 < seen.text.getvalue().count("\n") <= MOST_LINES
