"""Two runs are compared only where load and definitions agree; otherwise each reason is said."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from nameplate.exchange.peers.comparable import comparable
from nameplate.exchange.peers.run import Counts, Run
from nameplate.exchange.peers.sources import DEFINITIONS, definitions_of
from nameplate.exchange.peers.tests.making import (
    DETAILED,
    GUIDELLM,
    HERE,
    SGLANG,
    SUMMARY,
    VLLM,
    imported,
    only,
)

RUNS = {name: imported(HERE / name).runs[0] for name in (SUMMARY, GUIDELLM, VLLM, DETAILED, SGLANG)}


def _clean(name: str) -> Run:
    """Return a run of which no request failed."""
    return structs.replace(RUNS[name], counts=Counts(requests=4, completed=4, failed=0))


def test_a_run_compares_with_itself() -> None:
    """One definition and one load: every measure may be compared, unless requests failed and were left out."""
    run = _clean(SUMMARY)
    found = comparable(run, run)
    assert not found.whole and set(found.comparable) == {measure.name for measure in run.measures}
    lossy = comparable(RUNS[SUMMARY], run)
    assert "ttft" not in lossy.comparable and "requests failed" in lossy.measures["ttft"][0]


def test_definitions_that_differ_are_not_compared() -> None:
    """AIPerf's TTFT ends at the first output, vLLM's at any chunk: not compared; both sides are said."""
    found = comparable(_clean(SUMMARY), _clean(VLLM))
    assert not found.whole
    assert "ttft" not in found.comparable
    assert any("first chunk" in said and "first content" in said for said in found.measures["ttft"])
    assert any("tokenizer" in said for said in found.measures["output_rate"])


def test_percentile_methods_and_weights_count() -> None:
    """GuideLLM's percentiles are not interpolated and its ITL is weighted by tokens."""
    found = comparable(_clean(SUMMARY), _clean(GUIDELLM))
    assert any("not interpolated" in said for said in found.measures["ttft"])
    assert any("weighted by its tokens" in said for said in found.measures["itl"])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"model": "other/model"}, "the models differ"),
        (
            {"load": structs.replace(RUNS[VLLM].load, concurrency=3)},
            "the loads differ: 2 at once and 3 at once",
        ),
        ({"load": structs.replace(RUNS[VLLM].load, input_tokens=1024.0)}, "the input lengths differ"),
        ({"load": structs.replace(RUNS[VLLM].load, output_tokens=None)}, "the output length of one of them"),
        ({"load": structs.replace(RUNS[VLLM].load, concurrency=None, rate_unbounded=False)}, "is not known"),
    ],
)
def test_loads_that_differ(change: dict[str, object], words: str) -> None:
    """Another model, load or length refuses the whole comparison."""
    found = comparable(_clean(VLLM), structs.replace(_clean(VLLM), **change))
    assert any(words in said for said in found.whole) and found.comparable == ()


def test_a_file_that_contradicts_itself_is_not_compared(tmp_path: Path) -> None:
    """Numbers that contradict each other compare with nothing."""
    path = tmp_path / "vllm.json"
    path.write_bytes((HERE / VLLM).read_bytes().replace(b'"failed": 1', b'"failed": 3'))
    assert any("contradict" in said for said in comparable(only(path), RUNS[VLLM]).whole)


def test_a_property_that_nobody_knows_is_a_reason() -> None:
    """vLLM does not say who counted the input tokens: the sum is not compared, even with itself."""
    run = _clean(VLLM)
    assert "total_input_tokens" not in comparable(run, run).comparable


@given(st.sampled_from(sorted(RUNS)), st.sampled_from(sorted(RUNS)))
def test_it_does_not_matter_which_comes_first(a: str, b: str) -> None:
    """The same measures are comparable either way round."""
    assert set(comparable(RUNS[a], RUNS[b]).comparable) == set(comparable(RUNS[b], RUNS[a]).comparable)


@pytest.mark.parametrize("tool", sorted(DEFINITIONS))
def test_no_definition_is_lost(tool: str) -> None:
    """Only the definitions of measures that are there are given."""
    assert definitions_of(tool, {"ttft", "unheard"}).keys() == {"ttft"}
    assert definitions_of("another tool", {"ttft"}) == {}
