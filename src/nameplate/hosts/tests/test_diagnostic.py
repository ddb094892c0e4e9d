"""Commands under a deadline."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from nameplate.hosts.diagnostic import OUTPUT_LIMIT_BYTES, Probe, environment, harmless, run, run_all
from nameplate.hosts.tests.fakes import write_tool


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a directory whose scripts stand first on PATH."""
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    return tmp_path


def test_harmless_text() -> None:
    """Colours, titles, cursor movements, carriage returns and direction marks are gone; lines and letters stay."""
    raw = b"\x1b[1;31mred\x1b[0m\ttab\r\n\x1b]0;title\x07two\x08\x00\x9b2Jend\xe2\x80\xae \xc3\xa9\xff\x1b(B\n\n"
    assert harmless(raw) == "red\ttab\ntwo\ufffd2Jend é\ufffd"


def test_environment_holds_no_keys() -> None:
    """A tool is given its path and a plain language, and nothing that may be a key."""
    given = environment({"PATH": "/bin", "OPENAI_API_KEY": "sk-1", "LANG": "de_DE", "HF_TOKEN": "x"})
    assert given == {"PATH": "/bin", "LC_ALL": "C", "NO_COLOR": "1"}


def test_absent_tool_says_so() -> None:
    """A tool that is not there did not run, and the reason names it."""
    said = run(Probe("none", ("no-such-smi", "-L")))
    assert said.did_not_run == "no-such-smi is not installed"
    assert said.returncode is None and not said.ok and said.command == ("no-such-smi", "-L")


@pytest.mark.live
def test_answer_is_kept(tools: Path) -> None:
    """Return code and both outputs are kept, apart."""
    write_tool(tools, "fine-smi", 'echo "out $1"; echo err >&2; exit 7')
    said = run(Probe("fine", ("fine-smi", "a;b $HOME")))
    assert (said.returncode, said.stdout, said.stderr, said.did_not_run) == (7, "out a;b $HOME", "err", None)
    assert not said.ok


@pytest.mark.live
def test_unstartable_tool_says_so(tools: Path) -> None:
    """A file that cannot be executed is a reason, not a traceback."""
    (tools / "odd-smi").write_bytes(b"\x7fELF no program")
    (tools / "odd-smi").chmod(0o755)
    assert "could not be started" in (run(Probe("odd", ("odd-smi",))).did_not_run or "")


@pytest.mark.live
def test_hanging_tool_is_killed_with_its_children(tools: Path) -> None:
    """A tool that hangs, deaf to polite signals, is killed with what it started; what it said until then is kept."""
    write_tool(tools, "deaf-smi", "trap '' TERM INT HUP\nsleep 600 &\necho $!\nwait")
    start_s = time.monotonic()
    said = run(Probe("deaf", ("deaf-smi",)), 0.4)
    assert time.monotonic() - start_s < 5
    assert "killed after 0.4 s" in (said.did_not_run or "") and said.returncode is None
    child = int(said.stdout)
    for _ in range(100):
        state = Path(f"/proc/{child}/stat")
        if not state.exists() or ") Z" in state.read_text():
            break
        time.sleep(0.02)
    else:
        pytest.fail("the tool's own child is still there")


@pytest.mark.live
def test_left_behind_child_delays_nothing(tools: Path) -> None:
    """A tool that ends while a child of its own holds its output open is answered at once."""
    write_tool(tools, "loose-smi", "echo fine\nsleep 600 &\nexit 0")
    start_s = time.monotonic()
    said = run(Probe("loose", ("loose-smi",)), 20)
    assert time.monotonic() - start_s < 5
    assert said.ok and said.stdout == "fine"


@pytest.mark.live
def test_endless_output_is_bounded(tools: Path) -> None:
    """Output without end is cut, counted and stopped by the deadline."""
    write_tool(tools, "loud-smi", "exec yes 0123456789")
    said = run(Probe("loud", ("loud-smi",)), 0.4)
    assert len(said.stdout) < OUTPUT_LIMIT_BYTES + 100
    assert "more bytes were not kept" in said.stdout and said.did_not_run is not None


@pytest.mark.live
def test_several_share_one_deadline(tools: Path) -> None:
    """Commands run side by side: three that hang take one deadline, and the answers keep their order."""
    write_tool(tools, "slow-smi", "exec sleep 600")
    write_tool(tools, "quick-smi", "echo quick")
    start_s = time.monotonic()
    names = ("slow-smi", "quick-smi", "slow-smi", "gone-smi", "slow-smi")
    said = run_all([Probe(name, (name,)) for name in names], 0.5)
    assert time.monotonic() - start_s < 3
    assert tuple(entry.name for entry in said) == names
    assert [entry.ok for entry in said] == [False, True, False, False, False]
