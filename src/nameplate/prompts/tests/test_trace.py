"""Recorded traces are read as their publishers write them, refused by line and field, and tell what they left out."""

from __future__ import annotations

import json
import tracemalloc
from io import BytesIO
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nameplate.contract.errors import CallerError
from nameplate.contract.trace import TraceRow
from nameplate.prompts import trace as trace_module
from nameplate.prompts import trace_lines
from nameplate.prompts.trace import RecordedTrace
from nameplate.prompts.trace_lines import RawRequest, TraceLines
from nameplate.prompts.trace_options import TraceCounts, TraceError, TraceFormat, TraceOptions

S = 10**9
MS = 10**6

# The first two are the sample in the README of kvcache-ai/Mooncake's FAST25-release; the other lines are of our own.
MOONCAKE = """\
{"timestamp": 27482, "input_length": 6955, "output_length": 52, "hash_ids": [46, 47, 48, 49, 50, 51, 52, 53, 54, 55, \
56, 57, 2353, 2354]}
{"timestamp": 30535, "input_length": 6472, "output_length": 26, "hash_ids": [46, 47, 48, 49, 50, 51, 52, 53, 54, 55, \
56, 57, 2366]}
{"timestamp": 30535, "input_length": 512, "output_length": 1, "hash_ids": [46]}
{"timestamp": 31000.5, "input_length": 600, "output_length": 9, "hash_ids": [47, 46]}
{"timestamp": 31001, "input_length": 100, "output_length": 9}
"""

BURSTGPT = """\
Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type
5,ChatGPT,472,18,490,Conversation log
45,ChatGPT,1087,230,1317,Conversation log
118,GPT-4,417,276,693,API log
120,GPT-4,300,0,300,API log
"""

BURSTGPT_SECOND = """\
Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type
19440110.0,1722ac82-0a46-4bf0-aa08-89794e7a2b3f,43,GPT-4,906,446,1352,Conversation log
19440161.0,d5983bf9-4b48-497b-892b-a58995247443,2,ChatGPT,36,29,66,"Conversation log"
"""

OWN = """\
{"nameplate_trace": 1, "time_unit": "ms", "block_tokens": 16}
{"time": 1250.5, "input_tokens": 40, "output_tokens": 128, "class": "chat", "prefix": ["system", 17]}
{"time": 1251, "input_tokens": 812, "output_tokens": 7, "ignored": true}
{"time": 1252, "input_tokens": 20, "output_tokens": 7, "class": "chat", "prefix": ["system", 17]}
"""


def read(folder: Path, text: str | bytes, form: TraceFormat, **options: object) -> RecordedTrace:
    """Write a file and read it back, a published form in its published unit where nothing else is told."""
    options = ({"mooncake": {"time_unit": "ms"}, "burstgpt": {"time_unit": "s"}}.get(form) or {}) | options
    path = folder / "trace"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return RecordedTrace.open(path, TraceOptions(format=form, **options))  # type: ignore[arg-type]


def test_mooncake_is_in_milliseconds_and_blocks_of_512(tmp_path: Path) -> None:
    """Told that times are ms, as published; the last block of a prompt is what is left of it."""
    trace = read(tmp_path, MOONCAKE, "mooncake")
    rows = list(trace)
    assert [row.due_ns for row in rows] == [0, 3053 * MS, 3053 * MS, 3518 * MS + MS // 2, 3519 * MS]
    assert (rows[0].input_tokens, rows[0].output_tokens, len(rows[0].blocks)) == (6955, 52, 14)
    assert trace.block_tokens == 512 and trace.duration_ns == 3519 * MS


def test_shared_prefixes_are_counted_from_the_front(tmp_path: Path) -> None:
    """A request shares its leading blocks with earlier ones, only from the first on, and never beyond itself."""
    trace = read(tmp_path, MOONCAKE, "mooncake")
    assert list(trace.rows().shared_tokens) == [0, 12 * 512, 512, 0, 0]
    own = read(tmp_path, OWN, "jsonl")
    assert list(own.rows().shared_tokens) == [0, 0, 20]


def test_burstgpt_is_in_seconds(tmp_path: Path) -> None:
    """Both releases are read by the names of their columns; failed requests are left out and counted."""
    trace = read(tmp_path, BURSTGPT, "burstgpt")
    assert list(trace) == [
        TraceRow(0, 472, 18, "ChatGPT, Conversation log"),
        TraceRow(40 * S, 1087, 230, "ChatGPT, Conversation log"),
        TraceRow(113 * S, 417, 276, "GPT-4, API log"),
    ]
    assert trace.counts.no_output == 1 and trace.counts.read == 4 and trace.counts.kept == 3
    assert trace.counts.said() == "3 of 4 requests kept; left out: 1 without output (failed when recorded)."
    assert trace.block_tokens is None and list(trace.rows().shared_tokens) == [0, 0, 0]
    second = read(tmp_path, BURSTGPT_SECOND, "burstgpt")
    assert [row.due_ns for row in second] == [0, 51 * S]
    assert second.counts.odd_totals == 1 and second.counts.first_ns == 19440110 * S


def test_our_own_form_says_its_units_or_is_told(tmp_path: Path) -> None:
    """The header's unit and block size hold; without a header the caller's do, and without either it is refused."""
    trace = read(tmp_path, OWN, "jsonl")
    assert [row.due_ns for row in trace] == [0, MS // 2, 3 * MS // 2] and trace.block_tokens == 16
    assert trace.class_names == ("chat", "") and trace.row(0).class_name == "chat"
    assert trace.row(0).blocks == trace.row(2).blocks
    bare = OWN.split("\n", 1)[1]
    with pytest.raises(CallerError, match="s, ms, us or ns"):
        read(tmp_path, bare, "jsonl", block_tokens=16)
    with pytest.raises(CallerError, match="how many tokens"):
        read(tmp_path, bare, "jsonl", time_unit="ms")
    assert list(read(tmp_path, bare, "jsonl", time_unit="ms", block_tokens=16)) == list(trace)
    assert read(tmp_path, bare, "jsonl", time_unit="s", block_tokens=16).duration_ns == 3 * S // 2
    with pytest.raises(TraceError, match="asked for"):
        read(tmp_path, OWN, "jsonl", time_unit="s")
    with pytest.raises(TraceError, match="asked for"):
        read(tmp_path, OWN, "jsonl", block_tokens=32)


@pytest.mark.parametrize(
    ("form", "text", "hint"),
    [
        ("mooncake", MOONCAKE, "published Mooncake traces are in ms"),
        ("burstgpt", BURSTGPT, "published BurstGPT traces are in s"),
    ],
)
def test_the_unit_of_a_form_is_not_guessed(tmp_path: Path, form: TraceFormat, text: str, hint: str) -> None:
    """A form that does not tell its unit is refused without one; what is published is a hint and no more."""
    with pytest.raises(CallerError, match="does not say what its times are in") as caught:
        read(tmp_path, text, form, time_unit=None)
    assert "--trace-time-unit" in caught.value.hint and hint in caught.value.hint


def test_a_caller_overrides_what_publishers_say(tmp_path: Path) -> None:
    """A file that only borrows a published form is read in the unit and blocks that the caller states."""
    line = '{"timestamp": 1.5, "input_length": 33, "output_length": 1, "hash_ids": [1, 2, 3]}\n'
    trace = read(tmp_path, line, "mooncake", time_unit="s", block_tokens=16, from_ns=0)
    assert trace.row(0).due_ns == 3 * S // 2 and trace.block_tokens == 16


def test_a_window_is_in_the_files_own_time(tmp_path: Path) -> None:
    """What is outside the window is counted, the end is excluded, and time begins with the window."""
    trace = read(tmp_path, BURSTGPT, "burstgpt", from_ns=40 * S, to_ns=118 * S)
    assert [row.due_ns for row in trace] == [5 * S]
    counts = trace.counts
    assert (counts.read, counts.kept, counts.before_window, counts.after_window) == (4, 1, 1, 2)
    assert (counts.first_ns, counts.last_ns) == (5 * S, 120 * S)
    with pytest.raises(CallerError, match=r"5\.000 s to 120\.000 s"):
        read(tmp_path, BURSTGPT, "burstgpt", from_ns=200 * S)


def test_speeding_up_divides_times_and_nothing_else(tmp_path: Path) -> None:
    """Ten times faster, gaps are a tenth, exactly and rounded down; lengths stay; it slows down as well."""
    fast = read(tmp_path, BURSTGPT, "burstgpt", speed_up=10.0)
    assert [row.due_ns for row in fast] == [0, 4 * S, 113 * S // 10]
    assert [row.input_tokens for row in fast] == [472, 1087, 417]
    assert [row.due_ns for row in read(tmp_path, BURSTGPT, "burstgpt", speed_up=0.1)] == [
        0,
        400 * S,
        1130 * S,
    ]
    assert read(tmp_path, BURSTGPT, "burstgpt", speed_up=3.0).row(1).due_ns == 13_333_333_333


def test_classes_and_long_requests_can_be_left_out(tmp_path: Path) -> None:
    """Only the named classes are kept, and nothing longer than the context; both are counted."""
    trace = read(tmp_path, BURSTGPT, "burstgpt", classes=("ChatGPT, Conversation log",), longest_tokens=500)
    assert [row.input_tokens for row in trace] == [472]
    assert (trace.counts.other_class, trace.counts.too_long, trace.counts.no_output) == (1, 1, 1)


def test_requests_out_of_order_are_put_in_order(tmp_path: Path) -> None:
    """Rows come by time, equal ones in the order of the file with their own blocks, and late ones are told."""
    lines = [(5, 1), (3, 2), (9, 3), (3, 4), (9, 5)]
    text = "".join(
        json.dumps({"timestamp": t, "input_length": n, "output_length": 1, "hash_ids": [n]}) + "\n"
        for t, n in lines
    )
    trace = read(tmp_path, text, "mooncake")
    assert [(row.due_ns // MS, row.input_tokens, row.blocks) for row in trace] == [
        (0, 2, (2,)),
        (0, 4, (4,)),
        (2, 1, (1,)),
        (6, 3, (3,)),
        (6, 5, (5,)),
    ]
    assert trace.counts.reordered == 2
    assert [row.due_ns for row in trace.rows()] == [row.due_ns for row in trace]


def test_other_systems_files_are_read(tmp_path: Path) -> None:
    """A byte order mark, CRLF, empty lines and quotes do not disturb; line numbers are the file's."""
    text = b"\xef\xbb\xbf" + BURSTGPT.replace("\n", "\r\n\r\n").encode()
    assert len(read(tmp_path, text, "burstgpt")) == 3
    with pytest.raises(TraceError) as caught:
        read(tmp_path, text.replace(b"45,", b"x,"), "burstgpt")
    assert (caught.value.line, caught.value.field) == (5, "Timestamp")


ROW = '{"timestamp": 1, "input_length": 600, "output_length": 2, "hash_ids": [1, 2]}'


@pytest.mark.parametrize(
    ("bad", "field", "what"),
    [
        ('{"timestamp": 1', "", "not JSON"),
        ("[" * 100_000, "", "not JSON"),
        (b'{"timestamp": "\xff"}', "", "not JSON"),
        ("[1]", "", "not a JSON object"),
        (ROW.replace('"timestamp": 1', '"timestamp": "1"'), "timestamp", "not a number"),
        (ROW.replace('"timestamp": 1', '"timestamp": true'), "timestamp", "not a number"),
        (ROW.replace('"timestamp": 1', '"timestamp": 1e300'), "timestamp", "146 years"),
        (ROW.replace('"timestamp": 1', '"timestamp": ' + "9" * 400), "timestamp", "146 years"),
        (ROW.replace('"timestamp": 1', '"timestamp": ' + "9" * 5000), "", "not JSON"),
        (ROW.replace('"timestamp"', '"time"'), "timestamp", "missing"),
        (ROW.replace("600", "-1"), "input_length", "not a number of tokens"),
        (ROW.replace("600", "1e12"), "input_length", "not a number of tokens"),
        (ROW.replace("600", "2.5"), "input_length", "not a number of tokens"),
        (ROW.replace("600", "null"), "input_length", "missing"),
        (ROW.replace('"output_length": 2, ', ""), "output_length", "missing"),
        (ROW.replace("[1, 2]", "[1, 2, 3]"), "hash_ids", "more than an input of 600"),
        (ROW.replace("600", "6000"), "hash_ids", "do not cover"),
        (ROW.replace("[1, 2]", '"12"'), "hash_ids", "not a list"),
        (ROW.replace("[1, 2]", "[1, -2]"), "hash_ids", "id 2"),
        (ROW.replace("[1, 2]", '[1, "a"]'), "hash_ids", "id 2"),
        (ROW.replace("[1, 2]", "[1, 18446744073709551616]"), "hash_ids", "id 2"),
        (ROW.replace("[1, 2]", "[1, [[2]]]"), "hash_ids", "id 2"),
        ('{"a": "' + "x" * (1 << 20) + '"}', "", "longer than 1 MiB"),
    ],
)
def test_bad_lines_are_named(tmp_path: Path, bad: str | bytes, field: str, what: str) -> None:
    """Whatever is wrong with a line, the error names the file, the line and the field, and nothing else escapes."""
    data = ROW.encode() + b"\n" + (bad if isinstance(bad, bytes) else bad.encode()) + b"\n"
    with pytest.raises(TraceError, match=what) as caught:
        read(tmp_path, data, "mooncake")
    assert caught.value.line == 2 and str(tmp_path / "trace") in caught.value.what
    assert caught.value.field == field


@pytest.mark.parametrize(
    ("old", "new", "field", "what"),
    [
        ("472", "many", "Request tokens", "'many'"),
        ("472", "-472", "Request tokens", "not a number"),
        ("472", "9" * 5000, "Request tokens", "not a number"),
        ("472", "\u0664", "Request tokens", "not a number"),
        ("18,", ",", "Response tokens", "not a number"),
        ("5,ChatGPT,472", "nan,ChatGPT,472", "Timestamp", "146 years"),
        ("5,ChatGPT,472", "1e30,ChatGPT,472", "Timestamp", "146 years"),
        ("5,ChatGPT,472,18,490,Conversation log", "5,ChatGPT", "", "header names more"),
        ("5,ChatGPT", '5,"ChatGPT', "", "not a line of CSV"),
        ("Request tokens", "request_tokens", "Request tokens", "no column"),
        ("Model", "Timestamp", "Timestamp", "two columns"),
        ("Timestamp,", "", "Timestamp", "no column"),
    ],
)
def test_bad_cells_are_named(tmp_path: Path, old: str, new: str, field: str, what: str) -> None:
    """The same for CSV, header included."""
    with pytest.raises(TraceError, match=what) as caught:
        read(tmp_path, BURSTGPT.replace(old, new, 1), "burstgpt")
    assert caught.value.field == field and caught.value.line in (1, 2)


@pytest.mark.parametrize(
    ("old", "new", "field"),
    [
        ('"nameplate_trace": 1', '"nameplate_trace": 2', "nameplate_trace"),
        ('"ms"', '"weeks"', "time_unit"),
        ('"ms"', "[]", "time_unit"),
        (": 16}", ": 0}", "block_tokens"),
        (": 16}", ": true}", "block_tokens"),
        ('"class": "chat"', '"class": 3', "class"),
        ('["system", 17]', "[" + '"x", ' * 3 + "1]", "prefix"),
        ('"system"', '"' + "s" * 300 + '"', "prefix"),
        ("1250.5", '"soon"', "time"),
    ],
)
def test_bad_fields_of_our_own_form_are_named(tmp_path: Path, old: str, new: str, field: str) -> None:
    """The header and the lines of our own form are checked alike."""
    with pytest.raises(TraceError) as caught:
        read(tmp_path, OWN.replace(old, new, 1), "jsonl")
    assert caught.value.field == field


def test_empty_and_missing_files_are_refused(tmp_path: Path) -> None:
    """A file without a request, or that cannot be read, is the caller's mistake, in words."""
    forms: tuple[TraceFormat, ...] = ("jsonl", "mooncake", "burstgpt")
    for form in forms:
        with pytest.raises(CallerError, match="holds no request"):
            read(tmp_path, "\n\n", form)
        for path in (tmp_path / "nowhere", tmp_path):
            with pytest.raises(CallerError, match="cannot be read"):
                RecordedTrace.open(path, TraceOptions(format=form))
    with pytest.raises(CallerError, match="Nothing is left"):
        read(tmp_path, BURSTGPT, "burstgpt", classes=("none",))


@pytest.mark.parametrize(
    "bad",
    [
        {"speed_up": 0.0},
        {"speed_up": float("nan")},
        {"speed_up": 1e9},
        {"from_ns": 5, "to_ns": 5},
        {"block_tokens": 0},
    ],
)
def test_impossible_wishes_are_refused(bad: dict[str, object]) -> None:
    """A speed, window or block size that means nothing is refused before a file is opened."""
    with pytest.raises(CallerError):
        TraceOptions(format="mooncake", **bad)  # type: ignore[arg-type]


def test_what_is_kept_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """More requests, blocks or classes than are stated end the reading by name, with the line where it was."""
    monkeypatch.setattr(trace_module, "MAXIMUM_BLOCKS", 20)
    with pytest.raises(TraceError, match="blocks of prompts") as caught:
        read(tmp_path, MOONCAKE, "mooncake")
    assert caught.value.line == 2
    monkeypatch.setattr(trace_module, "MAXIMUM_CLASSES", 1)
    with pytest.raises(TraceError, match="classes"):
        read(tmp_path, BURSTGPT, "burstgpt")
    monkeypatch.setattr(trace_module, "MAXIMUM_REQUESTS", 2)
    with pytest.raises(TraceError, match="requests"):
        read(tmp_path, BURSTGPT, "burstgpt", classes=("ChatGPT, Conversation log", "GPT-4, API log"))


def test_a_line_without_end_is_not_read_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that is one endless line costs no more memory than the longest line that is allowed."""
    monkeypatch.setattr(trace_lines, "MAXIMUM_LINE_BYTES", 1 << 16)
    (tmp_path / "trace").write_bytes(b"x" * (8 << 20))
    tracemalloc.start()
    with pytest.raises(TraceError, match="longer"):
        RecordedTrace.open(tmp_path / "trace", TraceOptions(format="burstgpt"))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1 << 20


def test_memory_is_what_is_kept(tmp_path: Path) -> None:
    """Requests cost tens of bytes each, and those outside the window nothing."""
    lines = [f"{i},ChatGPT,{i % 900 + 1},{i % 90 + 1},{i % 900 + i % 90 + 2},API log\n" for i in range(3_000)]
    (tmp_path / "trace").write_text(BURSTGPT.split("\n", 1)[0] + "\n" + "".join(lines))
    sizes = []
    for window in (None, 10 * S):
        options = TraceOptions(format="burstgpt", time_unit="s", to_ns=window)
        tracemalloc.start()
        trace = RecordedTrace.open(tmp_path / "trace", options)
        sizes.append(tracemalloc.get_traced_memory()[0])
        tracemalloc.stop()
        assert trace.counts.read == 3_000 and trace.counts.odd_totals == 0
    assert sizes[0] < 50 * 3_000 + 60_000 and sizes[1] < 60_000


requests = st.lists(
    st.builds(
        RawRequest,
        line=st.just(1),
        time_ns=st.integers(-100, 100),
        input_tokens=st.integers(0, 60),
        output_tokens=st.integers(0, 5),
        class_name=st.sampled_from(["", "a", "b"]),
        blocks=st.lists(st.integers(0, 3), max_size=4).map(tuple),
        odd=st.booleans(),
    ),
    max_size=40,
)
bounds = st.none() | st.integers(-50, 50)


@settings(deadline=None)
@given(
    found=requests,
    start=bounds,
    lasts=st.none() | st.integers(1, 80),
    classes=st.sampled_from([(), ("a",), ("", "b")]),
    longest=st.none() | st.integers(1, 60),
    speed=st.sampled_from([1.0, 0.5, 3.0]),
)
def test_every_request_is_kept_or_counted(
    found: list[RawRequest],
    start: int | None,
    lasts: int | None,
    classes: tuple[str, ...],
    longest: int | None,
    speed: float,
) -> None:
    """Read = kept + all that was left out; due times do not fall; each kept one is a request of the file."""
    end = None if lasts is None else (start or 0) + lasts
    options = TraceOptions(
        format="jsonl", speed_up=speed, from_ns=start, to_ns=end, classes=classes, longest_tokens=longest
    )
    trace = RecordedTrace(found, options, Path("t"))
    told: TraceCounts = trace.counts
    left = (
        told.before_window
        + told.after_window
        + told.no_input
        + told.no_output
        + told.other_class
        + told.too_long
    )
    assert told.read == len(found) == told.kept + left and told.kept == len(trace) == len(list(trace))
    assert all(before.due_ns <= after.due_ns for before, after in pairwise(trace))
    assert all(row.due_ns >= 0 and row.output_tokens and row.input_tokens for row in trace)
    allowed = {(r.input_tokens, r.output_tokens, r.class_name, r.blocks) for r in found}
    assert {(r.input_tokens, r.output_tokens, r.class_name, r.blocks) for r in trace} <= allowed
    assert list(trace.rows()) == list(trace) and list(trace.rows(3)) == list(trace)[:3]


@settings(deadline=None)
@given(found=requests)
def test_shares_are_those_of_a_plain_comparison(found: list[RawRequest]) -> None:
    """The shared tokens are those of the longest common beginning with any earlier request, compared one by one."""
    trace = RecordedTrace(found, TraceOptions(format="jsonl"), Path("t"))
    trace.block_tokens = 16
    rows = list(trace)
    for number, shared in enumerate(trace.rows().shared_tokens):
        blocks = rows[number].blocks
        longest = max(
            (k for k in range(len(blocks) + 1) for row in rows[:number] if row.blocks[:k] == blocks[:k]),
            default=0,
        )
        assert shared == min(16 * longest, rows[number].input_tokens)


@settings(deadline=None)
@given(data=st.binary(max_size=200), form=st.sampled_from(["jsonl", "mooncake", "burstgpt"]))
def test_garbage_is_refused(data: bytes, form: TraceFormat) -> None:
    """No bytes end in anything but a trace or the caller's mistake, which names the file."""
    options = TraceOptions(format=form, time_unit="s")
    path = Path("a file")
    for text in (data, b'{"time": ' + data + b"}", BURSTGPT.encode()[:90] + data):
        told = "a file"
        try:
            RecordedTrace(TraceLines(BytesIO(text), path, options), options, path)
        except CallerError as error:
            told = str(error)
        assert "a file" in told
