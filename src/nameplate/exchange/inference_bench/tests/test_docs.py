"""docs/exchange.md names fields that exist, and all that are used."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from nameplate.exchange.inference_bench.definitions import FIELDS, definitions
from nameplate.exchange.inference_bench.tests.making import HERE, read
from nameplate.measure.speed_result import CellRow, CellValues

PAGE = Path(__file__).resolve().parents[5] / "docs" / "exchange.md"
OURS = {*CellValues.__struct_fields__, *CellRow.__struct_fields__}
# From versions after 0.4.30, which the published shape is of.
NEWER = {
    "loop_detected", "failure_reason", "slowdown", "ttft_alone_s", "ttft_under_load_s", "bg_tok_s_before",
    "prefill.tok_per_sec", "prefill.ttft_seconds", "prefill.server_validation",
}  # fmt: skip
SECTION = "\n## Result files of llm-inference-bench"
PARTS = ("avg", "p50", "p90", "p99")

needs_page = pytest.mark.skipif(not PAGE.exists(), reason="an installed package has no docs beside it")


def theirs() -> set[str]:
    """Return every field name of that tool, summaries by their stem."""
    paths = json.loads((HERE / "published_shape.json").read_text())
    names = {part.removesuffix("[]") for path in paths for part in path.split(".")}
    return names | {name.removesuffix(f"_{part}") for name in names for part in PARTS} | NEWER


def test_each_definition_is_of_a_field_and_becomes_a_field() -> None:
    """Every field that is defined exists there, and what it becomes exists here."""
    for entry in FIELDS:
        assert entry.field in theirs(), entry.field
        assert not entry.ours or entry.ours in OURS, entry.ours
        assert entry.meaning.endswith(".")
    assert len(definitions(read({"concurrency": 1, "context_tokens": 0, "aggregate_tps": 1.0}))) < len(FIELDS)


@needs_page
def test_the_table_is_the_definitions() -> None:
    """The page's table lists exactly the fields that are defined, with what they become."""
    section = PAGE.read_text().split("## Which field becomes which")[1].split("\n### ")[0]
    listed = re.findall(r"^\| `([^`]+)` \| (?:`([^`]+)`)? ?\|", section, re.MULTILINE)
    assert listed == [(entry.field, entry.ours) for entry in FIELDS]


@needs_page
def test_every_name_on_the_page_exists() -> None:
    """Each field that the page names in prose is one of theirs or of ours."""
    words = set(re.findall(r"`([a-z_][a-z0-9_.]*)`", PAGE.read_text().split(SECTION)[1]))
    other = {"import", "export", "result.json", "generator", "nameplate"}
    assert words <= theirs() | OURS | other, words - theirs() - OURS - other
