"""The consoles: stderr for people, stdout for answers, the environment respected."""

from __future__ import annotations

import io

import pytest
from rich.text import Text

from nameplate.report import console as room


@pytest.fixture(autouse=True)
def _clean(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")


class Terminal(io.StringIO):
    """A stream that says that it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_people_read_stderr_and_answers_go_to_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    """Progress never mixes with what was asked."""
    room.people().print("note")
    room.answers().print("answer")
    out, err = capsys.readouterr()
    assert (out, err) == ("answer\n", "note\n")


def test_a_pipe_has_a_width_of_its_own_and_no_colour(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pipe gets 120 columns without colour, or what COLUMNS says."""
    monkeypatch.setattr("sys.stdout", io.StringIO())
    console = room.answers()
    console.print(Text("x", style="red"))
    assert console.width == room.PIPED_WIDTH and not room.animated(console)
    assert console.file.getvalue() == "x\n"  # type: ignore[attr-defined]
    monkeypatch.setenv("COLUMNS", "72")
    assert room.answers().width == 72


def test_no_color_wins_and_force_color_makes_no_animation(monkeypatch: pytest.MonkeyPatch) -> None:
    """NO_COLOR leaves the text; FORCE_COLOR colours a pipe but redraws nothing."""
    monkeypatch.setattr("sys.stderr", Terminal())
    monkeypatch.setenv("NO_COLOR", "1")
    console = room.people()
    console.print(Text("x", style="red"))
    assert "31m" not in console.file.getvalue()  # type: ignore[attr-defined]
    assert room.animated(console)
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setattr("sys.stderr", io.StringIO())
    console = room.people()
    console.print(Text("x", style="red"))
    assert "31m" in console.file.getvalue()  # type: ignore[attr-defined]
    assert not room.animated(console)


def test_a_dumb_terminal_is_not_redrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """TERM=dumb cannot move its cursor."""
    monkeypatch.setattr("sys.stderr", Terminal())
    monkeypatch.setenv("TERM", "dumb")
    assert not room.animated(room.people())


def test_an_encoding_loses_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stream that cannot write a letter writes its number, and the table's lines become ASCII."""
    raw = io.BytesIO()
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(raw, encoding="ascii"))
    room.answers().print("café")
    assert raw.getvalue() == b"caf\\xe9\n"
