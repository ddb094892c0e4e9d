"""`nameplate sim`: serve the built-in engine on loopback."""

from __future__ import annotations

import click


@click.command(
    "sim",
    context_settings={"ignore_unknown_options": True, "help_option_names": []},
    add_help_option=False,
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def command(arguments: tuple[str, ...]) -> int:
    """Serve a preset of the built-in engine: nameplate sim demo --port 8000."""
    from nameplate.sim.__main__ import main

    try:
        return main(list(arguments))
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else 2
