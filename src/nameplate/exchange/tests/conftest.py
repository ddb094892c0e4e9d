"""One small directory of every kind, made once by the commands themselves in simulated time."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from nameplate.cli.main import main
from nameplate.exchange.peers.tests.making import HERE, VLLM
from nameplate.exchange.subject import Kind

SHAPE = ("--shape", "64/8")
MADE: Mapping[Kind, tuple[str, ...]] = {
    "trial": ("trial", "sim:demo", *SHAPE, "-c", "2", "--requests", "20", "--slo", "ttft p95 < 1s"),
    "capacity": (
        "capacity", "sim:demo", *SHAPE, "--slo", "ttft p95 < 20ms", "--max", "2", "--requests", "20",
        "--confirmations", "2",
    ),
    "rate": (
        "rate", "sim:demo", *SHAPE, "--slo", "ttft p95 < 1s", "--max", "20", "--guess", "20", "--resolution", "50%",
        "--requests", "40", "--confirmations", "2",
    ),
    "curve": ("curve", "sim:demo", *SHAPE, "--concurrency", "1,2"),
    "speed": ("speed", "sim:h200", "--contexts", "1k", "-c", "2", "--window", "3s", "--stable", "1s"),
    "soak": (
        "soak", "sim:demo", *SHAPE, "--rate", "1", "--arrivals", "constant", "--duration", "40s", "--window", "10s",
        "--quiet-terminal",
    ),
    "imported runs": ("import", str(HERE / VLLM)),
}  # fmt: skip


def called(*words: str) -> int:
    """Run a command in this process; return its exit code."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["nameplate", *words])
        with pytest.raises(SystemExit) as stop:
            main()
    return stop.value.code if isinstance(stop.value.code, int) else 0


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Mapping[Kind, Path]:
    """Return a directory by its kind; what each answers is not looked at here."""
    root = tmp_path_factory.mktemp("exports")
    found: dict[Kind, Path] = {}
    for kind, words in MADE.items():
        found[kind] = root / kind.replace(" ", "-")
        assert called(*words, "--out", str(found[kind])) in (0, 1, 3), kind
    matrix = root / "matrix.json"
    assert called("export", str(found["speed"]), "--to", "llm-inference-bench", "--out", str(matrix)) == 0
    found["imported matrix"] = root / "imported-matrix"
    assert called("import", str(matrix), "--out", str(found["imported matrix"])) == 0
    return found
