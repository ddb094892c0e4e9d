"""Damaged and hostile files: whatever is in them, words and never a traceback, and nothing that moves a terminal."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nameplate.contract.errors import NameplateError
from nameplate.exchange.peers.run import decode, encode
from nameplate.exchange.peers.tests.making import (
    ALL,
    RAW,
    RECORDS,
    SGLANG,
    document,
    golden,
    imported,
    lines,
    put,
    shown,
)

HOSTILE = "\x1b[2J\x1b]0;owned\x07<script>alert(1)</script>\u202e\r\n[bold]\u0000\ud7ff"
# Any JSON value where another belongs, numbers that nothing measures among them.
OTHER = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(1 << 70), 1 << 70),
    st.floats(allow_nan=True, allow_infinity=True),
    st.sampled_from(["", "text", HOSTILE, "Infinity", "1e5", "9" * 400]),
    st.sampled_from([[], {}, [[]], [None], {"a": {"b": []}}, [1.5, "x"], {"value": [[]], "unit": 3}]),
)
QUICK = settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def _try(path: Path, *slos: str) -> None:
    """Import and show it; an error that says what is wrong is an answer, too."""
    try:
        found = imported(path, *slos)
    except NameplateError as error:
        if not error.what:
            raise
        return
    assert decode(encode(found)).runs
    text = shown(found)
    assert all(letter == "\n" or unicodedata.category(letter) not in ("Cc", "Cf") for letter in text)


@pytest.mark.parametrize("name", ALL)
@QUICK
@given(data=st.data())
def test_cut_at_any_byte(name: str, tmp_path: Path, data: st.DataObject) -> None:
    """A file that ends anywhere is read as far as it goes, or refused in words."""
    whole = golden(name)
    _try(put(tmp_path, whole[: data.draw(st.integers(0, len(whole)))]))


def _places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, held in inner:
        yield (*path, key)
        yield from _places(held, (*path, key))


@pytest.mark.parametrize("name", ALL)
@QUICK
@given(data=st.data())
def test_any_value_of_another_type(name: str, tmp_path: Path, data: st.DataObject) -> None:
    """One value, anywhere in the file, replaced by any other: a reading, or words."""
    value: Any = lines(name) if name in (RECORDS, RAW, SGLANG) else document(name)
    place = data.draw(st.sampled_from(list(_places(value))))
    at = value
    for step in place[:-1]:
        at = at[step]
    at[place[-1]] = data.draw(OTHER)
    path = put(tmp_path, list(value) if isinstance(value, list) else value)
    _try(path, *(["ttft p95 < 1s", "error_rate < 50%"] if name in (RECORDS, RAW) else []))


@pytest.mark.parametrize("name", [RECORDS, RAW])
@QUICK
@given(data=st.data())
def test_any_byte_of_a_line_changed(name: str, tmp_path: Path, data: st.DataObject) -> None:
    """One byte changed: at most its own line is lost."""
    whole = bytearray(golden(name))
    whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    _try(put(tmp_path, bytes(whole)))


@pytest.mark.parametrize("name", ALL)
def test_hostile_texts(name: str, tmp_path: Path) -> None:
    """Every text of a file is hostile at once: nothing of it reaches the terminal as it is."""

    def poison(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: poison(held) for key, held in value.items()}
        if isinstance(value, list):
            return [poison(held) for held in value]
        return HOSTILE if isinstance(value, str) else value

    value: Any = lines(name) if name in (RECORDS, RAW, SGLANG) else document(name)
    for entry in value if isinstance(value, list) else [value]:
        for key in (
            "model_id",
            "backend",
            "model",
            "tag",
            "start_time",
            "aiperf_version",
            "input_config",
            "date",
        ):
            if key in entry:
                entry[key] = poison(entry[key])
        if isinstance(entry.get("payload"), dict):
            entry["payload"]["model"] = HOSTILE
        if entry.get("error"):
            entry["error"]["message"] = entry["error"]["type"] = HOSTILE
        for benchmark in entry.get("benchmarks", ()):
            benchmark["config"]["strategy"]["type_"] = HOSTILE
            benchmark["warnings"] = [HOSTILE, {"message": HOSTILE}]
    path = put(tmp_path, value, "name\x1b[31m.json")
    found = imported(path)
    text = shown(found)
    assert "\x1b" not in text and "\x07" not in text and "\u202e" not in text and "\x00" not in text
    assert b"\x1b" not in encode(found)
    json.loads(encode(found))


def test_keys_are_not_kept(tmp_path: Path) -> None:
    """What looks like a key in a server's address or a command is not in the document."""
    told = document("aiperf_summary.json")
    told["input_config"]["endpoint"]["url"] = "http://user:hunter2@host/v1?api_key=sk-abcdefgh12345678"
    told["run_info"]["run_label"] = "Bearer abcdefghijkl"
    said = encode(imported(put(tmp_path, told)))
    assert b"hunter2" not in said and b"sk-abcdef" not in said


@pytest.mark.parametrize(("field", "value"), [("request_start_ns", (1 << 63) - 1), ("request_end_ns", -5)])
def test_times_that_are_none(field: str, value: int, tmp_path: Path) -> None:
    """A record whose times no clock gives cannot be read: its line is named, and the others count."""
    told = lines(RECORDS)
    told[1]["metadata"][field] = value
    (run,) = imported(put(tmp_path, told)).runs
    (check,) = [check for check in run.checks if check.name == "lines"]
    assert check.status == "contradicted" and "line 2: its times are no times" in check.detail


def test_gaps_beyond_a_clock(tmp_path: Path) -> None:
    """Gaps that add up to more than 64 bits are refused in words."""
    told = lines(RECORDS)
    told[1]["metrics"]["inter_chunk_latency"] = {"value": [4e12] * 3, "unit": "ms"}
    with pytest.raises(NameplateError, match="more than any clock holds"):
        imported(put(tmp_path, told))
