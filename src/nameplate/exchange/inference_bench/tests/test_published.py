"""A published file (abridged, made anonymous; its numbers as they were), whose table shows what it did not measure."""

from __future__ import annotations

import pytest

from nameplate.exchange.inference_bench.imported import imported
from nameplate.exchange.inference_bench.reading import read_document
from nameplate.exchange.inference_bench.sharing import stairs_of
from nameplate.exchange.inference_bench.tests.making import PUBLISHED
from nameplate.measure.speed_result import CellRow, SpeedResult, decode_speed, encode_speed
from nameplate.verdict.cell import CellStatus


@pytest.fixture(scope="module")
def result() -> SpeedResult:
    return imported(read_document(PUBLISHED, "published.json"), "published.json", "0" * 64, "nameplate test")


def row(result: SpeedResult, label: str, concurrency: int) -> CellRow:
    (found,) = (row for row in result.rows if row.label == label and row.concurrency == concurrency)
    return found


@pytest.mark.parametrize(
    ("cell", "claim"),
    [
        (("64K", 12), "270,336 of 1,515,055 tokens, yet 9.7 on average ran with the pool 93% full"),
        (("128K", 8), "376,832 of 1,515,055 tokens, yet 5 ran with the pool"),
        (("128K", 12), "516,096 of 1,515,055 tokens, yet 5 ran with the pool"),
    ],
)
def test_cells_that_never_ran_whole_are_not_ready(
    result: SpeedResult, cell: tuple[str, int], claim: str
) -> None:
    """A cell whose warm-up timed out has no rate, and its reason says what contradicts the tool's KV claim."""
    found = row(result, *cell)
    assert found.status is CellStatus.not_ready and found.values is None
    assert "KV claim contradicted" in found.reason and claim in found.reason
    assert "the warm-up timed out" in found.reason


def test_a_stranger_in_the_cell_voids_it(result: SpeedResult) -> None:
    """Nine running of eight is extra traffic, not 47 tok/s; what the tool shows stays as a note."""
    found = row(result, "64K", 8)
    assert found.status is CellStatus.extra_traffic and found.values is None
    assert "9 running of 8" in found.reason
    assert any("47.3 tok/s" in note for note in found.notes)
    assert found.discarded is not None and found.discarded.tokens_per_s == pytest.approx(47.297, abs=0.001)


def test_the_other_cells_keep_their_numbers(result: SpeedResult) -> None:
    """Every other cell is valid, with the file's own rate and its times in nanoseconds."""
    assert sum(row.status is CellStatus.valid for row in result.rows) == 16 and len(result.rows) == 20
    values = row(result, "8K", 1).values
    assert values is not None and values.tokens_per_s == 45.43333333333333
    assert values.ttft is not None and values.ttft.p50 == pytest.approx(187e6) and values.ttft.n == 1
    assert values.ttft.unit == "ns" and values.ttft.min is None and values.ttft.p95 is None
    assert values.e2e is None, "0.0 is how that tool writes absent"
    assert values.itl is not None and values.itl.mean == pytest.approx(22.85e6, rel=1e-3)


def test_percentiles_of_fewer_requests_are_marked(result: SpeedResult) -> None:
    """Four of eight requests got a token: the percentiles say so, and n is four."""
    found = row(result, "128K", 8)
    assert any("the 4 requests that got a token, of at least 8" in note for note in found.notes)
    assert found.discarded is not None and found.discarded.ttft is not None and found.discarded.ttft.n == 4


def test_first_token_times_betray_the_sharing(result: SpeedResult) -> None:
    """At 64K and 128K the times step by whole cold prefills, at 8K and 32K they do not."""
    stairs = {s.context: s for s in stairs_of(read_document(PUBLISHED, "published.json"))}
    assert [s.unshared for s in stairs.values()] == [False, False, True, True]
    assert stairs[65536].statistic == pytest.approx(0.93, abs=0.02)
    assert stairs[131072].statistic == pytest.approx(0.80, abs=0.02)
    assert stairs[8192].statistic < 0.15 and stairs[32768].statistic < 0.35
    assert stairs[65536].step_s == pytest.approx(34.5, abs=0.5)
    (warning,) = (text for text in result.warnings if "sharing" in text)
    assert "at 64K" in warning and "at 128K" in warning and "8K first" not in warning.replace("128K", "")


def test_the_pool_given_by_hand_is_named(result: SpeedResult) -> None:
    """Where the pool is far fuller than claimed in every cell, the result warns of the claim and of the pool's size."""
    (warning,) = (text for text in result.warnings if "KV claim" in text)
    assert "20 of 20" in warning and "given by hand" in warning


def test_the_tools_machine_is_not_taken_for_the_server(result: SpeedResult) -> None:
    """Hardware in the file is that of the client, with its diagnostics as they were."""
    (host,) = result.hosts
    assert host.which == "client" and host.gpus[0].name == "NVIDIA GeForce RTX 5090"
    assert host.p2p.missing and not host.p2p.effective
    topology = host.diagnostic("nvidia_smi_topo")
    assert topology is not None and topology.returncode == 255


def test_the_server_is_known_from_the_log(result: SpeedResult) -> None:
    """Engine version and context limit come from the event log, each with its source."""
    assert result.identity.value("version") == "0.21.1rc1.dev339+g1967a5627bc3"
    assert result.limits.context_tokens == 1_048_576 and result.limits.kv_tokens == 1_515_055
    assert result.identity.facts["kv_tokens"].source == "event_log: given by hand"


def test_the_origin_keeps_its_own_words(result: SpeedResult) -> None:
    """The origin holds tool, version, digest, the metadata as it was and what each used field means there."""
    origin = result.origin
    assert origin is not None and (origin.tool, origin.version) == ("llm-inference-bench", "0.4.30")
    assert origin.metadata["cell_warmup_timeout_seconds"] == 300.0
    assert "time from readiness to the last" in origin.definitions["aggregate_tps"]
    assert "slowdown" not in origin.definitions, "no field of mixed prefill was used"


def test_the_result_is_one_of_our_format(result: SpeedResult) -> None:
    """The imported result survives being written and read."""
    assert decode_speed(encode_speed(result)) == result and result.finished
