"""What a person sees who asks `nameplate speed` for something that cannot be."""

from __future__ import annotations

from pathlib import Path

import pytest

from nameplate.cli.tests.conftest import Run


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "TARGET is missing"),
        (("sim:nothing",), "unknown preset"),
        (("ftp://host",), "not an http(s) URL"),
        (("http://user:word@host",), "user name or password"),
        (("http://127.0.0.1:9", "--live"), "belong to sim:PRESET"),
        (("sim:matrix", "--fault", "nonsense"), "unknown fault"),
        (("sim:matrix", "--contexts", "8q"), "not a token count"),
        (("sim:matrix", "--contexts", ""), "8k,32k"),
        (("sim:matrix", "--contexts", ",,"), "8k,32k"),
        (("sim:matrix", "--contexts", "0"), "8k,32k"),
        (("sim:matrix", "--contexts", "-8k"), "not a token count"),
        (("sim:matrix", "--contexts", "1.0001k"), "whole number"),
        (("sim:matrix", "--contexts", "8", "-c", "1"), "too short"),
        (
            ("sim:matrix", "--contexts", "8", "-c", "1", "--no-prefill", "--unique-context", "50%"),
            "too short",
        ),
        (("sim:matrix", "--prefill-contexts", "long"), "not a token count"),
        (("sim:matrix", "--prefill-contexts", ""), "8k,32k"),
        (("sim:matrix", "-c", ""), "1,8,32"),
        (("sim:matrix", "-c", "0"), "1,8,32"),
        (("sim:matrix", "-c", "1,two"), "1,8,32"),
        (("sim:matrix", "-c", "-4"), "1,8,32"),
        (("sim:matrix", "-c", "1.5"), "1,8,32"),
        (("sim:matrix", "-c", "1" * 30), "open files"),
        (("sim:matrix", "--window", "30"), "not a duration"),
        (("sim:matrix", "--window", "0s"), "--window"),
        (("sim:matrix", "--window", ""), "250ms, 10s"),
        (("sim:matrix", "--window", "-3s"), "not a duration"),
        (("sim:matrix", "--stable", "0s"), "--stable"),
        (("sim:matrix", "--stable", "soon"), "not a duration"),
        (("sim:matrix", "--output", "0"), "--output"),
        (("sim:matrix", "--output", "many"), "not a token count"),
        (("sim:matrix", "--unique-context", "110%"), "not a share"),
        (("sim:matrix", "--unique-context", "-1%"), "not a share"),
        (("sim:matrix", "--unique-context", "half"), "not a share"),
        (("sim:matrix", "--unique-context", "nan"), "not a share"),
        (("sim:matrix", "--loop-limit", "5"), "not a share"),
        (("sim:matrix", "--ready-timeout", "0s"), "--ready-timeout"),
        (("sim:matrix", "--ready-timeout", ""), "250ms, 10s"),
        (("sim:matrix", "--requests", "0"), "--requests"),
        (("sim:matrix", "--requests", "x"), "--requests"),
        (("sim:matrix", "--prefill-samples", "0"), "--prefill-samples"),
        (("sim:matrix", "--burst-requests", "0"), "--burst-requests"),
        (("sim:matrix", "--mixed", "--mixed-arrival", "0"), "--mixed-arrival"),
        (("sim:matrix", "--mixed", "--mixed-arrival", ""), "not a token count"),
        (("sim:matrix", "--mixed", "--mixed-streams", "0"), "--mixed-streams"),
        (("sim:matrix", "--mixed", "--mixed-shape", "2k"), "not a shape"),
        (("sim:matrix", "--mixed", "--mixed-shape", "8/8", "--contexts", "1k", "-c", "1"), "too short"),
        (("sim:matrix", "--profile", "huge"), "huge"),
        (("sim:matrix", "--quick", "--profile", "standard"), "both given"),
        (("sim:matrix", "--prefill-only", "--no-prefill"), "leave nothing to measure"),
        (("sim:matrix", "--prefill-only", "--burst"), "measures nothing else"),
        (("sim:matrix", "--prefill-only", "--mixed"), "measures nothing else"),
        (("sim:matrix", "--prefill-only", "--requests", "3"), "measures nothing else"),
        (("sim:matrix", "--prefill-only", "--burst-requests", "3"), "measures nothing else"),
        (("sim:matrix", "--time-budget", "0s"), "--time-budget"),
        (("sim:matrix", "--time-budget", ""), "250ms, 10s"),
        (("sim:matrix", "--resume", "/nowhere"), "/nowhere"),
        (("sim:matrix", "--temperature", "hot"), "not a number"),
        (("sim:matrix", "--temperature", "-1"), "out of range"),
        (("sim:matrix", "--flush", "maybe"), "maybe"),
        (("sim:matrix", "--tokenizer", "/nowhere"), "/nowhere"),
        (("sim:matrix", "--deadline", "lunch=1h"), "NAME=DURATION"),
        (("sim:matrix", "--raw", "some"), "--raw"),
        (("sim:matrix", "--workers", "2"), "--workers"),
        (("sim:matrix", "--fact", "colour"), "not name=value"),
        (("sim:matrix", "--api-key-env", "NOT_SET_ANYWHERE"), "is not set"),
        (("sim:matrix", "--header", "no colon"), "--header"),
        (("sim:matrix", "--nonsense"), "--nonsense"),
    ],
)
def test_wrong_input_is_named(run: Run, arguments: tuple[str, ...], words: str) -> None:
    """Wrong input gets exit code 2 and words that name it or what to write instead, and leaves no directory."""
    code, out, err = run("speed", *arguments)
    assert code == 2, err
    assert words in " ".join(err.split())
    assert out == ""
    assert not list(Path("runs").glob("*"))


def test_what_is_taken_is_never_overwritten(run: Run) -> None:
    """A directory that holds something is refused, and keeps what it holds."""
    Path("taken").mkdir()
    Path("taken/thing").touch()
    code, _out, err = run("speed", "sim:matrix", "--out", "taken")
    assert code == 2 and "not empty" in err
    assert [path.name for path in Path("taken").iterdir()] == ["thing"]


def test_options_from_a_file(run: Run, tmp_path: Path) -> None:
    """A [speed] table gives defaults, and the command line wins over it."""
    file = tmp_path / "matrix.toml"
    file.write_text(
        '[speed]\ncontexts = "1k"\nconcurrency = "1,2"\nwindow = "2s"\nstable = "1s"\nno-prefill = true\n'
    )
    code, out, err = run("--config", str(file), "speed", "sim:matrix", "-c", "3", "--out", "x")
    assert code == 0, err
    assert "1K" in out and Path("x/trials/decode.1K.c3").is_dir()
    assert not Path("x/trials/decode.1K.c1").exists()
