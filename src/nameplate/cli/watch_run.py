"""Looking on at a soak until it ends."""

from __future__ import annotations

import time
from pathlib import Path

from rich.live import Live

from nameplate.cli.output import print_json
from nameplate.contract.quantity import parse_duration_ns
from nameplate.report.console import animated, answers
from nameplate.report.soak_watch import watch_page
from nameplate.studies.soak_sight import SoakSights

LEAST_NS = 10**9


def watch(directory: Path, *, once: bool, as_json: bool, every: str) -> int:
    """Show a soak: once, or on a terminal until it no longer runs or Ctrl-C."""
    sights = SoakSights(directory)
    sight = sights.look()
    if as_json:
        print_json(sight)
        return 0
    console = answers()
    if once or not animated(console) or sight.state != "running":
        console.print(watch_page(sight))
        return 0
    pause_s = max(LEAST_NS, parse_duration_ns(every)) / 1e9
    try:
        with Live(watch_page(sight), console=console, auto_refresh=False, transient=True) as live:
            while sight.state == "running":
                time.sleep(pause_s)
                sight = sights.look()
                live.update(watch_page(sight), refresh=True)
    except KeyboardInterrupt:
        pass
    console.print(watch_page(sight))
    return 0
