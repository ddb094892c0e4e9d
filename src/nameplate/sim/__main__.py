"""Serve a simulated machine from the command line: `python -m nameplate.sim PRESET --port N`."""

import argparse
import os
import shutil
import sys
import textwrap
from collections.abc import Iterable
from pathlib import Path

from nameplate.sim.faults import FAULTS, parse_fault
from nameplate.sim.metronome import MetronomeOptions, serve_metronome
from nameplate.sim.presets import PRESETS, find_preset
from nameplate.sim.server import ServeOptions, serve

_METRONOME = "no engine: every token comes at a moment known beforehand (see --ttft-ms, --itl-ms)"


def _listed(title: str, entries: Iterable[tuple[str, str]]) -> str:
    """Return a list of names and what they are, each wrapped beside its name."""
    pairs = list(entries)
    column = 4 + max(len(name) for name, _ in pairs)
    width = max(60, min(120, shutil.get_terminal_size().columns))
    wrap = textwrap.TextWrapper(width=width, subsequent_indent=" " * column)
    lines = (wrap.fill(f"  {name:{column - 2}}{about}") for name, about in pairs)
    return "\n".join((title, *lines))


def _parser() -> argparse.ArgumentParser:
    presets = [(preset.name, preset.about) for preset in PRESETS.values()]
    faults = [(name, f"{about} [{default:g}]") for name, (about, default) in FAULTS.items()]
    parser = argparse.ArgumentParser(
        prog="python -m nameplate.sim",
        description="Serve a simulated machine; the first line printed is its URL.",
        epilog=_listed("presets:", [*presets, ("metronome", _METRONOME)])
        + "\n\n"
        + _listed(
            "faults, each NAME[:ARG][@INDEX] or NAME[:ARG][@every N] [ARG where none is given]:", faults
        ),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "preset", choices=[*PRESETS, "metronome"], metavar="PRESET", help="one of those listed below"
    )
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--api-key", default=os.environ.get("NAMEPLATE_SIM_API_KEY"))
    parser.add_argument("--fault", action="append", default=[], metavar="NAME[:ARG][@WHICH]")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--log", type=Path, help="write the truth log there, as JSON lines")
    parser.add_argument(
        "--log-events", action="store_true", help="log every send, not the first and last alone"
    )
    parser.add_argument(
        "--keep-alive", type=float, default=5.0, help="close a connection idle for so many seconds"
    )
    parser.add_argument("--until-eof", action="store_true", help="stop when standard input, a pipe, ends")
    parser.add_argument("--ttft-ms", type=float, default=50.0, help="metronome: first token after receiving")
    parser.add_argument("--itl-ms", type=float, default=10.0, help="metronome: one chunk to the next")
    parser.add_argument("--chunk-tokens", type=int, default=1, help="metronome: tokens a chunk")
    return parser


def _announce(url: str) -> None:
    print(url, flush=True)


def main(arguments: list[str] | None = None) -> int:
    """Run the command; return its exit code."""
    parser = _parser()
    given = parser.parse_args(arguments)
    until_eof = sys.stdin.fileno() if given.until_eof else None
    try:
        if given.preset == "metronome":
            options = MetronomeOptions(
                host=given.host,
                port=given.port,
                ttft_ns=round(given.ttft_ms * 1e6),
                itl_ns=round(given.itl_ms * 1e6),
                chunk_tokens=given.chunk_tokens,
                log=given.log,
                until_eof=until_eof,
            )
            serve_metronome(options, _announce)
            return 0
        faults = tuple(parse_fault(text) for text in given.fault)
        serve(
            find_preset(given.preset),
            ServeOptions(
                host=given.host,
                port=given.port,
                api_key=given.api_key,
                faults=faults,
                seed=given.seed,
                log=given.log,
                log_events=given.log_events,
                keep_alive_s=given.keep_alive,
                until_eof=until_eof,
            ),
            _announce,
        )
    except (ValueError, OSError) as error:
        parser.error(str(error))
    return 0


if __name__ == "__main__":
    sys.exit(main())
