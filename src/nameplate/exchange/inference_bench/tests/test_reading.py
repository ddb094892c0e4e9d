"""Files that are damaged, hostile, of another tool or of another version."""

from __future__ import annotations

import json
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nameplate.contract.errors import CallerError
from nameplate.exchange.inference_bench.reading import context_of, read_document
from nameplate.exchange.inference_bench.tests.making import PUBLISHED, cell, file, read


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "not JSON"),
        (b"not json", "not JSON"),
        (b"[1, 2]", "a JSON list, not an object"),
        (b"[" * 100_000, "nested more deeply"),
        (b'{"a":' * 50 + b"1" + b"}" * 50, "nested more than"),
        (b'{"metadata": {"version": NaN}}', "NaN, which is no JSON number"),
        (b'{"results": [-Infinity]}', "-Infinity"),
        (b'{"metadata": {"x": ' + b"1" * 400 + b"}}", "more than 64 bits"),
        (b'{"metadata": {"x": 1e999}}', "not JSON"),
        (b'{"metadata": {"x": "\xff"}}', "not JSON"),
        (b"{}", "no metadata"),
        (b'{"aiperf_version": "0.12"}', "aiperf_version"),
        (b'{"metadata": []}', "where an object belongs"),
        (file(cell(), version="0.3.9"), "reads 0.4 and later"),
        (file(cell(), version="new"), "no version of"),
        (file(cell(), version=4), "where a text belongs"),
        (file(top={"results": None}), "holds no result"),
        (file(cell(aggregate_tps="fast")), 'results[0].aggregate_tps is "fast", where a number belongs'),
        (file(cell(aggregate_tps=True)), "where a number belongs"),
        (file(cell(aggregate_tps=1e30)), "no measurement gives that"),
        (file(cell(client_output_tokens=-4)), "where a count belongs"),
        (file(cell(underfilled="no")), "where true or false belongs"),
        (file(cell(request_samples=[3])), "where an object belongs"),
        (file(cell(), top={"event_log": "x"}), "where a list belongs"),
        (file(cell(), context_lengths=list(range(1, 5001)), concurrency_levels=[1, 2]), "plans 10,000 cells"),
        (
            file(cell(request_samples=[{}] * 99_999), *[cell(request_samples=[{}] * 60_000)] * 2),
            "219,999 request",
        ),
        (file(cell(), note="x" * (1 << 20)), "metadata is larger"),
        (file(cell(), unique_context_percent=250), "no percentage"),
        (file(cell(), top={"prefill": {"long": {}}}), "no context length"),
        (file({"aggregate_tps": 1.0, "concurrency": 0, "context_tokens": 0}), "which cell it is"),
    ],
)
def test_what_cannot_be_read_is_refused_in_words(data: bytes, words: str) -> None:
    """Whatever is wrong with a file, the error says what and where, without a traceback."""
    with pytest.raises(CallerError) as refused:
        read_document(data, "f.json")
    assert words in str(refused.value) and "\n" not in refused.value.what


@pytest.mark.parametrize(
    "version", ["0.4", "0.4.5", "v0.4.30", "0.5.0", "0.6.2", "1.2.3", "0.4.30+nameplate.0.1.0"]
)
def test_every_version_from_0_4_on_is_read(version: str) -> None:
    """Versions are read tolerantly from 0.4 on, whatever is appended to them."""
    assert read(cell(), version=version).setup.version == version


VALUES = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False) | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@settings(deadline=None, max_examples=60)
@given(VALUES, st.sampled_from([*cell(), "request_samples", "loop_diagnostics", "status"]))
def test_a_row_of_anything_is_read_or_refused(value: object, name: str) -> None:
    """Any JSON value in any field gives a document or an error in words, never anything else."""
    with suppress(CallerError):
        read_document(file(cell(), top={"results": [cell() | {name: value}]}), "f.json")


def test_cut_files_are_refused() -> None:
    """A file that ends anywhere before its end is no JSON."""
    for length in range(0, len(PUBLISHED) - 2, 4001):
        with pytest.raises(CallerError, match="not JSON"):
            read_document(PUBLISHED[:length], "f.json")


def test_a_byte_order_mark_is_passed_over() -> None:
    """Files that went through an editor of another system are read."""
    assert read_document(b"\xef\xbb\xbf" + file(cell()), "f.json").cells


def test_texts_lose_their_control_characters() -> None:
    """What a file says becomes part of reasons on a terminal, so it is one bounded line."""
    document = read(cell(failure_reason="a\x1b[2Jb\n" + "c" * 9999))
    assert document.cells[0].failure.startswith("a [2Jb c") and len(document.cells[0].failure) <= 300


@pytest.mark.parametrize(
    ("text", "tokens"), [("64k", 65536), ("0", 0), ("500", 500), ("x", None), ("", None)]
)
def test_contexts_as_the_tool_writes_them(text: str, tokens: int | None) -> None:
    """k is 1,024."""
    assert context_of(text) == tokens


def test_the_fixture_is_anonymous() -> None:
    """The published file is kept without the names that it had."""
    assert b"DESKTOP" not in PUBLISHED and json.loads(PUBLISHED)["metadata"]["model"] == "model"
