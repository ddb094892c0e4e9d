"""The `nameplate` command: a table of contents, and the one place where errors become words and exit codes."""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path

import click

from nameplate import __version__
from nameplate.contract.errors import Interrupted, NameplateError

# Loaded when called: `nameplate --help` must not wait for what it does not use.
COMMANDS = {
    "capacity": "Find the largest concurrency that keeps an SLO, confirmed on both sides.",
    "rate": "Find the highest request rate that keeps an SLO with a bounded queue, confirmed on both sides.",
    "curve": "Measure throughput and latency level by level, and find where more load only adds waiting.",
    "speed": "Measure how fast it is, by context length and by simultaneous requests.",
    "soak": "Send one load for hours, and account for every request of it.",
    "watch": "Look on at a running or finished soak from another terminal.",
    "trial": "Run and seal one trial, and print its measurements.",
    "probe": "Say what a server is, what works, and how to turn on what is missing.",
    "verify": "Recompute every published number of a trial or study from its raw evidence.",
    "show": "Print one request of a trial, event by event; or what a speed study or a soak came to.",
    "report": "Write one page over runs, which opens offline: answers, figures, tables, trials.",
    "catalogue": "Write a site of many runs: search, filter, sort by like numbers, compare.",
    "plate": "Draw the rating plate of a study: SVG, PNG, Markdown or text.",
    "compare": "Say in what one run is better than another, worse, equal, or not known to differ.",
    "check": "Say whether a plate still holds for a server.",
    "import": "Read a result of AIPerf, GuideLLM, vLLM, SGLang or llm-inference-bench: checked, judged anew.",
    "export": "Write a result as a file of llm-inference-bench or AIPerf, as CSV or as OpenMetrics text.",
    "sim": "Serve the built-in engine on loopback.",
}

# A command's module has its name, unless Python keeps that for itself.
MODULES = {"import": "import_"}


class Commands(click.Group):
    """List all commands without importing them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        del ctx
        if cmd_name not in COMMANDS:
            return None
        name = MODULES.get(cmd_name, cmd_name)
        command: click.Command = importlib.import_module(f"nameplate.cli.{name}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    epilog="Exit codes: 0 holds, 1 does not hold, 2 wrong input, 3 inconclusive, 4 invalid evidence or "
    "client-limited, 5 the server cannot be measured, 130 interrupted.",
)
@click.version_option(__version__, prog_name="nameplate")
@click.option(
    "--config",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Options from a TOML file, a table a command.",
)
@click.pass_context
def cli(ctx: click.Context, config: Path | None) -> None:
    """Rate an OpenAI-compatible LLM server: what traffic it takes under a latency promise, with evidence."""
    if config is not None:
        from nameplate.cli.config import read_config

        assert isinstance(ctx.command, click.Group)
        ctx.default_map = dict(read_config(config, ctx.command, ctx))


def main() -> None:
    """Run the command line and exit; no traceback reaches a person (NAMEPLATE_DEBUG=1 shows it)."""
    _open_closed_streams()
    try:
        code = _invoke()
        sys.stdout.flush()
        sys.exit(code if isinstance(code, int) else 0)
    except click.exceptions.Exit as stop:
        sys.exit(stop.exit_code)
    except click.ClickException as error:
        error.show()
        sys.exit(2)
    except click.Abort:
        _fail(Interrupted("Interrupted."))
    except NameplateError as error:
        _fail(error)
    except KeyboardInterrupt:
        _fail(Interrupted("Interrupted."))
    except BrokenPipeError:
        # Whoever read our output has gone: nothing more to say, and nowhere to say it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        sys.exit(0)
    except OSError as error:
        _fail(_operating_system(error))
    except Exception as error:
        if os.environ.get("NAMEPLATE_DEBUG"):
            raise
        _fail(_internal(error))


def _invoke() -> object:
    try:
        return cli.main(standalone_mode=False)
    except SystemExit:
        # Outside its standalone mode click exits for a broken pipe alone, by 1: that would be an answer here.
        raise BrokenPipeError from None


def _open_closed_streams() -> None:
    """Put nothing in the place of closed standard streams, lest a file of evidence takes their number."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(descriptor, True)
    os.close(descriptor)
    sys.stdout = sys.stdout or os.fdopen(1, "w", encoding="utf-8")
    sys.stderr = sys.stderr or os.fdopen(2, "w", encoding="utf-8")


def _fail(error: NameplateError) -> None:
    from nameplate.cli.output import print_error

    print_error(error, as_json="--json" in sys.argv[1:])
    sys.exit(error.exit_code)


def _operating_system(error: OSError) -> NameplateError:
    from nameplate.contract.errors import ClientError

    name = f": {error.filename}" if error.filename else ""
    return ClientError(
        f"The operating system refused: {error.strerror or error}{name}.", hint="Disk, rights, limits?"
    )


def _internal(error: Exception) -> NameplateError:
    from nameplate.contract.errors import ClientError

    return ClientError(
        f"nameplate itself failed: {type(error).__name__}: {error}.",
        why="This is a fault of nameplate, not of the server; what was measured is on disk.",
        hint="Run it again with NAMEPLATE_DEBUG=1 and report what it prints.",
    )
