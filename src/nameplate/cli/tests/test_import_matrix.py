"""`nameplate import` and `export` of llm-inference-bench, from files to files."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from nameplate.cli.main import COMMANDS
from nameplate.cli.tests.conftest import Run
from nameplate.exchange import loose
from nameplate.exchange.inference_bench.tests.making import PUBLISHED, cell, file, ours
from nameplate.measure.speed_result import SpeedResult, decode_speed, encode_speed
from nameplate.verdict.cell import CellStatus


def test_import_leaves_the_result_and_the_file(run: Run) -> None:
    """The directory holds our result and the file itself, whose digest the result names; the table is printed."""
    Path("theirs.json").write_bytes(PUBLISHED)
    code, out, _ = run("import", "theirs.json", "--out", "got")
    assert code == 0 and "not ready" in out and "extra traffic" in out and "KV claim contradicted" in out
    result = decode_speed(Path("got/result.json").read_bytes())
    assert result.origin is not None and result.origin.file == "theirs.json"
    kept = Path("got", result.origin.file).read_bytes()
    assert kept == PUBLISHED and result.origin.sha256 == hashlib.sha256(kept).hexdigest()


def test_what_was_imported_can_be_imported_again(run: Run) -> None:
    """The kept original gives the same result, and so does the export."""
    Path("theirs.json").write_bytes(PUBLISHED)
    run("import", "theirs.json", "--out", "one")
    run("import", "one/theirs.json", "--out", "two")
    assert Path("one/result.json").read_bytes() == Path("two/result.json").read_bytes()
    assert run("export", "one", "--to", "llm-inference-bench", "--out", "back.json")[0] == 0
    run("import", "back.json", "--out", "three")
    one, three = (decode_speed(Path(name, "result.json").read_bytes()) for name in ("one", "three"))
    assert one.rows == three.rows


def test_json_is_one_document(run: Run) -> None:
    """With --json the result is printed and nothing else."""
    Path("t.json").write_bytes(file(cell()))
    code, out, _ = run("import", "t.json", "--json")
    assert code == 0 and json.loads(out)["schema"] == "nameplate.speed/1"
    assert len(list(Path("runs").glob("import-*/result.json"))) == 1


def test_a_file_called_like_our_result(run: Run) -> None:
    """An original that bears our result's name is kept under another."""
    Path("result.json").write_bytes(file(cell()))
    assert run("import", "result.json", "--out", "got")[0] == 0
    assert {path.name for path in Path("got").iterdir()} == {"result.json", "original-result.json"}


def test_nothing_is_overwritten(run: Run) -> None:
    """Import refuses a directory that is not empty, export a file that exists."""
    Path("t.json").write_bytes(file(cell()))
    assert run("import", "t.json", "--out", "got")[0] == 0
    code, _, err = run("import", "t.json", "--out", "got")
    assert code == 2 and "not empty" in err
    code, _, err = run("export", "got", "--to", "llm-inference-bench", "--out", "t.json")
    assert code == 2 and "exists already" in err


def test_a_large_file_is_refused(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is larger than any result file is not read."""
    monkeypatch.setattr("nameplate.exchange.inference_bench.files.FILE_LIMIT_BYTES", 1 << 20)
    Path("t.json").write_bytes(file(cell()) + b" " * (1 << 20))
    code, _, err = run("import", "t.json")
    assert code == 2 and "larger than 1 MiB" in err
    assert loose.FILE_LIMIT_BYTES == 32 << 20


def test_hostile_files_are_the_callers_mistake(run: Run) -> None:
    """A file that cannot be read gives exit code 2, words, and no directory."""
    Path("t.json").write_bytes(b"[" * 100_000)
    code, _, err = run("import", "t.json", "--out", "got")
    assert code == 2 and "nested more deeply" in err and not Path("got").exists()


def test_keys_are_said_and_left_out(run: Run) -> None:
    """A key in the metadata is not in our result nor in the export, and the kept original is warned of."""
    Path("t.json").write_bytes(file(cell(), api_key="sk-verysecretvalue"))
    code, _, err = run("import", "t.json", "--out", "got")
    assert code == 0 and "looks like a key" in err
    _, out, _ = run("export", "got", "--to", "llm-inference-bench")
    assert "verysecret" not in Path("got/result.json").read_text() + out


def test_a_changed_original_is_refused(run: Run) -> None:
    """An original that is no longer what was imported is evidence that contradicts itself."""
    Path("t.json").write_bytes(file(cell()))
    run("import", "t.json", "--out", "got")
    Path("got/t.json").write_bytes(file(cell(aggregate_tps=999.0)))
    code, _, err = run("export", "got", "--to", "llm-inference-bench")
    assert code == 4 and "is not the file that was imported" in err
    Path("got/t.json").unlink()
    code, out, _ = run("export", "got", "--to", "llm-inference-bench")
    assert code == 0 and json.loads(out)["metadata"]["generator"].startswith("nameplate")


@pytest.mark.parametrize(
    ("content", "code", "words"),
    [
        (None, 2, "holds no run"),
        (b"{}", 4, "cannot be read"),
        (b'{"schema": "other/9"}', 4, "other/9"),
        (b"[" * 100_000, 4, "cannot be read"),
    ],
)
def test_directories_without_a_result(run: Run, content: bytes | None, code: int, words: str) -> None:
    """A directory that is no speed result is refused in words."""
    Path("d").mkdir()
    if content is not None:
        Path("d/result.json").write_bytes(content)
    found, _, err = run("export", "d", "--to", "llm-inference-bench")
    assert found == code and words in err


def test_a_trials_name_leads_nowhere_else(run: Run) -> None:
    """Keys of trials in a result that somebody made are not paths."""
    row = ours("decode", 8192, 1, CellStatus.valid, trials=("../../etc",))
    Path("d").mkdir()
    Path("d/result.json").write_bytes(encode_speed(SpeedResult(tool="t", rows=(row,))))
    code, out, _ = run("export", "d", "--to", "llm-inference-bench")
    assert code == 0 and json.loads(out)["results"][0]["request_samples"] == []


def test_both_commands_have_help(run: Run) -> None:
    """Both are listed, and `import` is found although Python keeps the word."""
    assert {"import", "export"} <= COMMANDS.keys()
    assert "llm-inference-bench" in run("import", "--help")[1]
    assert "--to" in run("export", "--help")[1]
