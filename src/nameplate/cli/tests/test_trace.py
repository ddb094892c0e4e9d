"""Recorded traces on the command line, in simulated time: each request as its row says, its prefix found in the cache
as its blocks say, and what cannot be refused before anything is asked of the server."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from nameplate.cli.tests.conftest import Run
from nameplate.cli.tests.test_open_loop import result_of, trial_of
from nameplate.contract.arrivals import ArrivalPlan
from nameplate.contract.contract import Contract
from nameplate.contract.shape import Shape
from nameplate.contract.target import Target
from nameplate.evidence import layout
from nameplate.evidence.reader import TrialReader
from nameplate.measure.result import TrialResult
from nameplate.measure.trace_on_disk import read_header
from nameplate.schedule.stage import Requests, stages_of
from nameplate.studies.single import open_plan
from nameplate.verdict.gate import Gate
from nameplate.verify import verify
from nameplate.verify.tests.making import follow

HEADER: dict[str, Any] = {"nameplate_trace": 1, "time_unit": "ms", "block_tokens": 64}
ROWS: list[dict[str, Any]] = [
    {"time": 100, "input_tokens": 300, "output_tokens": 8, "class": "chat", "prefix": ["sys", "a"]},
    {"time": 1100, "input_tokens": 400, "output_tokens": 9, "class": "chat", "prefix": ["sys", "a"]},
    {"time": 2100, "input_tokens": 256, "output_tokens": 4, "class": "[red]rag\x1b", "prefix": ["sys", "b", "c", "d"]},
    {"time": 3100, "input_tokens": 256, "output_tokens": 4, "class": "[red]rag\x1b", "prefix": ["sys", "b", "c", "d"]},
    {"time": 3600, "input_tokens": 2560, "output_tokens": 4},
    {"time": 5100, "input_tokens": 600, "output_tokens": 5, "prefix": ["a", "sys"]},
]  # fmt: skip
OWN = ("--trace", "t.jsonl", "--trace-format", "jsonl", "--warmup", "2", "--out", "x")


def write(rows: list[dict[str, Any]], header: dict[str, Any] | None = HEADER) -> None:
    lines = ([header] if header is not None else []) + rows
    Path("t.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def replayed(
    run: Run, *more: str, rows: list[dict[str, Any]] = ROWS, code: int = 0
) -> tuple[TrialResult, str]:
    write(rows)
    found, out, err = run("trial", "sim:demo", *OWN, *more)
    assert found == code, (out, err)
    return result_of(Path("x")), " ".join(out.split())


def test_each_request_is_as_its_row_says(run: Run) -> None:
    """Due at its time, with its lengths and class; the trial passes, and its evidence alone says all of it again."""
    result, out = replayed(run)
    reader = TrialReader(trial_of(Path("x")))
    plan = read_header(reader).plan
    requests, stage = Requests(plan), stages_of(plan)[-1]
    rows = [row for row in reader.rows() if row.measured]
    assert {row.scheduled_ns - (stage.schedule.due_ns(row.index - 2) or 0) for row in rows} == {
        rows[0].scheduled_ns
    }
    for row, asked in zip(rows, ROWS, strict=True):
        assert row.class_ == asked.get("class", "trace")
        assert row.output_tokens == row.asked_output_tokens == asked["output_tokens"]
        assert abs((row.prompt_tokens or 0) - asked["input_tokens"]) <= 8
        assert requests.shape(row.index).input_tokens == asked["input_tokens"]
    assert result.verdict.status == "pass" and all(gate.status != "invalid" for gate in result.gates)
    assert "each by its own" in result.gate(Gate.input_length).detail
    report = verify(trial_of(Path("x")))
    assert report.exit_code == 0 and all(check.status != "unverified" for check in report.checks)
    assert "6 of 6 requests repeated over 5.000 s; shared prefixes in blocks of 64 tokens" in out


def test_the_prefix_cache_finds_what_the_blocks_say(run: Run) -> None:
    """Cached are, to a block of the server's, the tokens that an earlier row had: no more, and hardly fewer."""
    result, _ = replayed(run)
    reader = TrialReader(trial_of(Path("x")))
    requests = Requests(read_header(reader).plan)
    cached = {row.index: row.cached_tokens or 0 for row in reader.rows() if row.measured}
    shared = {index: requests.shared_tokens(index) for index in cached}
    assert list(shared.values()) == [0, 128, 64, 256, 0, 0]
    head, block = 24, 16
    for index, tokens in cached.items():
        # A prompt whose every token was there before is never answered from the cache alone.
        most = min(head + shared[index], requests.shape(index).input_tokens - 1)
        assert most - block - 8 <= tokens <= most + 4, (index, tokens, shared[index])
    gate = result.gate(Gate.cached_tokens)
    assert gate.status == "pass" and "448 that the trace shares" in gate.detail
    assert result.gate(Gate.unique_prompts).status == "pass"


def test_more_cached_than_the_trace_shares_is_a_breach(run: Run) -> None:
    """A request that met a warm cache beyond what its row shares says nothing of the trace's load."""
    replayed(run)
    directory = trial_of(Path("x"))
    header = json.loads((directory / layout.HEADER).read_text())
    lines = [json.loads(line) for line in (directory / layout.TRACE).read_text().splitlines()]
    lines[2]["prefix"] = [1, 2]
    text = "".join(json.dumps(line) + "\n" for line in lines).encode()
    (directory / layout.TRACE).write_bytes(text)
    header["plan"]["arrivals"]["trace"]["rows_sha256"] = hashlib.sha256(text).hexdigest()
    (directory / layout.HEADER).write_text(json.dumps(header))
    follow(directory)
    result = result_of(Path("x"))
    assert result.gate(Gate.cached_tokens).status == "invalid"
    assert "1 requests had more cached than they share" in result.gate(Gate.cached_tokens).detail
    report = verify(directory)
    assert report.exit_code == 4
    assert any("not the prompt that the trace" in check.detail for check in report.checks)


def test_a_trace_that_was_changed_is_found(run: Run) -> None:
    """A time of a request that is moved in the trial's own trace is no longer the file that the plan names."""
    replayed(run)
    path = trial_of(Path("x")) / layout.TRACE
    path.write_text(path.read_text().replace('"time":1000000000', '"time":1000000001'))
    report = verify(trial_of(Path("x")))
    assert report.exit_code == 4
    assert any("not the file that the plan names" in check.detail for check in report.checks)
    path.unlink()
    assert verify(trial_of(Path("x"))).exit_code == 4


def test_classes_stand_apart_and_are_harmless(run: Run) -> None:
    """The report has each class's latencies; a name that a terminal would obey is shown as text."""
    result, out = replayed(run)
    assert result.measurement.breakdown is not None and result.measurement.breakdown.of == "class"
    assert [(part.name, part.requests) for part in result.measurement.breakdown.parts] == [
        ("[red]rag\x1b", 2), ("chat", 2), ("trace", 2),
    ]  # fmt: skip
    assert "Classes of the trace" in out and "[red]rag" in out and "\x1b" not in out


def test_a_trace_may_be_faster_shorter_and_of_one_class(run: Run) -> None:
    """Speed, limit, window and class choose what is repeated, and what is not is counted."""
    result, _ = replayed(run, "--trace-speed", "10", "--trace-limit", "3")
    arrivals = result.plan.arrivals
    assert arrivals is not None and arrivals.trace is not None
    assert arrivals.trace.duration_ns == 200_000_000 and arrivals.trace.speed_up == 10
    assert arrivals.trace.left_out == {"beyond the limit of requests": 3}
    code, out, err = run(
        "trial", "sim:demo", *OWN[:-1], "y", "--trace-class", "chat", "--trace-from", "0.5s", "--trace-to", "5s",
        "--json",
    )  # fmt: skip
    assert code == 0, err
    trace = msgspec.json.decode(out)["plan"]["arrivals"]["trace"]
    assert trace["rows"] is None and trace["name"] == "t.jsonl" and len(trace["sha256"]) == 64
    assert trace["requests"] == 1 and sum(trace["left_out"].values()) == 5


def test_what_does_not_fit_the_server_is_refused_before_any_load(run: Run) -> None:
    """Beyond the context, or below the shortest prompt: refused with what to say, or left out and counted."""
    rows = [*ROWS, {"time": 6000, "input_tokens": 2_000_000, "output_tokens": 5}, {"time": 6100, "input_tokens": 3,
            "output_tokens": 5}]  # fmt: skip
    write(rows)
    code, _, err = run("trial", "sim:demo", *OWN)
    assert code == 2 and "--trace-too-short" in err and not Path("x").exists()
    code, _, err = run("trial", "sim:demo", *OWN, "--trace-too-short", "raise")
    assert code == 2 and "--trace-too-long skip" in err and not Path("x").exists()
    result, out = replayed(run, "--trace-too-short", "raise", "--trace-too-long", "skip", rows=rows)
    assert "left out 1 too long for the context; 1 sent longer than recorded" in out
    assert result.plan.requests == 7 and verify(trial_of(Path("x"))).exit_code == 0


def test_published_forms_are_repeated(run: Run) -> None:
    """Mooncake's blocks of 512 and BurstGPT's rows need no more than their form and their unit."""
    Path("m.jsonl").write_text(
        "".join(
            json.dumps(
                {"timestamp": 500 * n, "input_length": 1300, "output_length": 3, "hash_ids": [1, 2, 10 + n]}
            )
            + "\n"
            for n in range(5)
        )
    )
    mooncake = ("trial", "sim:demo", "--trace", "m.jsonl", "--trace-format", "mooncake", "--out", "m")
    code, out, err = run(*mooncake)
    assert code == 2 and "published Mooncake traces are in ms" in " ".join(err.split())
    code, out, err = run(*mooncake, "--trace-time-unit", "ms")
    assert code == 0, err
    rows = [row for row in TrialReader(trial_of(Path("m"))).rows() if row.measured]
    assert [(row.cached_tokens or 0) // 1024 for row in rows] == [0, 1, 1, 1, 1]
    Path("b.csv").write_text(
        "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
        "5,GPT-4,472,3,475,API log\n6,ChatGPT,100,4,104,Conversation log\n7,ChatGPT,99,0,99,API log\n"
    )
    burstgpt = ("--trace", "b.csv", "--trace-format", "burstgpt", "--trace-time-unit", "s")
    code, out, err = run("trial", "sim:demo", *burstgpt, "--out", "b")
    assert code == 0, err
    assert "left out 1 without output (failed when recorded)" in " ".join(out.split())


@pytest.mark.parametrize(
    ("rows", "header", "words"),
    [
        (ROWS[4:5], None, "s, ms, us or ns"),
        (ROWS[4:5], {"nameplate_trace": 1}, "s, ms, us or ns"),
        (ROWS, {"nameplate_trace": 1, "time_unit": "ms"}, "not how many tokens"),
        ([], HEADER, "holds no request"),
        ([{**ROWS[4], "time": 1e300}], HEADER, "not a time within"),
        ([{**ROWS[4], "time": "x"}], HEADER, "not a number"),
        ([{**ROWS[4], "input_tokens": -1}], HEADER, "not a number of tokens"),
        ([{**ROWS[4], "input_tokens": 1 << 40}], HEADER, "not a number of tokens"),
        ([{"time": 1}], HEADER, "missing"),
        ([{**ROWS[4], "prefix": [-1]}], HEADER, "below 2**64"),
    ],
)
def test_what_is_no_trace_is_refused(
    run: Run, rows: list[dict[str, Any]], header: dict[str, Any] | None, words: str
) -> None:
    """Units that are missing, times and lengths that cannot be: exit code 2, and nothing asked of the server."""
    write(rows, header)
    code, _, err = run("trial", "sim:demo", *OWN)
    assert code == 2 and words in err and "probing" not in err and not Path("x").exists()


def test_lines_that_are_no_json_are_refused_by_number(run: Run) -> None:
    """The file, the line, and what is wrong with it."""
    write(ROWS)
    with Path("t.jsonl").open("a") as file:
        file.write("{nonsense\n")
    code, _, err = run("trial", "sim:demo", *OWN)
    assert code == 2 and "t.jsonl, line 8: not JSON" in err


def test_times_before_zero_are_times(run: Run) -> None:
    """A trace may begin at any number: its first request is due at once."""
    result, _ = replayed(run, rows=[{**ROWS[4], "time": -500}, {**ROWS[4], "time": -250, "input_tokens": 99}])
    trace = result.plan.arrivals.trace if result.plan.arrivals is not None else None
    assert trace is not None and trace.duration_ns == 250_000_000


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--trace", "t.jsonl"), "What form t.jsonl has is not told"),
        (("--trace", "none.jsonl", "--trace-format", "jsonl"), "does not exist"),
        ((*OWN, "--rate", "5"), "Either --concurrency or --rate"),
        ((*OWN, "--shape", "64/8"), "--shape has no place beside a trace"),
        ((*OWN, "--arrivals", "constant"), "--arrivals has no place"),
        ((*OWN, "--requests", "5"), "--requests has no place"),
        ((*OWN, "--cache", "warm:64"), "--cache has no place"),
        ((*OWN, "--start", "handover"), "closed loop"),
        ((*OWN, "--trace-speed", "0"), "cannot be repeated 0 times faster"),
        ((*OWN, "--trace-speed", "nan"), "cannot be repeated"),
        ((*OWN, "--trace-from", "5s", "--trace-to", "1s"), "before it begins"),
        ((*OWN, "--trace-class", "none"), "Nothing is left of the trace"),
        ((*OWN, "--trace-time-unit", "s"), "the file says ms, and s was asked for"),
        (
            ("--shape", "64/8", "--rate", "5", "--trace-limit", "5"),
            "--trace-limit belongs to a recorded trace",
        ),
        (("--shape", "64/8", "-c", "5", "--trace-class", "a"), "--trace-class belongs to a recorded trace"),
        (("-c", "5"), "--shape is missing"),
        (("--shape", "64/8", "--ramp", "1:5:1m", "--steps", "1x5s"), "Either --concurrency or --rate"),
        (("--shape", "64/8", "--ramp", "1:5"), "FROM:TO:DURATION"),
        (("--shape", "64/8", "--ramp", "1:1e9:1m"), "not a rate that can be offered"),
        (("--shape", "64/8", "--steps", "1e5x1h"), "requests would arrive, and a trial has at most"),
        (("--shape", "64/8", "--steps", "0.0001x1s"), "By chance nothing arrives"),
        (("--shape", "64/8", "--rate", "5", "--arrivals", "ramp:1:5:1m"), "--ramp says how the rate runs"),
    ],
)
def test_contradictions_are_refused_in_words(run: Run, arguments: tuple[str, ...], words: str) -> None:
    """Exit code 2, what is wrong, and nothing asked of the server."""
    write(ROWS)
    code, out, err = run("trial", "sim:demo", *arguments)
    assert code == 2 and words in err + out, err
    assert "probing" not in err and not Path("x").exists()


@pytest.mark.parametrize(
    ("arguments", "title", "parts"),
    [
        (("--ramp", "1:40:5s", "--arrivals", "constant"), "Tenths of the ramp", 10),
        (("--steps", "5x2s,40x2s,0x1s,5x2s"), "Steps of the rate", 4),
    ],
)
def test_ramps_and_steps_pass_and_verify(
    run: Run, arguments: tuple[str, ...], title: str, parts: int
) -> None:
    """They end by themselves, are delivered as planned, are told part by part, and have no queue to judge."""
    code, out, err = run("trial", "sim:demo", "--shape", "64/8", *arguments, "--out", "x")
    assert code == 0, (out, err)
    out = " ".join(out.split())
    assert title in out and "count held, gaps held" in out
    assert "not judged: this load has no one rate" in out and "opening" not in out
    result = result_of(Path("x"))
    assert result.measurement.queueing is None and result.measurement.breakdown is not None
    assert len(result.measurement.breakdown.parts) == parts
    assert sum(part.requests for part in result.measurement.breakdown.parts) == result.plan.requests
    assert verify(trial_of(Path("x"))).exit_code == 0


def test_requests_bound_a_ramp() -> None:
    """What --requests asks for is the ramp's beginning, never more than it has."""
    ramp = ArrivalPlan.parse_ramp("1:40:5s", "poisson", 42, 4096)
    contract = Contract(Target("http", "sim", 80), (Shape(64, 8),), (), "n")
    whole = open_plan(contract, Shape(64, 8), ramp)
    assert whole.requests > 64 and whole.name == "64-8.ramp"
    assert open_plan(contract, Shape(64, 8), ramp, 9).requests == 9
    assert open_plan(contract, Shape(64, 8), ramp, 100_000).requests == whole.requests
