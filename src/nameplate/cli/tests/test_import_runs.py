"""`nameplate import` of load tests: from files to a directory, an answer and an exit code."""

from __future__ import annotations

import gzip
import hashlib
import json
from pathlib import Path

import pytest

from nameplate.cli.tests.conftest import Run
from nameplate.exchange.peers import importing
from nameplate.exchange.peers.run import decode
from nameplate.exchange.peers.tests.making import (
    ALL,
    GENAI_PERF,
    HERE,
    INFERENCE_PERF,
    RAW,
    RECORDS,
    SGLANG,
    SUMMARY,
    VLLM,
    document,
    golden,
    lines,
    put,
)


@pytest.mark.parametrize("name", ALL)
def test_a_file_becomes_a_directory(run: Run, name: str) -> None:
    """The directory holds the document and the file itself, whose digest the document names; the answer comes first."""
    code, out, err = run("import", str(HERE / name), "--out", "got")
    assert (
        code == 0
        and not err
        and ("completed" in out or "2 runs" in out)
        and "Imported: these numbers are those of" in out
    )
    found = decode(Path("got/result.json").read_bytes())
    kept = Path("got", found.file).read_bytes()
    assert kept == golden(name) and found.sha256 == hashlib.sha256(kept).hexdigest()


def test_json_is_one_document(run: Run) -> None:
    """With --json the document is printed and nothing else."""
    code, out, _ = run("import", str(HERE / VLLM), "--json")
    assert code == 0 and json.loads(out)["schema"] == "nameplate.import/1"
    assert len(list(Path("runs").glob("import-*/result.json"))) == 1


def test_several_runs_are_one_line_each(run: Run) -> None:
    """Of several runs there is a table; --all prints each whole."""
    assert "2 runs" in run("import", str(HERE / SGLANG), "--out", "a")[1]
    assert "Run 2 of 2" in run("import", str(HERE / SGLANG), "--out", "b", "--all")[1]


def test_an_slo_decides_the_exit_code(run: Run, tmp_path: Path) -> None:
    """0 pass, 1 fail, 4 invalid; and 2 where the file cannot be judged."""
    fine = put(tmp_path, lines(RAW)[:-1], "fine.jsonl")
    assert run("import", str(fine), "--slo", "ttft p95 < 1s", "--out", "a")[0] == 0
    code, out, _ = run("import", str(HERE / RAW), "--slo", "ttft p95 < 1s", "--out", "b")
    assert code == 1 and "fail: rejected" in out and "client_lateness" in out
    again = put(tmp_path, [*lines(RAW)[:-1], *lines(RAW)[:-1]], "again.jsonl")
    assert run("import", str(again), "--slo", "ttft p95 < 1s", "--out", "c")[0] == 4
    code, _, err = run("import", str(HERE / SUMMARY), "--slo", "ttft p95 < 1s", "--out", "d")
    assert code == 2 and "no SLO can be judged" in err and not Path("d").exists()


def test_a_bad_slo_is_refused(run: Run) -> None:
    """An SLO that is none gives words and no directory."""
    code, _, err = run("import", str(HERE / RAW), "--slo", "fast", "--out", "a")
    assert code == 2 and "is not an SLO" in err and not Path("a").exists()


def test_nothing_is_overwritten(run: Run) -> None:
    """A directory that is not empty is refused."""
    assert run("import", str(HERE / VLLM), "--out", "got")[0] == 0
    code, _, err = run("import", str(HERE / VLLM), "--out", "got")
    assert code == 2 and "not empty" in err


def test_a_large_original_is_not_copied(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Above the limit the document names the file by its digest alone, and that is said."""
    monkeypatch.setattr(importing, "KEPT_LIMIT_BYTES", 100)
    code, _, err = run("import", str(HERE / VLLM), "--out", "got")
    assert code == 0 and "is not copied" in err and [p.name for p in Path("got").iterdir()] == ["result.json"]


def test_options_that_belong_elsewhere(run: Run) -> None:
    """--summary belongs to AIPerf's records."""
    code, _, err = run("import", str(HERE / VLLM), "--summary", str(HERE / SUMMARY), "--out", "got")
    assert code == 2 and "--summary belongs to AIPerf's records" in err


@pytest.mark.parametrize("name", ALL)
def test_an_import_verifies(run: Run, name: str) -> None:
    """Every number recomputes from the kept file; show prints it again."""
    run("import", str(HERE / name), "--out", "got")
    code, out, _ = run("verify", "got")
    assert code == 0 and "recomputes from the file that was read" in out
    assert "Imported: these numbers are those of" in run("show", "got")[1]


def test_a_forged_import_does_not_verify(run: Run) -> None:
    """A changed number, a changed original and a missing one are told apart: 4, 4 and 3."""
    judged = (
        "import",
        str(HERE / RAW),
        "--summary",
        str(HERE / SUMMARY),
        "--slo",
        "ttft p50 < 1s",
        "--out",
        "got",
    )
    assert run(*judged)[0] == 1
    published, original = Path("got/result.json"), Path("got", RAW)
    kept, data = published.read_bytes(), original.read_bytes()
    assert run("verify", "got")[0] == 0
    published.write_bytes(kept.replace(b'"fail"', b'"pass"', 1))
    code, out, _ = run("verify", "got")
    assert code == 4 and "runs[0].judged" in out
    published.write_bytes(kept)
    original.write_bytes(data + b"\n")
    code, out, _ = run("verify", "got", "--json")
    assert code == 4 and "its SHA-256 is another" in out
    original.unlink()
    assert run("verify", "got")[0] == 3


def test_contradictions_and_losses_decide_the_exit_code(run: Run, tmp_path: Path) -> None:
    """4 where the file contradicts itself, 3 where its last line is torn, and what is not told is no fault."""
    told = document(INFERENCE_PERF)
    told["failures"]["count"] = 7
    code, out, _ = run("import", str(put(tmp_path, told)), "--out", "a")
    assert code == 4 and "The file contradicts itself: counts" in out
    assert run("import", str(put(tmp_path, golden(RECORDS)[:-40], "torn")), "--out", "b")[0] == 3
    assert run("import", str(put(tmp_path, golden(SGLANG)[:-40], "torn2")), "--out", "c")[0] == 3
    broken = golden(SGLANG).replace(b"\n", b"\n{oops}\n", 1)
    assert run("import", str(put(tmp_path, broken, "broken")), "--out", "d")[0] == 4
    assert run("import", str(HERE / GENAI_PERF), "--out", "e")[0] == 0


def test_packed_files_verify(run: Run, tmp_path: Path) -> None:
    """A packed original is kept as it was given, and verifies."""
    packed = put(tmp_path, gzip.compress(golden(RAW)), "profile_export_raw.jsonl.gz")
    assert run("import", str(packed), "--out", "got")[0] == 0
    assert Path("got/profile_export_raw.jsonl.gz").read_bytes() == packed.read_bytes()
    assert run("verify", "got")[0] == 0


def test_a_directory_is_looked_through(run: Run, tmp_path: Path) -> None:
    """A directory in place of a file names the results in it."""
    (tmp_path / "results").mkdir()
    put(tmp_path / "results", golden(SUMMARY), "profile_export_aiperf.json")
    code, _, err = run("import", str(tmp_path / "results"))
    assert code == 2 and "profile_export_aiperf.json" in err and "is a directory" in err
