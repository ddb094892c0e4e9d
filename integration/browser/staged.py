"""The `nameplate` command on a stage: a hostile server to measure, and a person who interrupts at a chosen moment.

    python -m integration.browser.staged [--interrupt-trial N | --interrupt-report N] COMMAND...

`sim:hostile` is the demonstration server with text in all it says that would run in a careless page.
An interrupt comes before trial N begins (from 1 on), or N reports into a load.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NoReturn

from msgspec import structs

from nameplate.cli.main import main as command
from nameplate.client.process import Command
from nameplate.contract.plan import TrialPlan
from nameplate.sim import presets, stream, tokens
from nameplate.trial import life
from nameplate.trial.corpus import Corpus
from nameplate.trial.interruption import Interruption

# Each would be caught in the act: by an element that is there, by `window.pwned`, or by text that is read backwards.
SCRIPT = "<script>window.pwned=1</script>"
IMAGE = '"><img src=x onerror=window.pwned=1>'
CLOSING = "</script></style></title></svg><script>window.pwned=2</script>"
SEPARATOR = "a\u2028b\u2029c"
BACKWARDS = "\u202egnp.exe\u202c"
TEMPLATE = "${window.pwned=3}{{window.pwned=4}}'`&lt;&#39;"
HOSTILE = (SCRIPT, IMAGE, CLOSING, SEPARATOR, BACKWARDS, TEMPLATE)

MODEL = f"{SCRIPT}{IMAGE}{BACKWARDS}"
FAILURE = f"{CLOSING} {IMAGE} {SEPARATOR} {TEMPLATE}"


def set_stage() -> None:
    """Let the built-in engine say hostile things: its model's name, its answers and its errors."""
    presets.PRESETS["hostile"] = structs.replace(presets.DEMO, name="hostile", model=MODEL)
    tokens._VOCABULARY = (*tokens._VOCABULARY, *(f" {text}" for text in HOSTILE * 40))
    stream._FAILURE = FAILURE


def interrupt_before(trial: int) -> None:
    """Interrupt when so many trials would have begun."""
    carry, begun = life.carry_trial, 0

    def carried(
        setup: life.TrialSetup,
        plan: TrialPlan,
        corpus: Corpus,
        directory: Path,
        arrival: Corpus | None = None,
    ) -> None:
        nonlocal begun
        begun += 1
        if begun == trial:
            setup.interruption.interrupt()
        carry(setup, plan, corpus, directory, arrival)

    life.carry_trial = carried


def interrupt_within(report: int) -> None:
    """Interrupt a load twice when it has reported so often: the first drains, the second cancels."""
    told, seen = Interruption.command, 0

    def command(self: Interruption) -> Command | None:
        nonlocal seen
        seen += 1
        if seen in (report, report + 1):
            self.interrupt()
        return told(self)

    Interruption.command = command  # type: ignore[method-assign]


def main() -> NoReturn:
    """Set the stage and run the command."""
    arguments = sys.argv[1:]
    set_stage()
    if arguments[:1] == ["--interrupt-trial"]:
        interrupt_before(int(arguments[1]))
        arguments = arguments[2:]
    elif arguments[:1] == ["--interrupt-report"]:
        interrupt_within(int(arguments[1]))
        arguments = arguments[2:]
    sys.argv = ["nameplate", *arguments]
    command()
    raise AssertionError("the command ends by itself")


if __name__ == "__main__":
    main()
