"""Files as people keep them: packed, in another encoding, in a directory; read, or refused in words."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nameplate import zstd
from nameplate.contract.errors import CallerError, NameplateError
from nameplate.exchange import strangers, streams
from nameplate.exchange.opening import digest, open_result
from nameplate.exchange.peers.tests.making import ALL, LLAMA_BENCH, RAW, SGLANG, VLLM, golden, imported, put
from nameplate.exchange.strangers import FOREIGN, FOREIGN_ITEMS, is_known_name

QUICK = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def two_frames(data: bytes) -> bytes:
    return zstd.compress(data[:100]) + zstd.compress(data[100:])


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("pack", [gzip.compress, zstd.compress, two_frames])
def test_packed_files_are_read(name: str, pack: object, tmp_path: Path) -> None:
    """gzip and zstd, of several frames too: the same runs, and the digest of the file as it is."""
    assert callable(pack)
    packed = put(tmp_path, pack(golden(name)), "packed")
    found, plain = imported(packed), imported(put(tmp_path, golden(name), "plain"))
    assert [run.measures for run in found.runs] == [run.measures for run in plain.runs]
    assert [run.recomputed for run in found.runs] == [run.recomputed for run in plain.runs]
    assert found.sha256 == digest(packed) != plain.sha256


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-32"])
@pytest.mark.parametrize("name", [VLLM, RAW, LLAMA_BENCH])
def test_other_encodings_are_read(name: str, encoding: str, tmp_path: Path) -> None:
    """UTF-16 and UTF-32 with their mark, as Windows shells write them, are read."""
    mark = b"\xff\xfe" if encoding == "utf-16-le" else b""
    found = imported(put(tmp_path, mark + golden(name).decode().encode(encoding)))
    assert [run.measures for run in found.runs] == [
        run.measures for run in imported(put(tmp_path, golden(name))).runs
    ]


@QUICK
@given(data=st.data())
def test_damaged_packing_is_said(tmp_path: Path, data: st.DataObject) -> None:
    """A packed file that is cut, or in which a byte changed, is read as far as it is sound, or refused in words."""
    packed = [pack(golden(SGLANG)) for pack in (gzip.compress, zstd.compress, two_frames)]
    whole = bytearray(data.draw(st.sampled_from(packed)))
    if data.draw(st.booleans()):
        whole = whole[: data.draw(st.integers(0, len(whole)))]
    else:
        whole[data.draw(st.integers(0, len(whole) - 1))] ^= data.draw(st.integers(1, 255))
    try:
        imported(put(tmp_path, bytes(whole)))
    except NameplateError as error:
        if not error.what:
            raise


def test_a_cut_archive(tmp_path: Path) -> None:
    """What cannot be unpacked is said to be cut or damaged."""
    with pytest.raises(CallerError, match="gzip file that cannot be unpacked"):
        open_result(put(tmp_path, gzip.compress(golden(VLLM))[:-20]))


def test_a_bomb_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What unpacks to more than is read is refused by its unpacked size; nothing is unpacked at once."""
    monkeypatch.setattr("nameplate.exchange.opening.WHOLE_LIMIT_BYTES", 1 << 20)
    with pytest.raises(CallerError, match="larger than 1 MiB"):
        open_result(put(tmp_path, gzip.compress(b'{"a":\n"' + b"x" * (4 << 20) + b'"}')))
    monkeypatch.setattr(streams, "TEXT_LIMIT_BYTES", 1_000)
    with pytest.raises(CallerError, match="Save it as UTF-8"):
        open_result(put(tmp_path, ("{}" * 1_000).encode("utf-16")))


def test_what_only_begins_as_text(tmp_path: Path) -> None:
    """A mark of UTF-16 before what is none is refused in words."""
    with pytest.raises(CallerError, match="begins as UTF-16 text"):
        open_result(put(tmp_path, b"\xff\xfe{\0\xd8"))


def test_a_directory_names_its_results(tmp_path: Path) -> None:
    """Known names in it and one level below are listed, with the command for the first; per-request files are not."""
    for name in ("stage_0_lifecycle_metrics.json", "per_request_lifecycle_metrics.json", "notes.txt"):
        put(tmp_path, {}, name)
    (tmp_path / "artifacts").mkdir()
    put(tmp_path / "artifacts", {}, "profile_export_aiperf.json.gz")
    with pytest.raises(CallerError) as refused:
        open_result(tmp_path)
    said = str(refused.value)
    assert "artifacts/profile_export_aiperf.json.gz, stage_0_lifecycle_metrics.json" in said
    assert "notes" not in said and "per_request" not in said and "nameplate import" in said


def test_a_name_that_stands_twice(tmp_path: Path) -> None:
    """Which of two values counts is not said: refused, wherever it is; in a text it is none."""
    for data in (b'{"duration": 1, "completed": 1, "model_id": "a", "duration": 2}', golden(LLAMA_BENCH)):
        twice = data.replace(b'"n_gen"', b'"n_gen": 0, "n_gen"', 1)
        with pytest.raises(CallerError, match="twice in one object"):
            open_result(put(tmp_path, twice))
    fine = b'{"duration": 1, "completed": 1, "model_id": "\\"duration\\": 1", "p50_ttft_ms": 1}'
    assert open_result(put(tmp_path, fine)).format.key == "vllm"


@pytest.mark.parametrize("stranger", [*FOREIGN, *FOREIGN_ITEMS], ids=lambda held: held.says)
def test_strangers_are_named(stranger: strangers.Stranger, tmp_path: Path) -> None:
    """Each kind that is known and not read is named by its content, with what to give instead where there is any."""
    value: object = dict.fromkeys(stranger.names, 1)
    if stranger in FOREIGN_ITEMS:
        value = json.dumps([value]).encode()
    with pytest.raises(CallerError, match="cannot be imported") as refused:
        open_result(put(tmp_path, value))
    assert stranger.says in str(refused.value) and (stranger.hint or "Known are") in str(refused.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Metric,avg,min,max,p99\nTime To First Token (ms),1,2,3,4\n", "the CSV of AIPerf or GenAI-Perf"),
        ("=" * 48 + "\nMLPerf Results Summary\n" + "=" * 48, "MLPerf's mlperf_log_summary.txt"),
        (":::MLLOG {}", "MLPerf's detailed log"),
        ("Type,Name,Request Count,Failure Count,Median Response Time\n", "the statistics of locust"),
        ("metric_name,timestamp,metric_value,check\n", "the CSV of k6"),
        ("build_commit,build_number,cpu_info\n", "the CSV of llama-bench"),
        ("| model                          |       size |     params |\n", "the table of llama-bench"),
        ("INSERT INTO llama_bench (build_commit) VALUES ('a');", "the SQL of llama-bench"),
        ("# a report\nversion: '0.2.1'\nrun:\n  uid: a\nscenario:\n", "an llm-d benchmark report as YAML"),
        ("args:\n  target: http://x\n", "perhaps GuideLLM's benchmarks.yaml"),
        ("============ Serving Benchmark Result ============\n", "what a benchmark printed"),
        ("# HELP vllm:num_requests_running n\n", "a page of Prometheus metrics"),
    ],
)
def test_texts_are_named(text: str, words: str, tmp_path: Path) -> None:
    """Texts of known tools are named by how they begin, packed or not."""
    for data in (text.encode(), b"\xef\xbb\xbf" + text.encode(), gzip.compress(text.encode())):
        with pytest.raises(CallerError, match="cannot be imported") as refused:
            open_result(put(tmp_path, data))
        assert words in str(refused.value)


def test_names_of_results() -> None:
    """Names are looked at in a directory alone."""
    assert is_known_name("my_profile_export_genai_perf.json") and is_known_name("toy-64-4_summary.json.zst")
    assert not is_known_name("config.json") and not is_known_name("stage_0_session_lifecycle_metrics.json")
