"""Options from a TOML file: a table a command, each key an option's name without its dashes.

    [capacity]
    shape = ["2k/512", "8k/1k"]
    slo = "ttft p95 < 10s"
    fact = ["hardware=4 x B70", "driver=17012946"]

What the command line says wins over the file.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import click

from nameplate.contract.errors import CallerError


def read_config(path: Path, group: click.Group, ctx: click.Context) -> dict[str, dict[str, Any]]:
    """Read the file into defaults for each command's parameters; CallerError for what no command knows."""
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise CallerError(f"The file {path} cannot be read: {error.strerror}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise CallerError(f"{path} is not TOML: {error}.") from None
    return {
        name: _defaults(path, name, table, group.get_command(ctx, name)) for name, table in tables.items()
    }


def _defaults(path: Path, name: str, table: Any, command: click.Command | None) -> dict[str, Any]:
    if command is None or not isinstance(table, dict):
        raise CallerError(
            f"{path}: {name!r} is not a command.", hint="Write a table a command, such as [capacity]."
        )
    names = {option.lstrip("-"): parameter for parameter in command.params for option in parameter.opts}
    defaults: dict[str, Any] = {}
    for key, value in table.items():
        parameter = names.get(key)
        if parameter is None or parameter.name is None:
            raise CallerError(f"{path}: {name} has no option {key!r}.", hint=f"See nameplate {name} --help.")
        several = isinstance(parameter, click.Option) and parameter.multiple
        defaults[parameter.name] = [value] if several and not isinstance(value, list) else value
    return defaults
