"""Run commands in this process, and read what a speed study left."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from nameplate.cli.main import main
from nameplate.cli.tests.speeds import Found, read_found

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    """Run the command in this process; return its exit code and what it printed."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")

    def call(*arguments: str, drawn: bool = True) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["nameplate", *arguments])
        with pytest.raises(SystemExit) as stop:
            main()
        captured = capfd.readouterr()
        assert "Traceback" not in captured.err + captured.out
        assert "nameplate itself failed" not in captured.err
        # A page or a plate that fails costs a study a note: here it costs the test.
        assert drawn == ("could not be made" not in captured.err and "could not be drawn" not in captured.err)
        code = stop.value.code
        return (code if isinstance(code, int) else 0), captured.out, captured.err

    return call


@pytest.fixture
def speed(run: Run) -> Callable[..., Found]:
    """Run `nameplate speed` with short times into `out`, and return what it found; its evidence verifies."""

    def call(target: str, *arguments: str, out: str = "x", verified: bool = True) -> Found:
        # Whatever is given again counts: click takes an option's last value.
        code, _out, err = run(
            "speed", target, "--contexts", "1k", "-c", "2", "--window", "3s", "--stable", "1s",
            *arguments, "--out", out,
        )  # fmt: skip
        return read_found(Path(out), code, err, verified=verified)

    return call
