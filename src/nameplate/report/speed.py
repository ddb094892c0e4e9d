"""The answer of a speed study: what one user reads and the most that the server gave, then the matrix."""

from __future__ import annotations

from pathlib import Path

from rich.console import Group, RenderableType
from rich.text import Text

from nameplate.evidence.layout import TRIALS
from nameplate.measure.speed_result import SpeedResult
from nameplate.report import numbers
from nameplate.report.imported import definitions, whose
from nameplate.report.layout import Command, facts, stacked
from nameplate.report.matrix import matrix
from nameplate.report.mixed import mixed_section
from nameplate.report.prefill import prefill_table
from nameplate.report.ran_on import ran_on
from nameplate.report.safe import safe, safe_text
from nameplate.report.speed_words import answer, coverage, methodology, notes
from nameplate.verdict.cell import CellStatus


def speed_summary(
    result: SpeedResult, directory: Path, again: str | None = None, *, discarded: bool = False
) -> RenderableType:
    """Return the whole answer of a speed study; `again` is the command line that repeats it, quoted for a shell.

    With `discarded` what was measured in cells that are not valid is shown too, in brackets.
    """
    explained: set[CellStatus] = set()
    return stacked(
        (
            _answer(result),
            prefill_table(result, explained, discarded=discarded),
            matrix(result, "decode", explained, discarded=discarded),
            matrix(result, "burst", explained, discarded=discarded),
            mixed_section(result, explained, discarded=discarded),
            notes(result),
            ran_on(result),
            definitions(result),
            methodology(result),
            _ending(result, directory, again),
        )
    )


def _answer(result: SpeedResult) -> RenderableType:
    lines: list[RenderableType] = []
    imported = whose(result)
    if imported is not None:
        lines.append(imported)
    valid = any(row.status is CellStatus.valid for row in result.rows)
    lines.append(Text(answer(result), style="bold green" if valid else "bold yellow"))
    said = coverage(result)
    if said:
        lines.append(Text(said))
    how = _how(result)
    if how:
        lines.append(Text(how, style="dim"))
    return Group(*lines)


def _how(result: SpeedResult) -> str:
    """Say in one line under which conditions the cells were measured."""
    contract = result.contract
    if contract is None or contract.speed is None:
        return ""
    speed, sampling = contract.speed, contract.sampling
    unique = f"{speed.unique_percent:g}% of each prompt its own"
    warm = ", each stream's prompt sent once before" if speed.warm_streams else ""
    temperature = (
        "the server's default temperature"
        if sampling.temperature is None
        else f"temperature {sampling.temperature:g}"
    )
    eos = "EOS ignored" if sampling.ignore_eos else "ended where the model ends them"
    profile = "" if speed.profile == "custom" else f"Profile {safe(speed.profile, 40)}: "
    said = f"outputs of up to {speed.output_tokens:,} tokens, {eos}, at {temperature}; {unique}{warm}."
    return profile + (said if profile else said[:1].upper() + said[1:])


def _ending(result: SpeedResult, directory: Path, again: str | None) -> RenderableType:
    where = str(directory)
    lines: list[tuple[str, RenderableType]] = []
    if result.spent_s:
        trials = numbers.count(sum(len(row.trials) for row in result.rows), "trial")
        lines.append(("Spent", f"{trials}, {numbers.rough(result.spent_s)}"))
    lines.append(("Evidence" if result.origin is None else "Result", safe_text(where, "bold", 1000)))
    if result.origin is None:
        lines.append(("Recompute", Command(("nameplate", "verify", where))))
    else:
        lines.append(
            ("", f"no evidence of ours; the imported file's SHA-256 is {safe(result.origin.sha256, 80)}")
        )
    lines.append(("All numbers", Command(("nameplate", "show", where, "--all"))))
    shown = next((row.trials[-1] for row in result.rows if row.trials), None)
    if shown is not None:
        lines.append(
            ("One request", Command(("nameplate", "show", f"{where}/{TRIALS}/{safe(shown, 100)}", "0")))
        )
    if again:
        lines.append(("Repeat", Command.of(again)))
    return facts(lines, indent=0)
