"""One small run of each kind, made once in simulated time, to be copied and damaged."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from nameplate.cli.main import main

DEMO = ("sim:demo", "--shape", "64/8")
COMMANDS: dict[str, tuple[str, ...]] = {
    "capacity": (
        "capacity", *DEMO, "--slo", "ttft p95 < 20ms", "--confirmations", "1", "--max", "2", "--requests", "8",
        "--fact", "hardware=4 x NVIDIA H200", "--fact", "quantisation=fp8",
    ),
    "rate": (
        "rate", *DEMO, "--slo", "ttft p95 < 40ms", "--resolution", "50%", "--requests", "40", "--confirmations", "1",
        "--max", "4", "--guess", "4",
    ),
    "curve": ("curve", *DEMO, "-c", "1,4"),
    "speed": ("speed", "sim:demo", "--contexts", "1k", "-c", "1,2", "--window", "2s", "--stable", "1s"),
    "soak": ("soak", *DEMO, "--rate", "1", "--arrivals", "constant", "--duration", "20s"),
    "trial": ("trial", *DEMO, "-c", "2", "--requests", "16"),
}  # fmt: skip
GOLDEN = Path(__file__).parents[3] / "exchange" / "peers" / "tests" / "golden" / "vllm_detailed.json"


@pytest.fixture(scope="session")
def made_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with one run of each kind; nobody changes it."""
    folder = tmp_path_factory.mktemp("runs")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for name, words in {**COMMANDS, "import": ("import", str(GOLDEN))}.items():
            patch.setattr(sys, "argv", ["nameplate", *words, "--out", str(folder / name)])
            with pytest.raises(SystemExit) as stop:
                main()
            assert stop.value.code in (0, 1, 3), name
    return folder


@pytest.fixture
def runs(made_runs: Path, tmp_path: Path) -> Callable[..., Path]:
    """Copy some of the runs into a folder of the test's own, and return that."""

    def copy(*names: str) -> Path:
        folder = tmp_path / "runs"
        folder.mkdir(exist_ok=True)
        for name in names or (*COMMANDS, "import"):
            shutil.copytree(made_runs / name, folder / name)
        return folder

    return copy
