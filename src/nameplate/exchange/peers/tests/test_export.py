"""Our trials in other tools' formats: by their definitions, readable by their readers, and back again."""

from __future__ import annotations

import csv
import io
import json
import math
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from nameplate.cli.main import main
from nameplate.contract.errors import CallerError
from nameplate.evidence import layout
from nameplate.evidence.reader import TrialReader
from nameplate.exchange.exporting import export
from nameplate.exchange.formats_out import Format
from nameplate.exchange.openmetrics.family import text_of
from nameplate.exchange.openmetrics.runs import families_of
from nameplate.exchange.peers.aiperf_out import aiperf_of
from nameplate.exchange.peers.comparable import comparable
from nameplate.exchange.peers.exporting import runs_of
from nameplate.exchange.peers.run import Measure, Run, encode
from nameplate.exchange.peers.sources import SENT
from nameplate.exchange.peers.tests.making import HERE, SGLANG, contradicted, imported, only, put
from nameplate.exchange.tables.as_csv import csv_of
from nameplate.exchange.tables.measures import measures_of
from nameplate.measure.result import decode


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the directory of a trial against the built-in engine, one of whose requests is refused."""
    out = tmp_path_factory.mktemp("export") / "run"
    words = [
        "nameplate",
        "trial",
        "sim:demo",
        "-c",
        "2",
        "--shape",
        "64/8",
        "--slo",
        "ttft p95 < 1s",
        "--json",
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", [*words, "--fault", "429@20", "--out", str(out)])
        with pytest.raises(SystemExit):
            main()
    return out


@pytest.fixture
def trial(study: Path) -> Path:
    return next((study / layout.TRIALS).iterdir())


def test_aiperfs_summary_is_by_its_definitions(trial: Path, tmp_path: Path) -> None:
    """Read back, it contradicts itself nowhere; failed requests are left out of it, and not of ours."""
    run = only(put(tmp_path, exported(trial, "aiperf")))
    result = decode((trial / layout.RESULT).read_bytes())
    assert not contradicted(run)
    assert run.counts.failed == 1 and run.counts.completed == result.measurement.correctness.ok
    ttft = run.measure("ttft")
    assert ttft is not None and ttft.n == run.counts.completed
    ok = sorted(row.ttft_ns or 0 for row in TrialReader(trial).rows() if row.measured and row.outcome == "ok")
    assert ttft.min == pytest.approx(ok[0]) and ttft.max == pytest.approx(ok[-1])
    assert run.load.concurrency == 2 and run.load.warmup_requests == result.plan.warmup
    assert run.definitions["ttft"].begins == SENT


def test_what_is_absent_is_left_out(trial: Path) -> None:
    """Without output there are no latencies; without failures no count of them."""
    reader = TrialReader(trial)
    told = json.loads(aiperf_of(reader.header(), (), ()))
    assert "time_to_first_token" not in told and "error_request_count" not in told
    assert told["request_count"]["avg"] == 0


def test_a_trial_of_ours_is_a_run(study: Path, trial: Path) -> None:
    """It has our definitions and our verdict, and stands beside other tools' runs without being taken for one."""
    (run,) = runs_of(study)
    assert run == runs_of(trial)[0] and run.label == trial.name
    assert run.judged is not None and run.judged.verdict.status == "fail"
    ttft = run.measure("ttft")
    assert ttft is not None and "p99" in ttft.infinite
    assert comparable(run, imported(HERE / SGLANG).runs[0]).comparable == ()


def test_csv_has_a_row_a_measure(study: Path) -> None:
    """Never is `inf`, absent is empty, and the numbers are those of the result."""
    rows = list(csv.DictReader(io.StringIO(exported(study, "csv").decode())))
    (run,) = runs_of(study)
    assert [row["measure"] for row in rows] == [measure.name for measure in run.measures]
    ttft = rows[0]
    assert ttft["p99"] == "inf" and ttft["mean"] == "" and ttft["verdict"] == "fail"
    measure = run.measure("ttft")
    assert measure is not None and float(ttft["p50"]) == measure.percentiles["p50"]


def test_openmetrics_can_be_parsed(study: Path) -> None:
    """The text is what a parser takes; times are seconds and never is +Inf."""
    (run,) = runs_of(study)
    families = {family.name: family for family in _families(_openmetrics([run, run]))}
    ttft = {sample.labels["statistic"]: sample.value for sample in families["nameplate_ttft_seconds"].samples}
    measure = run.measure("ttft")
    assert measure is not None and ttft["p50"] == pytest.approx(measure.percentiles["p50"] / 1e9)
    assert math.isinf(ttft["p99"]) and "mean" not in ttft
    runs = {sample.labels["run"] for sample in families["nameplate_requests"].samples}
    assert len(runs) == 2


def exported(directory: Path, format_: Format) -> bytes:
    """Return the one file that an export writes."""
    write, stream = export(directory, format_).write, io.BytesIO()
    assert write is not None
    write(stream)
    return stream.getvalue()


def _openmetrics(runs: Sequence[Run]) -> bytes:
    return b"".join(text_of(families_of(runs)))


def _families(text: bytes) -> Iterator[Any]:
    parse: Any = text_string_to_metric_families
    return iter(parse(text.decode()))


HOSTILE = '=cmd|" /C calc"!A0\n"} 1\\ \x1b[31m'


def test_hostile_names_stay_text() -> None:
    """A model's name is no formula in a spreadsheet and ends no label."""
    measure = Measure(name="ttft", field="ttft", unit="ns", n=1, mean=1.0)
    run = Run(tool=HOSTILE, label=HOSTILE, model=HOSTILE, measures=(measure,))
    (row,) = csv.DictReader(io.StringIO(b"".join(csv_of(measures_of([run], {}))).decode()))
    assert all(not value.startswith(("=", "+", "-", "@")) for value in row.values())
    (first, *_) = _families(_openmetrics([run, structs.replace(run, label="")]))
    assert {sample.labels["model"] for sample in first.samples} == {'=cmd|" /C calc"!A0 "} 1\\ [31m'}


def test_an_imported_file_is_exported(tmp_path: Path) -> None:
    """The runs of an import become a table, with the definitions of their tool."""
    found = imported(HERE / SGLANG)
    (tmp_path / layout.RESULT).write_bytes(encode(found))
    rows = list(csv.DictReader(io.StringIO(exported(tmp_path, "csv").decode())))
    assert {row["tool"] for row in rows} == {"SGLang bench_serving"}


def test_what_holds_no_run(tmp_path: Path, study: Path) -> None:
    """A directory without trials, and one that only lies in a study, are refused in words."""
    with pytest.raises(CallerError, match="holds no run"):
        runs_of(tmp_path)
    with pytest.raises(CallerError, match="holds no run"):
        export(study / layout.TRIALS, "aiperf")
