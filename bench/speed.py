"""Measure the speed matrix against servers whose own logs know when every token was sent.

    python -m bench.speed [--streams 1,2,8,...] [--window 8s] [--server NAME ...] [--repeat N]

Each server runs in a process of its own on this machine, `nameplate speed` measures it over the loopback, and every
cell is compared with the server's log between the same two moments: the tokens in the window, ITL, the ramp's TTFT, the
moment of readiness, requests in flight, restarts, and the view through the server's own counters.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import platform
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

from msgspec import Struct

from bench.truth import CellCheck, Log, Pair, check_cell, metronome_log, own_log
from nameplate.sim.process import running

CONTEXT = 256
END_S = 10.0


class Known(Struct, frozen=True):
    """Name a server of known timing: how to start it, and how to read its log."""

    name: str
    about: str
    arguments: tuple[str, ...]
    read: Callable[[bytes], Log]


METRONOME = ("--ttft-ms", "50", "--itl-ms", "20", "--log-events")
SERVERS = (
    Known("metronome", "the metronome: a token every 20 ms", METRONOME, metronome_log),
    Known(
        "metronome-3",
        "the metronome: 3 tokens every 20 ms",
        (*METRONOME, "--chunk-tokens", "3"),
        metronome_log,
    ),
    Known("counting", "the other server: 1 to 4 tokens every 25 ms, counting along", (), own_log),
    Known("end", "the same, with usage at the end alone", ("--usage", "end"), own_log),
    Known("never", "the same, without usage", ("--usage", "never"), own_log),
    Known("ghost", "the same, one more running for the first 6.3 s", ("--ghost-s", "6.3"), own_log),
    Known(
        "stall",
        "the same, every 8th request silent for 60 s after 60 tokens",
        ("--stall-every", "8", "--stall-after", "60", "--stall-s", "60"),
        own_log,
    ),
)


@contextlib.contextmanager
def serving(known: Known) -> Iterator[str]:
    """Start a server and yield its URL; it ends with the context."""
    if known.name.startswith("metronome"):
        with running("metronome", *known.arguments) as process:
            yield process.url
        return
    command = [sys.executable, "-m", "bench.server", *known.arguments]
    child = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=Path(__file__).parents[1]
    )
    assert child.stdin is not None and child.stdout is not None
    try:
        yield child.stdout.readline().decode().strip()
    finally:
        child.stdin.close()
        try:
            child.wait(END_S)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
        child.stdout.close()


def fetch(url: str) -> bytes:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(url, timeout=120) as reply:
        data: bytes = reply.read()
    return data


def measure(known: Known, streams: str, directory: Path, *options: str) -> list[CellCheck]:
    """Run one study against a server and compare its cells with the log."""
    with serving(known) as url:
        command = [
            *(sys.executable, "-m", "nameplate", "speed", url, "--contexts", str(CONTEXT), "-c", streams),
            *("--no-prefill", "--json", "--out", str(directory), *options),
        ]
        done = subprocess.run(command, capture_output=True, check=False)
        if done.returncode not in (0, 4):
            raise RuntimeError(
                f"nameplate speed ended with {done.returncode}: {done.stderr.decode()[-2000:]}"
            )
        log = known.read(fetch(f"{url}/log"))
    trials = directory / "trials"
    checks = []
    for count in map(int, streams.split(",")):
        attempts = sorted(trials.glob(f"decode.{CONTEXT}.c{count}")) + sorted(
            trials.glob(f"decode.{CONTEXT}.c{count}.retry*")
        )
        try:
            checks.append(check_cell(attempts[-1], log))
        except ValueError as error:
            print(f"no window: {error}", file=sys.stderr)
    return checks


COLUMNS: tuple[tuple[str, Callable[[CellCheck], str]], ...] = (
    ("streams", lambda c: f"{c.streams}"),
    ("status", lambda c: c.status),
    ("tokens/s", lambda c: f"{c.tokens.ours / (c.window_ns / 1e9):,.1f}{'~' if c.estimated else ''}"),
    ("tokens off", lambda c: f"{c.tokens.off:+,.0f} ({c.tokens.error:+.3%})"),
    ("ITL p50, p99 off", lambda c: f"{c.itl_p50.error:+.2%}, {c.itl_p99.error:+.2%}"),
    ("per user off", lambda c: f"{c.per_user_p50.error:+.2%}"),
    ("tokens a chunk", lambda c: _pair(c.tokens_per_chunk, ".3f")),
    ("TTFT p50, p99 off", lambda c: f"{c.ttft_p50.off / 1e6:+.1f}, {c.ttft_p99.off / 1e6:+.1f} ms"),
    ("ready after", lambda c: f"{c.ready_after_ns / 1e9:.2f} s"),
    ("in flight", lambda c: _pair(c.in_flight, ".2f")),
    ("restarts", lambda c: _pair(c.restarts, ".0f")),
    ("counter off", lambda c: f"{c.counter.error:+.3%}" if c.counter else "none"),
    ("ours off it", lambda c: f"{c.counted.error:+.3%}" if c.counted else "none"),
    ("CPU", lambda c: f"{c.cpu_share:.0%}"),
)


def _pair(pair: Pair | None, form: str) -> str:
    return "-" if pair is None else f"{pair.ours:{form}} / {pair.log:{form}}"


def show(known: Known, checks: list[CellCheck], detail: bool) -> None:
    """Print one server's table."""
    print(f"\n{known.about}\n")
    print("|".join(("", *(f" {name} " for name, _ in COLUMNS), "")))
    print("|---" * len(COLUMNS) + "|")
    for check in checks:
        print("|".join(("", *(f" {form(check)} " for _, form in COLUMNS), "")), flush=True)
    for check in checks if detail else ():
        print(f"{check.streams}: {check.reason}; {check.lateness}; {'; '.join(check.notes)}")
        if check.itl_censored or (check.gap_max_ns or 0) > 1e9:
            print(f"   ITL censored {check.itl_censored}, longest gap {(check.gap_max_ns or 0) / 1e9:.2f} s")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--streams", default="1,2,8,32,128,256")
    parser.add_argument("--window", default="8s")
    parser.add_argument("--stable", default="3s")
    parser.add_argument(
        "--output", default="600", help="tokens a request; short enough for restarts in the window"
    )
    parser.add_argument("--server", action="append", choices=[known.name for known in SERVERS])
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--detail", action="store_true")
    given = parser.parse_args()
    print(
        f"{platform.machine()}, {os.cpu_count()} CPUs, Linux {platform.release()}, Python {platform.python_version()}"
    )
    print(
        f"window {given.window} after {given.stable} of readiness, {CONTEXT}/{given.output} tokens a request"
    )
    bad = 0
    options = ("--window", given.window, "--stable", given.stable, "--output", given.output)
    for known in SERVERS:
        if given.server and known.name not in given.server:
            continue
        for _ in range(given.repeat):
            with tempfile.TemporaryDirectory() as name:
                checks = measure(known, given.streams, Path(name) / "study", *options)
            show(known, checks, given.detail)
            bad += sum(not check.within and not check.estimated for check in checks)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
