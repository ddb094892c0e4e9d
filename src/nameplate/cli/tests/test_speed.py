"""`nameplate speed` on the built-in engine in simulated time: every status, every phase, every fault."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from nameplate.cli.tests.conftest import Run
from nameplate.cli.tests.speeds import FIRST, Found, read_found
from nameplate.contract.identity import Identity
from nameplate.contract.matrix import DEFAULT_CONCURRENCIES, KI, planned_cells
from nameplate.engines.adapter import Adapter
from nameplate.sim.app import App
from nameplate.sim.http import HttpRequest, response
from nameplate.trial.ground import VirtualGround
from nameplate.verdict.cell import CellStatus

Speed = Callable[..., Found]
DECODE = ("--no-prefill",)


# -- the statuses -----------------------------------------------------------------------------------------------------


def test_the_default_plan(run: Run) -> None:
    """Contexts that fit, the longest and the limit; concurrency by doubling: a row each, in order, with its status."""
    # The pool of this server ends the rows early: the whole matrix of sim:matrix takes longer than a test should.
    code, _out, err = run("speed", "sim:matrix-small-kv", "--window", "1s", "--stable", "1s", "--out", "x")
    found = read_found(Path("x"), code, err, verified=False)
    matrix = found.result.contract.speed if found.result.contract else None
    assert matrix is not None and matrix.profile == "custom"
    assert matrix.decode_contexts == (8 * KI, 16 * KI, 27 * KI)  # 32,768 - 4,096 - 1,024
    assert matrix.prefill_contexts == (8 * KI, 16 * KI, 32 * KI - 16)
    assert matrix.concurrencies == DEFAULT_CONCURRENCIES
    assert [(row.kind, row.context_tokens, row.concurrency) for row in found.result.rows] == [
        (cell.kind, cell.context_tokens, cell.concurrency) for cell in planned_cells(matrix)
    ]
    names = list(found.rows)
    assert len(names) == 3 + 24
    assert names[:6] == [
        "prefill 8K x 1", "prefill 16K x 1", "prefill 32K x 1", "decode 8K x 1", "decode 16K x 1", "decode 27K x 1",
    ]  # fmt: skip
    assert names[6:13] == [f"decode 8K x {c}" for c in DEFAULT_CONCURRENCIES[1:]]
    for row in found.result.rows:
        fits = row.kind == "prefill" or row.context_tokens * row.concurrency <= 204_800
        assert row.status.value == ("valid" if fits else "over_capacity"), row
    assert found.code == 0


def test_over_capacity_shows_its_arithmetic(speed: Speed) -> None:
    """What exceeds the KV pool is not run; what fits it is."""
    found = speed("sim:matrix-small-kv", *DECODE, "--contexts", "8k", "-c", "2,32", verified=False)
    assert found.statuses == ["valid", "over_capacity"]
    row = found.rows["decode 8K x 32"]
    assert "32 x 8,192 unique = 262,144 prompt tokens" in row.reason and not row.trials


def test_over_limit_of_the_context(speed: Speed) -> None:
    """A context beyond the server's is not run, by number or in a list; the words name what fits."""
    found = speed("sim:matrix", "--contexts", "40k,limit,longest", "-c", "1", verified=False)
    rows = found.rows
    assert rows["decode 40K x 1"].status is rows["prefill 40K x 1"].status is CellStatus.over_limit
    assert "context holds 32,768" in rows["decode 40K x 1"].reason
    assert rows["prefill 32K x 1"].context_tokens == 32_768 - 16
    assert {rows["decode 32K x 1"].status, rows["decode 27K x 1"].status} == {CellStatus.valid}


def test_over_limit_of_the_running_requests(speed: Speed) -> None:
    """More streams than the server runs at once are not run."""
    found = speed("sim:matrix-running-limit", *DECODE, "-c", "12,13")
    assert found.statuses == ["valid", "over_limit"]
    assert "runs at most 12 at once" in found.rows["decode 1K x 13"].reason


def test_not_ready_says_what_it_saw(speed: Speed) -> None:
    """The gate's deadline passed: how many had produced, what ran and waited; the miss was said before."""
    found = speed("sim:matrix-slow-ramp", "-c", "8", "--ready-timeout", "2s", "--prefill-samples", "2")
    row = found.rows["decode 1K x 8"]
    assert row.status is CellStatus.not_ready and row.ready_s is None and row.ready_deadline_s == 2
    assert "not ready within 2 s" in row.reason and "of 8 streams had produced output" in row.reason
    assert row.discarded is not None and row.discarded.tokens_per_s is None
    assert found.code == 0


def test_a_contradicted_kv_claim_is_told(speed: Speed) -> None:
    """A pool that is full while the claim had room for all is why the cell was never ready."""
    found = speed(
        "sim:matrix-kv-claim",
        *DECODE,
        "--contexts",
        "8k",
        "-c",
        "32",
        "--ready-timeout",
        "20s",
        verified=False,
    )
    assert found.row.status is CellStatus.not_ready
    assert "KV claim contradicted: 262,144 of 450,560 tokens" in found.row.reason


def test_extra_traffic_is_tried_twice(speed: Speed) -> None:
    """More running than ours is somebody else's: tried once more, then void, with its values discarded."""
    found = speed("sim:matrix-traffic", *DECODE, "-c", "8", "--window", "20s")
    row = found.row
    assert row.status is CellStatus.extra_traffic and "9 running of 8 ours" in row.reason
    assert row.trials == ("decode.1K.c8", "decode.1K.c8.retry1")
    assert row.discarded is not None and row.discarded.tokens_per_s
    assert found.code == 4


@pytest.mark.parametrize(("limit", "status"), [("5%", "looped"), ("50%", "valid")])
def test_looped_beyond_the_limit(speed: Speed, limit: str, status: str) -> None:
    """Above --loop-limit a cell is void and was tried once more; within it, it is valid with a note."""
    found = speed("sim:matrix-loop-some", *DECODE, "-c", "8", "--window", "25s", "--loop-limit", limit)
    row = found.row
    assert row.status.value == status
    assert len(row.trials) == (2 if status == "looped" else 1)
    assert "of 8 streams" in (row.reason if status == "looped" else " ".join(row.notes))


def test_underfilled(speed: Speed) -> None:
    """A server that throws streams out runs fewer than asked: no rate, and preemptions are counted."""
    found = speed(
        "sim:matrix-preempt", *DECODE, "--contexts", "8k", "-c", "16", "--window", "20s", "--stable", "2s",
        verified=False,
    )  # fmt: skip
    assert found.row.status is CellStatus.underfilled and "fewer than 16" in found.row.reason
    assert "preemption" in " ".join(found.row.notes)
    assert found.row.discarded is not None and found.row.discarded.preemptions


def test_skipped_by_the_time_budget(speed: Speed) -> None:
    """What the budget leaves no room for is skipped, and says how much was left; with nothing run it is exit 3."""
    found = speed("sim:matrix", *DECODE, "-c", "1,2,4,8", "--time-budget", "15s")
    assert found.statuses == ["valid", "valid", "skipped", "skipped"] and found.code == 0
    assert "of the time budget of 15 s are left" in found.rows["decode 1K x 8"].reason
    nothing = speed("sim:matrix", "--time-budget", "1s", out="y", verified=False)
    assert set(nothing.statuses) == {"skipped"} and nothing.code == 3


# -- the phases -------------------------------------------------------------------------------------------------------


def test_a_count_of_requests(speed: Speed) -> None:
    """With --requests each cell is so many requests, at least one a stream, and a whole run's rate."""
    found = speed("sim:matrix", *DECODE, "-c", "1,8", "--requests", "4", "--output", "64")
    one, eight = found.result.rows
    assert one.values is not None and eight.values is not None
    assert (one.values.requests, eight.values.requests) == (4, 8)
    assert (one.values.completed, one.values.output_tokens) == (4, 4 * 64)
    assert one.ready_s is None and one.values.e2e is not None


def test_burst(speed: Speed) -> None:
    """Each level is also one wave of five a stream, with E2E latency; --burst-requests alone asks for it, too."""
    found = speed("sim:matrix", *DECODE, "-c", "1,4", "--burst", "--output", "256")
    wave = found.rows["burst 1K x 4"].values
    assert wave is not None and wave.requests == 20 and wave.e2e is not None and wave.e2e.n == 20
    assert found.statuses == ["valid"] * 4
    found = speed("sim:matrix", *DECODE, "--burst-requests", "7", "--output", "256", out="y", verified=False)
    again = found.rows["burst 1K x 2"].values
    assert again is not None and again.requests == 7


def test_mixed(speed: Speed) -> None:
    """A long prompt arrives while streams decode: its TTFT alone and under load, and the streams before and after."""
    found = speed(
        "sim:matrix", *DECODE, "-c", "1", "--mixed", "--mixed-arrival", "8k", "--mixed-streams", "4",
        "--mixed-shape", "512/2k",
    )  # fmt: skip
    row = found.rows["mixed 8K x 4"]
    values = row.values
    assert row.status is CellStatus.valid and values is not None and values.mixed is not None
    mixed = values.mixed
    assert mixed.before is not None and mixed.during is not None and mixed.after is not None
    assert mixed.ttft_ns is not None and values.alone_ttft_ns is not None and values.slowdown is not None
    assert mixed.ttft_ns > values.alone_ttft_ns and values.slowdown > 1
    assert (mixed.during.rate or 0.0) < (mixed.before.rate or 0.0)
    assert Path("x/trials/alone.8K").is_dir()


def test_warm_streams(speed: Speed) -> None:
    """With --warm-streams the TTFT of the ramp is warm, labelled so, and below the cold one."""
    cold = speed("sim:matrix", *DECODE, "--contexts", "8k").row.values
    warm = speed("sim:matrix", *DECODE, "--contexts", "8k", "--warm-streams", out="y").row.values
    assert cold is not None and cold.ttft is not None and cold.ttft.p50 is not None
    assert warm is not None and warm.ttft is not None and warm.ttft.p50 is not None
    assert (cold.warmth, warm.warmth) == ("cold", "warm")
    assert warm.ttft.p50 < cold.ttft.p50 / 2


@pytest.mark.parametrize(("share", "shared"), [("25%", 3_072), ("0%", 4_032), ("100%", 0)])
def test_shared_contexts(speed: Speed, share: str, shared: int) -> None:
    """The stated part of each prompt is shared and cached, to a block; not even at 0% are two prompts the same."""
    found = speed("sim:matrix", *DECODE, "--contexts", "4k", "--unique-context", share, "--output", "256")
    row = found.row
    assert row.status is CellStatus.valid and not any("off target" in note for note in row.notes)
    # The first request of each stream shares what is stated, template included. No request came to its usage.
    assert row.cached_tokens is None and row.cached_mean == pytest.approx(shared, abs=64)


def test_sharing_without_a_prefix_cache_is_off_target(speed: Speed) -> None:
    """A server that caches nothing is told of: the cell is off its sharing, and streams prefill inside the window."""
    found = speed(
        "sim:matrix-no-cache", *DECODE, "--contexts", "4k", "--unique-context", "25%", "--output", "64"
    )
    notes = " ".join(found.row.notes)
    assert "sharing off target" in notes and "prefill inside" in notes


def test_prefill_only_and_no_prefill(speed: Speed) -> None:
    """Each leaves the other phase out; a prefill's own length may differ from the decode contexts."""
    only = speed("sim:matrix", "--prefill-only", "--prefill-contexts", "1k,2k,limit")
    assert list(only.rows) == ["prefill 1K x 1", "prefill 2K x 1", "prefill 32K x 1"]
    values = only.rows["prefill 2K x 1"].values
    assert values is not None and values.prefill is not None and 3 <= values.prefill.n <= 8
    assert values.prefill.server_s is not None and values.prefill.computed_tokens is not None
    none = speed("sim:matrix", *DECODE, out="y", verified=False)
    assert list(none.rows) == ["decode 1K x 2"]


@pytest.mark.parametrize(
    ("given", "profile", "cells"),
    [
        (("--quick",), "quick", 1 + 3),
        (("--profile", "quick"), "quick", 1 + 3),
        (("--profile", "standard"), "standard", 1 + 3),
        (("--quick", "-c", "1"), "custom", 1 + 1),
    ],
)
def test_profiles(run: Run, given: tuple[str, ...], profile: str, cells: int) -> None:
    """A profile fixes contexts, concurrency and window; what it leaves open changes nothing else, and is named."""
    # A budget of nothing plans the whole matrix and runs none of it.
    code, out, _err = run("speed", "sim:matrix", *given, "--time-budget", "1ms", "--json")
    result = json.loads(out)
    assert code == 3 and result["contract"]["speed"]["profile"] == profile
    assert len(result["rows"]) == cells
    assert result["contract"]["speed"]["window_ns"] == (30 if profile == "standard" else 10) * 10**9


# -- servers that misbehave, or tell little ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fault", "options", "words"),
    [
        ("503@{}", (), "HTTP 503"),
        ("429@{}", (), "HTTP 429"),
        ("error_event@{}", (), "stream_error"),
        ("cut@{}", (), "reset"),
        ("stall:60@{}", ("--deadline", "silence=2s", "--window", "6s"), "silence"),
    ],
)
def test_a_fault_voids_its_cell_alone(speed: Speed, fault: str, options: tuple[str, ...], words: str) -> None:
    """A request that fails makes its cell a server error with the server's words; the cells beside it stand."""
    # The cells of 1, 2 and 4 streams: the fault is in the second.
    found = speed("sim:matrix", *DECODE, "-c", "1,2,4", "--fault", fault.format(FIRST + 2), *options)
    assert found.statuses == ["valid", "server_error", "valid"]
    row = found.rows["decode 1K x 2"]
    assert words in row.reason and row.discarded is not None
    assert found.code == 0


def test_a_server_that_dies(speed: Speed) -> None:
    """A lost server ends the study with 5; cells before it stand, those from it on are interrupted, and say why."""
    found = speed("sim:matrix", *DECODE, "-c", "1,2,4", "--fault", f"die@{FIRST + 2}")
    assert found.statuses == ["valid", "interrupted", "interrupted"] and found.code == 5
    assert "lost" in found.rows["decode 1K x 2"].reason
    assert found.rows["decode 1K x 2"].reason.startswith("not finished")
    assert found.rows["decode 1K x 4"].reason.startswith("not run")


def test_a_server_that_changes(speed: Speed) -> None:
    """A server that looks restarted within a cell voids it, and the study ends with 4."""
    found = speed(
        "sim:matrix", *DECODE, "-c", "1,2,4", "--fault", f"identity_change:{FIRST + 2}", verified=False
    )
    assert found.statuses[:2] == ["valid", "server_error"] and found.code == 4
    assert "context_limit_tokens changed" in found.rows["decode 1K x 2"].reason
    assert "not the one of the first cell" in found.said


def test_answers_that_stop_early(speed: Speed) -> None:
    """An answer that ends before its length is a note of its cell, and the stream starts again."""
    found = speed("sim:matrix", *DECODE, "-c", "1,4", "--fault", f"early_stop:20@{FIRST + 2}")
    assert found.statuses == ["valid", "valid"]
    row = found.rows["decode 1K x 4"]
    assert any("another length" in note for note in row.notes)
    assert row.values is not None and row.values.restarts is not None


def test_a_server_without_usage(speed: Speed) -> None:
    """Tokens are estimated, in the row, in its notes and in the whole result's warnings."""
    found = speed("sim:matrix", *DECODE, "--fault", "no_usage")
    row = found.row
    assert row.values is not None and row.values.estimated
    assert any("estimated" in note for note in row.notes)
    assert any("estimated" in warning for warning in found.result.warnings)


@pytest.mark.parametrize(("fault", "words"), [("html", "web page"), ("early_stop", "--natural-stops"),
                                              ("wrong_usage", "ignore_eos")])  # fmt: skip
def test_what_cannot_be_measured_at_all(run: Run, fault: str, words: str) -> None:
    """A server that fails the probe is refused with 5 and words, before any load, and leaves no directory."""
    code, out, err = run("speed", "sim:matrix", "--fault", fault, "--json")
    assert code == 5 and words in " ".join(err.split())
    assert json.loads(out)["error"]["exit_code"] == 5
    assert not list(Path("runs").glob("*"))


class Silent(App):
    """Serve completions and a model list, and tell nothing else: as behind a gateway."""

    def _page(self, request: HttpRequest, path: str) -> tuple[int, bytes, str]:
        if path == "/v1/models":
            model = {"id": self.model, "object": "model", "owned_by": "somebody"}
            return 200, json.dumps({"object": "list", "data": [model]}).encode(), "application/json"
        if path == "/health":
            return super()._page(request, path)
        return 404, b'{"detail":"Not Found"}', "application/json"


@pytest.fixture
def silent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the built-in engine tell nothing: no limits, no metrics, no tokenizer."""

    @contextmanager
    def unwatched(*_arguments: object) -> Iterator[None]:
        yield

    monkeypatch.setattr("nameplate.cli.ground.App", Silent)
    monkeypatch.setattr(VirtualGround, "watching", unwatched)


@pytest.mark.usefixtures("silent")
def test_a_server_that_tells_nothing(speed: Speed) -> None:
    """Without limits and metrics a cell is ready once every stream has produced; this is said, and it is valid."""
    found = speed("sim:matrix", "-c", "1,4", "--contexts", "1k", verified=False)
    assert set(found.statuses) == {"valid"}
    row = found.rows["decode 1K x 4"]
    assert any("does not tell what it runs" in note for note in row.notes)
    assert any("does not tell what it runs" in warning for warning in found.result.warnings)
    assert row.values is not None and row.values.running is None and row.values.samples == 0
    assert found.result.limits.context_tokens is None


@pytest.mark.usefixtures("silent")
def test_a_limit_that_is_not_told(speed: Speed) -> None:
    """A context that such a server refuses is over its limit, in its words; the others are measured."""
    found = speed("sim:matrix", "-c", "1", "--contexts", "1k,40k", verified=False)
    rows = found.rows
    assert rows["decode 1K x 1"].status is rows["prefill 1K x 1"].status is CellStatus.valid
    assert rows["decode 40K x 1"].status is rows["prefill 40K x 1"].status is CellStatus.over_limit
    assert "HTTP 400" in rows["decode 40K x 1"].reason
    assert found.code == 0


@pytest.mark.usefixtures("silent")
@pytest.mark.parametrize("word", ["limit", "longest"])
def test_words_need_a_limit(run: Run, word: str) -> None:
    """Such a server's longest context can be given as a fact; without it the words are refused."""
    code, _out, err = run("speed", "sim:matrix", "--contexts", word, "-c", "1")
    assert code == 2 and "--fact context_limit_tokens=" in " ".join(err.split())
    assert not list(Path("runs").glob("*"))


class Turning(App):
    """Turn into a login page after some requests."""

    def handle(self, connection: int, request: HttpRequest, now_ns: int) -> None:
        if self._requests <= FIRST + 1:
            super().handle(connection, request, now_ns)
            return
        self._run(now_ns)
        page = response(200, b"<html>Please sign in</html>", "text/html", keep_alive=request.keep_alive)
        # An answer in no time at all would be asked for again in the same moment, for ever.
        self._send(connection, now_ns + 1_000_000, page)


def test_a_login_page_in_the_middle(speed: Speed, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a server turns into a web page no cell is lost, and those after it have words and no rate."""
    monkeypatch.setattr("nameplate.cli.ground.App", Turning)
    found = speed("sim:matrix", *DECODE, "-c", "1,2,4", verified=False)
    assert found.statuses[0] == "valid" and set(found.statuses[1:]) <= {"interrupted", "server_error"}


# -- what is printed and kept -----------------------------------------------------------------------------------------


def test_json_is_exactly_one_document(run: Run) -> None:
    """With --json standard output is the result and nothing else; people read on standard error."""
    code, out, _err = run("speed", "sim:matrix", "--contexts", "1k", "-c", "1", "--window", "2s", "--stable", "1s",
                          "--json", "--all", "--out", "x")  # fmt: skip
    assert code == 0
    assert json.loads(out) == json.loads(Path("x/result.json").read_text())
    code, out, _err = run("speed", "sim:matrix", "--contexts", "x", "--json")
    assert code == 2 and json.loads(out)["error"]["fault"] == "the request"


def test_tables_of_all_and_of_discarded_values(run: Run) -> None:
    """--all prints every measurement; a void cell's numbers are shown with --show-discarded alone."""
    base = (
        "speed",
        "sim:matrix-loop",
        *DECODE,
        "--contexts",
        "1k",
        "-c",
        "2",
        "--window",
        "25s",
        "--stable",
        "1s",
    )
    code, out, _err = run(*base, "--all", "--out", "a")
    assert code == 4 and "looped" in out and "All measurements" in out
    kept = json.loads(Path("a/result.json").read_text())["rows"][0]["discarded"]["tokens_per_s"]
    shown = f"{kept:.1f}"
    assert shown not in out
    code, out, _err = run(*base, "--all", "--show-discarded", "--out", "b")
    kept = json.loads(Path("b/result.json").read_text())["rows"][0]["discarded"]["tokens_per_s"]
    assert code == 4 and f"{kept:.1f}" in out
    code, out, _err = run("show", "b", "--all")
    assert code == 0 and "looped" in out and "All measurements" in out and f"{kept:.1f}" not in out
    code, out, _err = run("show", "b", "--show-discarded")
    assert code == 0 and f"{kept:.1f}" in out
    code, out, _err = run("show", "b", "--json")
    assert code == 0 and json.loads(out)["schema"] == "nameplate.speed/1"
    code, _out, err = run("show", "b/trials")
    assert code == 2 and "holds no run" in err


def test_no_key_reaches_the_disk(run: Run) -> None:
    """Keys in --launch-command and --note are in no file and not in what is printed; the rest of both is kept."""
    code, out, err = run(
        "speed", "sim:matrix", *DECODE, "--contexts", "1k", "-c", "1", "--window", "2s", "--stable", "1s", "--out", "x",
        "--launch-command", "HF_TOKEN=hf_sesame vllm serve m --api-key sesame-open --max-num-batched-tokens 8192",
        "--note", "behind https://me:sesame@proxy", "--header", "X-Key: sesame-header",
    )  # fmt: skip
    assert code == 0 and "sesame" not in out + err
    for path in Path("x").rglob("*"):
        assert path.is_dir() or b"sesame" not in path.read_bytes(), f"the key is in {path}"
    result = json.loads(Path("x/result.json").read_text())
    assert "vllm serve m --api-key <redacted> --max-num-batched-tokens 8192" in result["launch_command"]
    assert result["note"] == "behind https://me:<redacted>@proxy"


# -- going on ---------------------------------------------------------------------------------------------------------


def test_a_finished_study_is_only_printed(run: Run) -> None:
    """Resuming what is finished runs nothing: the same trials, the same rows."""
    base = ("--contexts", "1k", "-c", "1,2", "--window", "2s", "--stable", "1s", *DECODE)
    assert run("speed", "sim:matrix", *base, "--out", "x")[0] == 0
    sealed = {path: path.stat().st_mtime_ns for path in Path("x").glob("trials/*/manifest.json")}
    before = json.loads(Path("x/result.json").read_text())
    # Its server need not be there any more.
    code, out, err = run("speed", "--resume", "x")
    assert code == 0 and "1K" in out and "not used" not in err
    code, out, err = run("speed", "--resume", "x", "--window", "9s", "-c", "4", "--all")
    assert code == 0 and "so these are not used: --concurrency, --window" in " ".join(err.split())
    assert {path: path.stat().st_mtime_ns for path in Path("x").glob("trials/*/manifest.json")} == sealed
    assert json.loads(Path("x/result.json").read_text()) == before
    assert run("verify", "x")[0] in (0, 3)


def test_a_study_goes_on_cell_by_cell(run: Run) -> None:
    """After a lost server the study resumes: sealed cells are not run again, the others get their status."""
    base = ("--contexts", "1k", "-c", "1,2,4", "--window", "2s", "--stable", "1s", *DECODE)
    assert run("speed", "sim:matrix", *base, "--fault", f"die@{FIRST + 2}", "--out", "x")[0] == 5
    sealed = {path: path.stat().st_mtime_ns for path in Path("x").glob("trials/*.c1/manifest.json")}
    assert len(sealed) == 1
    assert run("speed", "sim:matrix", "--resume", "x")[0] == 0
    assert {path: path.stat().st_mtime_ns for path in Path("x").glob("trials/*.c1/manifest.json")} == sealed
    rows = json.loads(Path("x/result.json").read_text())["rows"]
    assert [(row["status"], row["trials"]) for row in rows] == [
        ("valid", ["decode.1K.c1"]), ("valid", ["decode.1K.c2.retry1"]), ("valid", ["decode.1K.c4"]),
    ]  # fmt: skip
    assert run("verify", "x")[0] in (0, 3)


def test_what_cannot_be_resumed(run: Run) -> None:
    """Another kind of study, another target, no study at all: refused with words, and what is there stays as it is."""
    small = ("--contexts", "1k", "-c", "1,2", "--window", "2s", "--stable", "1s", *DECODE)
    assert run("speed", "sim:matrix", *small, "--fault", f"die@{FIRST + 2}", "--out", "x")[0] == 5
    assert run("trial", "sim:demo", "--shape", "64/8", "-c", "2", "--requests", "4", "--out", "t")[0] == 0
    Path("empty").mkdir()
    for arguments, code, words in (
        (("sim:demo", "--resume", "t"), 2, "no speed study"),
        (("sim:matrix", "--resume", "empty"), 2, "not a study"),
        (("sim:matrix", "--resume", "nowhere"), 2, "nowhere"),
        (("http://127.0.0.1:9", "--resume", "x"), 2, "belongs to http://sim"),
        (("--resume", "x"), 2, "Name it again"),
        (("sim:matrix-loop", "--resume", "x"), 2, "not the one that this study began on"),
        (("sim:demo", "--resume", "x"), 5, "does not serve a model named"),
    ):
        before = sorted(Path("x").rglob("*"))
        found, _out, err = run("speed", *arguments)
        assert found == code, (arguments, err)
        assert words in " ".join(err.split()), arguments
        assert sorted(Path("x").rglob("*")) == before, "a refusal takes nothing away"
        assert run("verify", "x")[0] in (0, 3)


def test_facts_that_are_no_longer_told_are_no_change(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server whose facts can suddenly not be read is unverified, not changed: the study goes on."""
    real: Callable[[Adapter], Identity] = Adapter.identity
    calls = iter(range(99))
    monkeypatch.setattr(Adapter, "identity", lambda self: real(self) if next(calls) < 4 else Identity())
    code, _out, err = run(
        "speed", "sim:matrix", *DECODE, "--contexts", "1k", "-c", "1,2", "--window", "2s", "--stable", "1s",
    )  # fmt: skip
    assert code == 0 and next(calls) > 4, err
