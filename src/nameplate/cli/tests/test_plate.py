"""`nameplate plate`: a study's plate in every form, written at its end, and beside evidence that still verifies."""

from __future__ import annotations

import json
import shutil
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from nameplate.cli.main import main
from nameplate.cli.tests.conftest import Run
from nameplate.cli.tests.soaks import soak
from nameplate.evidence import layout
from nameplate.ratingplate import files
from nameplate.ratingplate.model import RatingPlate

QUICK = ("--shape", "64/8", "--max", "2", "--requests", "8", "--confirmations", "1", "--slo")


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run a small study in simulated time, once."""
    directory = tmp_path_factory.mktemp("plate") / "x"
    words = [
        "nameplate",
        "capacity",
        "sim:demo",
        *QUICK,
        "ttft p95 < 1s",
        "--quiet-terminal",
        "--out",
        str(directory),
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", words)
        with pytest.raises(SystemExit) as stop:
            main()
    assert stop.value.code == 3
    return directory


@pytest.fixture
def rated(study: Path, tmp_path: Path) -> str:
    """Return a copy of the study's directory, to be spoiled."""
    shutil.copytree(study, tmp_path / "x")
    return "x"


def test_written_at_the_end_of_a_study(run: Run, rated: str) -> None:
    """A study leaves its plate in four forms outside of its manifest, and its evidence verifies with them."""
    for name in layout.DRAWN:
        assert (Path(rated) / name).stat().st_size > 500
    listed = json.loads((Path(rated) / layout.MANIFEST).read_text())["files"]
    assert not set(layout.DRAWN) & set(listed)
    digest = json.loads((Path(rated) / layout.PLATE).read_text())["study_manifest_sha256"]
    assert digest in (Path(rated) / layout.PLATE_SVG).read_text()
    assert digest in (Path(rated) / layout.PLATE_MARKDOWN).read_text()
    assert run("verify", rated)[0] == 0


def test_forms(run: Run, rated: str) -> None:
    """Text is printed by default, with where the rest is; files are written where they are named."""
    code, out, err = run("plate", rated)
    assert code == 0
    assert "** OPEN ABOVE **" in out
    assert "** SIMULATED **" in out
    assert "--svg FILE" in err
    assert run("plate", rated, "--text")[1] == out
    assert run("plate", rated, "--markdown")[1].startswith("**Rated capacity** **SIMULATED**")
    code, out, _ = run("plate", rated, "--svg", "a.svg", "--png", "a.png")
    assert (code, out) == (0, "")
    ET.parse("a.svg")
    assert Path("a.svg").read_bytes() == (Path(rated) / layout.PLATE_SVG).read_bytes()
    assert Path("a.png").read_bytes() == (Path(rated) / layout.PLATE_PNG).read_bytes()
    assert run("plate", rated, "--markdown", "--svg", "a.svg")[1].startswith("![")
    code, out, _ = run("plate", rated, "--svg", "-")
    assert out.startswith("<svg ")
    assert json.loads(run("plate", rated, "--json")[1]) == json.loads(
        (Path(rated) / layout.PLATE).read_text()
    )
    assert run("plate", rated, "--json", "--text")[0] == 2


def test_nothing_to_draw(run: Run, rated: str) -> None:
    """What has no plate is refused in words: a folder, a trial, an unfinished study, a plate of other evidence."""
    Path("empty").mkdir()
    assert run("plate", "empty")[0] == 2
    trial = next((Path(rated) / layout.TRIALS).iterdir())
    code, _, err = run("plate", str(trial))
    assert code == 2
    assert "above trials/" in err
    with (Path(rated) / layout.MANIFEST).open("a") as stream:
        stream.write("\n")
    code, _, err = run("plate", rated)
    assert code == 4
    assert "another manifest" in err
    (Path(rated) / layout.PLATE).unlink()
    code, _, err = run("plate", rated)
    assert code == 2
    assert "not ended" in err


FORMS = ((), ("--svg", "a.svg"), ("--png", "-"), ("--markdown",), ("--write",), ("--json",))


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form[0] if form else "text")
def test_a_forged_rating_is_not_drawn(run: Run, rated: str, form: tuple[str, ...]) -> None:
    """A plate that says another number than the sealed results is refused, with both; no form of it is made."""
    path = Path(rated) / layout.PLATE
    drawn = (Path(rated) / layout.PLATE_TEXT).read_text()
    forged = path.read_text().replace('"rated": 2', '"rated": 90')
    path.write_text(forged)
    code, out, err = run("plate", rated, *form)
    said = json.loads(out)["error"]["what"] if form == ("--json",) else " ".join(err.split())
    assert code == 4
    assert "rated is 90, recomputed 2" in said
    assert "90" not in out or form == ("--json",)
    assert not Path("a.svg").exists()
    assert (Path(rated) / layout.PLATE_TEXT).read_text() == drawn


@pytest.mark.parametrize("gone", [layout.STUDY, layout.MANIFEST, layout.TRIALS, "all"])
def test_a_number_without_its_evidence_is_not_drawn(run: Run, rated: str, gone: str) -> None:
    """A plate without the sealed results beside it is a claim."""
    for path in list(Path(rated).iterdir()):
        if path.name == gone or (gone == "all" and path.name != layout.PLATE):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    code, out, err = run("plate", rated)
    assert (code, out) == (4, "")
    assert "No plate is drawn" in err


def test_a_changed_trial_is_named(run: Run, rated: str) -> None:
    """Evidence that was changed after its seal carries no plate, and the words say which."""
    trial = next((Path(rated) / layout.TRIALS).iterdir())
    with (trial / layout.REQUESTS).open("a") as stream:
        stream.write("{}\n")
    code, _, err = run("plate", rated)
    assert code == 4
    assert trial.name in err
    assert layout.REQUESTS in err


def test_a_place_that_cannot_be_written(run: Run, rated: str) -> None:
    """Whoever names a place that takes no file is at fault, whatever is written there."""
    Path("file").write_text("")
    for form in ("--svg", "--png"):
        code, _, err = run("plate", rated, form, "file/x")
        assert code == 2
        assert "cannot be written" in err
    (Path(rated) / layout.PLATE_SVG).unlink()
    (Path(rated) / layout.PLATE_SVG).mkdir()
    code, _, err = run("plate", rated, "--write")
    assert code == 2
    assert "cannot be written" in err


def test_a_plate_never_costs_the_study(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the plate cannot be drawn the study says so and ends as it would have."""

    def broken(held: RatingPlate) -> bytes:
        raise ValueError(held.title)

    monkeypatch.setitem(files.DRAWINGS, layout.PLATE_PNG, broken)
    code, out, err = run("capacity", "sim:demo", *QUICK, "ttft p95 < 1s", "--out", "y", drawn=False)
    assert code == 3
    assert "At least 2" in out
    assert "the plate could not be drawn (Rated capacity)" in err
    assert (Path("y") / layout.PLATE_TEXT).exists()


def test_other_studies(run: Run, tmp_path: Path) -> None:
    """Speed, curve and soak end with a plate too, and their evidence verifies with its files."""
    run(
        "speed", "sim:demo", "--contexts", "1k", "-c", "1", "--window", "1s", "--stable", "1s", "--out", "speed"
    )  # fmt: skip
    run("curve", "sim:demo", "--shape", "64/8", "--concurrency", "1,2", "--requests", "8", "--out", "curve")
    soak(tmp_path / "soak", "--duration", "20s")
    for name, title, unit in (
        ("speed", "MEASURED SPEED", "tok/s"),
        ("curve", "LOAD CURVE", "tok/s"),
        ("soak", "ENDURANCE", "requests/s for 20 s"),
    ):
        code, out, _ = run("plate", name)
        assert code == 0
        assert title in out
        assert unit in out
        assert "** SIMULATED **" in out
        assert all((Path(name) / drawn).exists() for drawn in layout.DRAWN)
        assert run("verify", name)[0] == 0
        assert json.loads(run("plate", name, "--json")[1])["schema"] == "nameplate.ratingplate/1"
