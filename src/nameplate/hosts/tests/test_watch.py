"""The sampling process."""

from __future__ import annotations

import io
import os
import threading
import time
from pathlib import Path

import pytest

from nameplate.hosts.sample import GpuSample, read_samples
from nameplate.hosts.sources import Source, Unavailable
from nameplate.hosts.tests.fakes import write_pynvml, write_tool
from nameplate.hosts.watch import GpuWatcher, Reader, watch


class Counting:
    """A source that counts its readings and closes the pipe after some of them."""

    def __init__(self, stop_after: int = 0, pipe: int | None = None, fail_at: int = -1) -> None:
        self.readings = 0
        self._stop_after = stop_after
        self._pipe = pipe
        self._fail_at = fail_at

    def read(self) -> list[GpuSample]:
        self.readings += 1
        if self.readings == self._stop_after and self._pipe is not None:
            os.close(self._pipe)
        if self.readings == self._fail_at:
            raise ValueError("odd")
        return [GpuSample(t_ns=self.readings, index=index, power_milliwatts=1) for index in (0, 1)]


def test_one_line_a_gpu_a_reading_until_stdin_closes() -> None:
    """Each reading is a line a GPU; a reading that fails inside is a line with its error; the pipe ends it."""
    read_end, write_end = os.pipe()
    file = io.BytesIO()
    source = Counting(3, write_end, fail_at=2)
    lines = watch(Reader(lambda: source), file, read_end, 0.05)
    os.close(read_end)
    assert lines == 5 and source.readings == 3
    rows = file.getvalue().splitlines()
    assert len(rows) == 5 and b"failed inside: ValueError" in rows[2]


def test_no_source_is_one_line() -> None:
    """Where there is nothing to sample that is said once, and nothing is asked again."""
    read_end, write_end = os.pipe()
    file = io.BytesIO()

    def none() -> Source:
        threading.Timer(0.2, os.close, (write_end,)).start()
        raise Unavailable("pynvml is not installed")

    assert watch(Reader(none), file, read_end, 0.05) == 1
    os.close(read_end)
    assert b"pynvml is not installed" in file.getvalue()


def test_a_hanging_reading_is_an_error() -> None:
    """A reading that does not return is said each time, is not asked for again, and its late answer still counts."""
    release = threading.Event()

    class Hanging(Counting):
        def read(self) -> list[GpuSample]:
            release.wait(30)
            return super().read()

    source = Hanging()
    reader = Reader(lambda: source, limit_s=0.02)
    for _ in range(2):
        (row,) = reader.read()
        assert row.error is not None and "has not returned" in row.error
    release.set()
    while (rows := reader.read())[0].error is not None:
        pass
    assert [row.index for row in rows] == [0, 1] and source.readings == 1


def wait_for(file: Path, lines: int) -> list[GpuSample]:
    """Wait until the file holds so many samples."""
    end_s = time.monotonic() + 20
    while time.monotonic() < end_s:
        samples, _ = read_samples(file)
        if len(samples) >= lines:
            return samples
        time.sleep(0.02)
    pytest.fail(f"{file} did not come to {lines} samples")


@pytest.mark.live
def test_process_with_nvml(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The child samples through NVML until it is told to stop, and ends by itself with status 0."""
    write_pynvml(tmp_path, LOST={1})
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    file = tmp_path / "gpu.jsonl"
    watcher = GpuWatcher(file, 0.05)
    before_ns = time.monotonic_ns()
    watcher.start()
    samples = wait_for(file, 4)
    states = [watcher.running, watcher.stop(), watcher.running]
    assert states == [True, 0, False]
    assert samples[0].power_milliwatts == 512345 and "GPU is lost" in (samples[1].error or "")
    assert before_ns < samples[0].t_ns < samples[2].t_ns < time.monotonic_ns()
    assert read_samples(file)[1] == []


@pytest.mark.live
def test_process_with_a_hanging_driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A driver that hangs leaves an error line, and the end is not delayed by it."""
    write_pynvml(tmp_path, HANG_IN="nvmlDeviceGetPowerUsage")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    file = tmp_path / "gpu.jsonl"
    watcher = GpuWatcher(file, 0.05)
    watcher.start()
    (first, *_) = wait_for(file, 1)
    assert first.error is not None and "has not returned" in first.error
    assert watcher.stop() == 0


@pytest.mark.live
def test_process_without_anything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without module and tool there is one line that says what was tried."""
    (tmp_path / "pynvml.py").write_text("raise ImportError('broken')\n")
    write_tool(tmp_path, "nvidia-smi", "echo 'no driver'; exit 9")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    file = tmp_path / "gpu.jsonl"
    watcher = GpuWatcher(file, 0.05)
    watcher.start()
    (first, *_) = wait_for(file, 1)
    assert watcher.stop() == 0
    assert first.error is not None and "broken" in first.error and "no driver" in first.error
    assert len(read_samples(file)[0]) == 1


def test_stop_without_start() -> None:
    """A watcher that never ran has nothing to stop."""
    assert GpuWatcher(Path("gpu.jsonl")).stop() is None
