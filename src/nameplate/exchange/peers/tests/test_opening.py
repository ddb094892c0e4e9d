"""Files are told apart by content; what is broken, foreign or too large is refused in words that say what it is."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from nameplate.contract.errors import CallerError
from nameplate.exchange import opening
from nameplate.exchange.formats import KNOWN
from nameplate.exchange.opening import objects, open_result
from nameplate.exchange.peers.tests.making import (
    ALL,
    DETAILED,
    GENAI_PERF,
    GUIDELLM,
    INFERENCE_PERF,
    LLAMA_BENCH,
    LLMD,
    LLMPERF,
    RAW,
    RECORDS,
    RESPONSES,
    SGLANG,
    SUMMARY,
    VLLM,
    document,
    golden,
    imported,
    lines,
    put,
)

KEYS = {
    SUMMARY: "aiperf", RECORDS: "aiperf-records", RAW: "aiperf-raw", GUIDELLM: "guidellm", VLLM: "vllm",
    DETAILED: "vllm", SGLANG: "sglang", GENAI_PERF: "genai-perf", INFERENCE_PERF: "inference-perf", LLMD: "llm-d",
    LLMPERF: "llmperf", RESPONSES: "llmperf-responses", LLAMA_BENCH: "llama-bench",
}  # fmt: skip


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("bom", [b"", b"\xef\xbb\xbf"])
def test_the_content_tells(name: str, bom: bytes, tmp_path: Path) -> None:
    """A name that lies, a byte-order mark and another layout change nothing."""
    path = put(tmp_path, bom + golden(name), "results.csv")
    assert open_result(path).format.key == KEYS[name]
    if not open_result(path).format.lines:
        pretty = json.dumps(document(name), indent=4).encode()
        assert open_result(put(tmp_path, bom + pretty)).format.key == KEYS[name]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "It is empty"),
        (b" \n\t", "nothing but blanks"),
        (b"<!doctype html><html>", "a page of HTML"),
        (gzip.compress(b"{}"), "At its top it has: nothing"),
        (b"PK\x03\x04", "a zip archive"),
        (b"PAR1\0\0", "a Parquet file"),
        (b"metric,avg,p50\nttft,1,2\n", "a table (CSV)"),
        (b"Traceback (most recent call last):", "plain text"),
        (b"[1, 2]", "not one of objects"),
        (b"[" * 100_000, "nested more deeply"),
        (b'{"a": ' * 5_000, "nested more deeply"),
        (b'{"hello": 1}', "At its top it has: hello"),
        (b"{}", "At its top it has: nothing"),
    ],
)
def test_what_is_no_result(content: bytes, words: str, tmp_path: Path) -> None:
    """Each is refused with what it seems to be, and with what is known."""
    with pytest.raises(CallerError) as refused:
        open_result(put(tmp_path, content))
    said = str(refused.value)
    assert words in said and "Known are" in said and all(kind.says in said for kind in KNOWN)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({"schema": "nameplate.speed/1"}, "a result of nameplate itself"),
        ({"schema": "nameplate.import/1"}, "a result of nameplate itself"),
        ({"plan": {}, "measurement": {}, "verdict": {}}, "one of our own trials"),
        ({"aiperf_version": "0.13.0", "summary": {}, "metrics": {}}, "AIPerf's server metrics"),
        ({"iterations": [], "boundary_summary": {}}, "AIPerf's search history"),
        ({"schema_version": "1.1", "data": [], "warmup": []}, "AIPerf's outputs.json"),
        ({"aggregated_metrics": {}, "individual_request_metrics": []}, "genai-bench"),
        ({"time_to_first_token": 1, "time_to_last_token": 2, "num_tokens_output": 3}, "LLMeter"),
        ({"choices": [], "object": "chat.completion"}, "an answer of a server"),
    ],
)
def test_what_is_known_and_not_read(value: object, words: str, tmp_path: Path) -> None:
    """Files of tools that are not read are named all the same."""
    with pytest.raises(CallerError, match="cannot be imported") as refused:
        open_result(put(tmp_path, value))
    assert words in str(refused.value)


@pytest.mark.parametrize("name", [SUMMARY, GUIDELLM, VLLM, DETAILED])
def test_a_cut_document(name: str, tmp_path: Path) -> None:
    """A document that ends inside a value is refused with what it seems to be."""
    data = golden(name)
    with pytest.raises(CallerError) as refused:
        open_result(put(tmp_path, data[: len(data) * 3 // 4]))
    said = str(refused.value)
    assert "cut" in said and ("seems to be" in said or "GuideLLM" in said)


def test_a_torn_last_line(tmp_path: Path) -> None:
    """A torn last line is dropped and said; the others count."""
    data = golden(RECORDS)
    (run,) = imported(put(tmp_path, data[:-40])).runs
    (check,) = [check for check in run.checks if check.name == "lines"]
    assert check.status == "unverified" and "line 6, the last one, is torn" in check.detail
    assert run.counts.requests == 4


def test_a_broken_line_inside(tmp_path: Path) -> None:
    """A line inside the file that cannot be read contradicts it, is named, and the others count."""
    kept = golden(RECORDS).splitlines(keepends=True)
    other = json.dumps(lines(SGLANG)[1]).encode() + b"\n"
    (run,) = imported(put(tmp_path, b"".join([*kept[:2], b"{oops}\n", other, *kept[2:]]))).runs
    (check,) = [check for check in run.checks if check.name == "lines"]
    assert check.status == "contradicted" and "2 cannot be read" in check.detail
    assert "line 3" in check.detail and "line 4: it is of another kind" in check.detail
    assert run.counts.requests == 5


def test_bare_numbers_that_are_no_json(tmp_path: Path) -> None:
    """What Python writes bare is read: Infinity as text, NaN as absent, and neither inside a text."""
    data = (
        b'{"duration": 1.0, "completed": 0, "model_id": "NaN, Infinity \\" NaN", "p50_ttft_ms": NaN, "a": 5'
    )
    (line,) = objects(put(tmp_path, data + b', "x": [-Infinity, Infinity]}'))
    assert line.value is not None
    assert bytes(line.value["model_id"]) == b'"NaN, Infinity \\" NaN"'
    assert (
        bytes(line.value["p50_ttft_ms"]) == b"null" and bytes(line.value["x"]) == b'["-Infinity", "Infinity"]'
    )


def test_large_files_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A document above the limit is refused with what it seems to be; a line above the limit is named."""
    monkeypatch.setattr(opening, "WHOLE_LIMIT_BYTES", 2_000)
    with pytest.raises(CallerError, match=r"larger than 0 MiB.*GuideLLM") as refused:
        imported(put(tmp_path, golden(GUIDELLM)))
    assert "memory is bounded" in str(refused.value)
    monkeypatch.setattr(opening, "LINE_LIMIT_BYTES", 900)
    (run,) = imported(
        put(tmp_path, golden(RECORDS) + b'{"a": "' + b"x" * 5_000 + b'"}\n' + golden(RECORDS))
    ).runs
    (check,) = [check for check in run.checks if check.name == "lines"]
    assert "line 7: longer than" in check.detail and "12 lines read" in check.detail


def test_a_directory_is_refused(tmp_path: Path) -> None:
    """What is no file is refused."""
    with pytest.raises(CallerError, match="holds no result file by a name that is known"):
        open_result(tmp_path)
    with pytest.raises(CallerError, match="is not a file"):
        open_result(tmp_path / "nothing")
