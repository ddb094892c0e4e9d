"""One real trial and one real study, made once; each test changes its own copy."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from nameplate.verify.tests.making import make_study, make_trial


@pytest.fixture(scope="session")
def sealed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("evidence") / "trial"
    make_trial(directory)
    return directory


@pytest.fixture
def trial(sealed: Path, tmp_path: Path) -> Path:
    """A copy of the sealed trial that the test may change."""
    copy = tmp_path / "trial"
    shutil.copytree(sealed, copy)
    return copy


@pytest.fixture(scope="session")
def sealed_study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("evidence") / "study"
    make_study(directory)
    return directory


@pytest.fixture
def study(sealed_study: Path, tmp_path: Path) -> Path:
    """A copy of the sealed study that the test may change."""
    copy = tmp_path / "study"
    shutil.copytree(sealed_study, copy)
    return copy
