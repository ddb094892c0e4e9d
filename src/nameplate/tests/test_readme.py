"""The README is true: its commands run, and its sample is what they print."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
README = ROOT / "README.md"

pytestmark = pytest.mark.skipif(not README.exists(), reason="an installed package has no README beside it")


def blocks(language: str) -> list[str]:
    """Return the README's fenced blocks of one language."""
    return re.findall(rf"```{language}\n(.*?)```", README.read_text(), re.DOTALL)


def nameplate(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "nameplate", *arguments],
        capture_output=True,
        text=True,
        cwd=cwd,
        timeout=300,
        env={**os.environ, "COLUMNS": "120"},
    )


def test_every_make_target_exists() -> None:
    """Each `make` command of the README is a target of the Makefile."""
    named = re.findall(r"\$ make ([a-z-]+)", "".join(blocks("console")))
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert named and set(named) <= set(targets)


def test_every_command_and_option_exists(tmp_path: Path) -> None:
    """Each nameplate command of the README is known, with every option that it shows."""
    lines = re.findall(r"\$ nameplate (.+)", "".join(blocks("console")))
    assert lines
    for line in lines:
        command, *_ = line.split()
        shown = nameplate(command, "--help", cwd=tmp_path)
        assert shown.returncode == 0, shown.stderr
        for option in re.findall(r"(--[a-z-]+)", line):
            assert option in shown.stdout, f"{command} has no {option}"


def test_the_sample_is_what_the_demo_prints(tmp_path: Path) -> None:
    """The demo's command, as the Makefile has it, prints the README's answer and table, and its evidence verifies."""
    (made,) = re.findall(
        r"\$\(BIN\)/nameplate (capacity .+) --out \$\(DEMO\)", (ROOT / "Makefile").read_text()
    )
    words = [word.strip('"') for word in re.findall(r'"[^"]*"|\S+', made)]
    done = nameplate(*words, "--out", "demo", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    answer, table, *_ = blocks("text")
    assert answer.strip() in done.stdout
    # The head to the letter, the rows by their level and verdict: prompts are fresh each time, and so are the digits.
    head = table.splitlines()[:4]
    assert "\n".join(head) in done.stdout
    rows = re.findall(r"^ +(\d+) +(\d) .* (pass|fail)$", table, re.MULTILINE)
    assert len(rows) == 6
    printed = re.findall(r"^ +(\d+) +(\d) .* (pass|fail)\s*$", done.stdout, re.MULTILINE)
    assert printed[:6] == rows
    assert nameplate("verify", "demo", cwd=tmp_path).returncode == 0


def test_the_matrix_is_what_speed_prints(tmp_path: Path) -> None:
    """The README's speed command on the built-in engine prints its table: the same cells, numbers within 3%."""
    (line,) = re.findall(r"\$ nameplate (speed sim:.+?)  +#", "".join(blocks("console")))
    done = nameplate(*line.split(), "--out", "matrix", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    *_, sample, _curve = blocks("text")
    # Prompts are fresh each time, and so are the last digits.
    begin = done.stdout.index(sample.splitlines()[0])
    printed = "\n".join(done.stdout[begin:].splitlines()[: len(sample.splitlines())])
    ours, theirs = (re.findall(r"[\d,]+\.?\d*", text) for text in (sample, printed))
    assert len(ours) == len(theirs) > 15
    for here, there in zip(ours, theirs, strict=True):
        assert float(there.replace(",", "")) == pytest.approx(float(here.replace(",", "")), rel=0.03)


def test_the_sentence_is_what_curve_prints(tmp_path: Path) -> None:
    """The README's curve command on the built-in engine says the same: the level, the knee, and the wait within 3%."""
    (line,) = re.findall(r"\$ nameplate (curve sim:.+?)  +#", "".join(blocks("console")))
    done = nameplate(*line.split(), "--out", "curve", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    sample, printed = (" ".join(text.split()) for text in (blocks("text")[-1], done.stdout))
    claim, _, knee = sample.partition(": ")[0], *sample.rpartition("). ")[1:]
    assert claim in printed and knee in printed
    # By how little output moves, and so how that is put, is in the digits that fresh prompts change.
    waits = r"median TTFT rose [\d.]+-fold \(([\d.]+) s -> ([\d.]+) s\)"
    ours, theirs = (re.search(waits, text) for text in (sample, printed))
    assert ours is not None and theirs is not None
    for here, there in zip(ours.groups(), theirs.groups(), strict=True):
        assert float(there) == pytest.approx(float(here), rel=0.03)


def test_linked_documents_exist() -> None:
    """Every document that the README links to is there."""
    for target in re.findall(r"\]\(([^)#:]+)\)", README.read_text()):
        assert (ROOT / target).exists(), target


def test_the_three_commands_work_on_a_live_server(tmp_path: Path) -> None:
    """What the README tells a reader to do with their own server works on one: probe, capacity, verify."""
    from nameplate.sim.process import running

    with running("demo") as server:
        assert nameplate("probe", server.url, cwd=tmp_path).returncode == 0
        # The README's shape and promise belong to a larger machine, and its confirmations take minutes.
        done = nameplate(
            "capacity", server.url, "--shape", "128/8", "--slo", "ttft p95 < 10s", "--quiet", "0s", "--max", "3",
            "--requests", "8", "--confirmations", "1", "--out", "runs/first", cwd=tmp_path,
        )  # fmt: skip
        assert done.returncode == 3, done.stderr  # open above: even the highest allowed level passes
        assert nameplate("verify", "runs/first", cwd=tmp_path).returncode == 0
        assert nameplate("check", "runs/first", server.url, cwd=tmp_path).returncode == 0


test_the_three_commands_work_on_a_live_server = pytest.mark.live(
    test_the_three_commands_work_on_a_live_server
)
