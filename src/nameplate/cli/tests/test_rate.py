"""`nameplate rate`: refusals before the server is asked anything, and whole studies in simulated time."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from nameplate.cli.tests.conftest import Run
from nameplate.measure.plate import decode_plate
from nameplate.verify import verify

STUDY = ("rate", "sim:demo", "--shape", "64/8")
# Few and far apart: a study of a few seconds.
QUICK = (
    "--resolution", "50%", "--requests", "80", "--confirmations", "2", "--max", "300", "--guess", "60",
    "--slo", "ttft p95 < 40ms", "--out", "x",
)  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "--slo is missing"),
        (("--slo", "ttft p95 < 1s", "--min", "0"), "--min 0"),
        (("--slo", "ttft p95 < 1s", "--max", "nan"), "--max nan"),
        (("--slo", "ttft p95 < 1s", "--guess", "1e9"), "--guess"),
        (("--slo", "ttft p95 < 1s", "--min", "5", "--max", "2"), "No rate of the grid"),
        (("--slo", "ttft p95 < 1s", "--resolution", "0.1%"), "resolution"),
        (("--slo", "ttft p95 < 1s", "--resolution", "often"), "often"),
        (("--slo", "ttft p95 < 1s", "--arrivals", "nonsense"), "poisson, constant, or gamma:SHAPE"),
        (("--slo", "ttft p95 < 1s", "--arrivals", "gamma:1e-9"), "not a burstiness"),
        (("--slo", "ttft p95 < 1s", "--start", "handover"), "closed loop"),
        (("--slo", "ttft p95 < 1s", "--workers", "3", "--outstanding-limit", "2"), "cannot share"),
        (("--slo", "ttft p95 < 1s", "--resume", "nowhere"), "nowhere"),
    ],
)
def test_what_cannot_be_is_refused_in_words(run: Run, arguments: tuple[str, ...], words: str) -> None:
    """Exit code 2, what is wrong, and nothing asked of the server."""
    code, out, err = run(*STUDY, *arguments)
    assert code == 2 and words in err + out
    assert "probing" not in err and not Path("runs").exists()


def test_a_rate_is_found_told_and_verified(run: Run) -> None:
    """The time is told first; the summary begins with the rate; the evidence verifies; the plate can be checked."""
    code, out, err = run(*STUDY, *QUICK)
    assert code in (0, 3), out
    assert "lasts as long as they take to arrive: 1 s at 60 req/s" in err
    assert err.index("lasts as long") < err.index("probing the server")
    assert "requests/s of 64/8 (poisson arrivals) hold ttft p95 < 40 ms" in out.splitlines()[0]
    plate = decode_plate((Path("x") / "plate.json").read_bytes())
    assert plate.contract.rate is not None and plate.shapes[0].rated is not None
    assert verify(Path("x")).exit_code == 0
    code, out, _err = run("check", "x", "sim:demo")
    assert code == 0 and "requests/s" in out


def test_the_plate_is_printed_as_json_and_the_study_can_go_on(run: Run) -> None:
    """One document on standard output; a study that is over is replayed; the other command refuses it."""
    code, out, _err = run(*STUDY, *QUICK, "--json")
    assert code in (0, 3)
    said = msgspec.json.decode(out)
    assert said["schema"] == "nameplate.plate/2" and said["contract"]["rate"]["resolution"] == 0.5
    again, out, _err = run("rate", "sim:demo", "--resume", "x", "--json")
    assert again == code and msgspec.json.decode(out)["shapes"] == said["shapes"]
    code, _out, err = run("capacity", "sim:demo", "--resume", "x")
    assert code == 2 and "is a rate study" in err


def test_a_study_that_cannot_go_on_stays_what_it_was(run: Run) -> None:
    """Another server refuses its model: the rated result, its plate and its seal are as they were, and verify."""
    assert run(*STUDY, *QUICK)[0] in (0, 3)
    files, plate = sorted(Path("x").rglob("*")), decode_plate((Path("x") / "plate.json").read_bytes())
    code, _out, err = run("rate", "sim:matrix", "--resume", "x")
    assert code == 5 and "does not serve a model named" in " ".join(err.split())
    assert sorted(Path("x").rglob("*")) == files
    assert decode_plate((Path("x") / "plate.json").read_bytes()).shapes == plate.shapes
    assert verify(Path("x")).exit_code == 0


def test_a_budget_of_time_is_held(run: Run) -> None:
    """A trial that would outlast it is not begun, and no rate is made up."""
    code, out, _err = run(*STUDY, *QUICK, "--max-time", "2s")
    assert code == 3 and "would take" in out and "No number" in out
