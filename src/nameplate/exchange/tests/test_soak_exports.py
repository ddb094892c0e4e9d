"""A soak in other tools' shapes: its totals, its windows in time, and nothing that it does not carry."""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from nameplate.exchange.exporting import export
from nameplate.exchange.formats_out import Format
from nameplate.exchange.peers.tests.making import contradicted, only, put
from nameplate.exchange.subject import Kind, subject_of
from nameplate.exchange.tables.windows import soak_result
from nameplate.measure.soak.result import SoakResult


@pytest.fixture
def result(made: Mapping[Kind, Path]) -> SoakResult:
    return soak_result(subject_of(made["soak"]))


def written(directory: Path, format_: Format) -> bytes:
    write, stream = export(directory, format_).write, io.BytesIO()
    assert write is not None
    write(stream)
    return stream.getvalue()


def families(text: bytes) -> dict[str, Any]:
    parse: Any = text_string_to_metric_families
    return {family.name: family for family in parse(text.decode())}


def test_windows_are_a_series_in_time(made: Mapping[Kind, Path], result: SoakResult) -> None:
    """Each window is a sample at its end, in seconds; the counts of all of it are counters."""
    held = families(written(made["soak"], "prometheus"))
    windows = [window for segment in result.segments for window in segment.windows]
    rates = held["nameplate_window_requests_per_second"].samples
    assert [sample.value for sample in rates] == [window.requests_per_s for window in windows]
    ends = [window.begin_wall_ns + window.end_ns - window.begin_ns for window in windows]
    assert [float(sample.timestamp) for sample in rates] == pytest.approx(
        [end / 1e9 for end in ends], abs=1e-3
    )
    medians = [s for s in held["nameplate_window_ttft_seconds"].samples if s.labels["statistic"] == "p50"]
    assert [s.value for s in medians] == pytest.approx([(w.ttft.p50 or 0) / 1e9 for w in windows if w.ttft.n])
    fates = {s.labels["fate"]: s.value for s in held["nameplate_requests"].samples}
    assert fates["completed"] == result.counts.ok and sum(fates.values()) == result.counts.sent
    assert held["nameplate_soak"].samples[0].labels["verdict"] == result.verdict.status


@pytest.mark.parametrize("kind", ["trial", "capacity", "curve", "speed", "soak", "imported runs"])
def test_names_are_by_convention(made: Mapping[Kind, Path], kind: Kind) -> None:
    """A name ends in its unit, every family is explained, and counters are whole numbers from zero on."""
    for name, family in families(written(made[kind], "prometheus")).items():
        assert family.documentation and name.startswith("nameplate_")
        assert not family.unit or name.endswith(f"_{family.unit}")
        assert name.endswith("_seconds") == (family.unit == "seconds")
        if family.type == "counter":
            assert all(sample.value >= 0 and sample.value == int(sample.value) for sample in family.samples)


def test_aiperfs_summary_of_a_soak(made: Mapping[Kind, Path], result: SoakResult, tmp_path: Path) -> None:
    """What totals and sketches carry: counts, rates, TTFT and latency; no ITL, which AIPerf divides otherwise."""
    run = only(put(tmp_path, written(made["soak"], "aiperf")))
    assert not contradicted(run) and run.counts.completed == result.counts.ok
    assert run.measure("itl") is None and run.load.requests is None
    ttft, held = run.measure("ttft"), next(found for found in result.latencies if found.metric == "ttft")
    assert (
        ttft is not None and ttft.n == held.completed and ttft.mean == pytest.approx(held.mean_completed_ns)
    )
    assert "p50" in ttft.percentiles and "p99" not in ttft.percentiles
