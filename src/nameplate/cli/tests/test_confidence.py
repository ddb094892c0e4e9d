"""`--confidence`: what is refused, what is told first, what the answer says, and what `verify` makes of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nameplate.cli.tests.conftest import Run

CAPACITY = ("capacity", "sim:demo", "--shape", "64/8", "--slo", "ttft p95 < 60ms", "--max", "2")
SMALL = (*CAPACITY, "--warmup", "1", "--out", "runs/c")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--confidence", "95"), "not a share"),
        (("--confidence", "100%"), "from 50% to 99.99%"),
        (("--confidence", "0.3"), "from 50% to 99.99%"),
        (("--confidence", "surely"), "not a share"),
        (("--confidence", "95%", "--tolerance", "1", "--extra-confirmations", "2"), "Leave one of them out"),
        (("--confidence", "95%", "--slo", "error_rate < 0.001%", "--requests", "64"), "1,000 trials"),
    ],
)
def test_nonsense_is_refused_before_anything_is_sent(
    run: Run, arguments: tuple[str, ...], words: str
) -> None:
    """Exit code 2, what is wrong and what to try, and no directory."""
    code, out, err = run(*CAPACITY, *arguments)
    assert code == 2 and words in err + out
    assert "probing" not in err and not Path("runs").exists()


def test_a_certified_study_tells_its_price_and_verifies(run: Run) -> None:
    """The price comes first, then its time; the plate holds what was asked and shown; verify finds what was changed."""
    code, out, err = run(*SMALL, "--confidence", "60%")
    assert code == 3, err
    asked = err.index("a confidence of 60% takes 5 trials of 64 requests")
    assert asked < err.index("probing the server") < err.index("certifying C=2 takes 5 trials")
    assert "at 60%: 5 of 5 trials pass" in out and "5 of 5 trials passed, so with 90% confidence" in out
    plate = json.loads(Path("runs/c/plate.json").read_text())
    (shape,) = plate["shapes"]
    assert plate["contract"]["rules"]["confidence"] == 0.6
    (level,) = shape["levels"]
    assert level["demand"] == {"confidence": 0.9, "trials": 5} and level["trials"] == ["pass"] * 5
    assert shape["certified"][0]["holds"] and shape["certified"][0]["confidence"] == 0.9
    assert run("verify", "runs/c")[0] == 0

    record = Path("runs/c/study.json")
    held = json.loads(record.read_text())
    held["shapes"][0]["levels"][0]["demand"]["trials"] = 4
    record.write_text(json.dumps(held))
    code, out, _ = run("verify", "runs/c")
    assert code == 4 and "recomputed" in out
