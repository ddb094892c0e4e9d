"""`nameplate soak`, `watch`, `show`, `verify`: minutes in simulated time, ends of every kind, and what is refused."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from nameplate.cli import soak_run
from nameplate.cli.tests.conftest import Run
from nameplate.cli.tests.soaks import QUIET, kill, record_of, soak
from nameplate.evidence import layout
from nameplate.measure.soak.result import decode_soak
from nameplate.verify import verify
from nameplate.verify.names import Name
from nameplate.verify.tests.making import edit_json

SOAK = ("soak", "sim:demo")


@pytest.fixture(scope="module")
def quiet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run one quiet soak that others start from."""
    directory = tmp_path_factory.mktemp("quiet") / "x"
    assert soak(directory) == 0
    return directory


@pytest.fixture
def killed(quiet: Path, tmp_path: Path) -> Path:
    """Return a soak that was killed half way, in the working directory."""
    shutil.copytree(quiet, tmp_path / "x")
    kill(tmp_path / "x", 0.5)
    return tmp_path / "x"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("soak",), "TARGET is missing"),
        ((*SOAK, "-c", "2", "--duration", "1m"), "--shape is missing"),
        ((*SOAK, "--shape", "64/8", "-c", "2"), "--duration is missing"),
        ((*SOAK, "--shape", "64/8", "--duration", "1m"), "Either --concurrency or --rate"),
        ((*SOAK, "--shape", "64/8", "--duration", "1m", "-c", "2", "--rate", "1"), "Either --concurrency or --rate"),
        ((*SOAK, "--shape", "64/8", "--duration", "1m", "-c", "2", "--arrivals", "constant"), "open loop"),
        ((*SOAK, "--shape", "64/8", "--duration", "0s", "-c", "2"), "no soak"),
        ((*SOAK, "--shape", "64/8", "--duration", "soon", "-c", "2"), "not a duration"),
        ((*SOAK, "--shape", "64/8", "--duration", "1m", "-c", "2", "--window", "2m"), "does not fit"),
        ((*SOAK, "--shape", "64/8", "--duration", "1m", "-c", "2", "--window", "1ms"), "does not fit"),
        ((*SOAK, "--shape", "64/8", "--duration", "1m", "-c", "2", "--start", "handover"), "--start"),
        ((*SOAK, "--shape", "64/8", "--duration", "1m", "-c", "2", "--raw-budget", "much"), "not a size"),
        ((*SOAK, "--shape", "64/8", "--duration", "1m", "-c", "2", "--raw-budget", "1GB", "--no-raw"), "contradict"),
        ((*SOAK, "--shape", "64/8", "--duration", "1m", "-c", "2", "--max-drift", "150%"), "not a share"),
        ((*SOAK, "--shape", "64/8", "--duration", "1m", "-c", "2", "--workers", "2"), "one load process"),
        ((*SOAK, "--shape", "8k/1k", "--duration", "1m", "-c", "2", "--out", "x"), "context holds"),
        (("soak", "--resume", "."), "not a study"),
        (("watch", "."), "no soak"),
        (("watch", ".", "--every", "often"), "no soak"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_in_words(run: Run, arguments: tuple[str, ...], words: str) -> None:
    """Exit code 2, what is wrong, and no directory left behind."""
    code, out, err = run(*arguments)
    assert code == 2 and words in err + out
    assert not Path("runs").exists() and not Path("x").exists()


@pytest.mark.parametrize(
    ("duration", "window_s"),
    [("30s", 1), ("3m", 2), ("30m", 30), ("1h", 75), ("3h", 180), ("3h59m", 240), ("4h", 300), ("8h", 300)],
)
def test_a_window_that_nobody_chose_is_whole_seconds(duration: str, window_s: int) -> None:
    """Five minutes from four hours on; below, a length that people count in, of which there are 48 or more."""
    assert soak_run.window_ns_of({"duration": duration, "window": None}) == window_s * 10**9


def test_help_says_which_window_is_chosen(run: Run) -> None:
    """What the page says of the default holds below four hours too."""
    _code, out, _err = run("soak", "--help")
    assert "about a 48th of a soak below 4h" in " ".join(out.split())


def test_a_data_set_that_ends_is_refused(run: Run, tmp_path: Path) -> None:
    """Time ends a soak, so its prompts must not."""
    (tmp_path / "rows.jsonl").write_text('{"prompt": "one"}\n')
    code, _out, err = run(*SOAK, *QUIET, "--dataset", "rows.jsonl")
    assert code == 2 and "A data set ends" in err


def test_a_steady_soak_holds_and_verifies(run: Run, quiet: Path, tmp_path: Path) -> None:
    """The answer names the sums, the record holds the verdict, everything is recomputed; nothing is left to resume."""
    shutil.copytree(quiet, tmp_path / "x")
    record = record_of("x")
    result = record.result
    assert result is not None and (record.exit_code, record.left_ns, result.verdict.status) == (0, 0, "pass")
    assert {held.series for held in result.drift.series if held.conclusion == "steady"} >= {
        "ttft_p50",
        "itl_p50",
    }
    assert result.counts.sent == result.counts.ok == 180
    assert [(entry.key, entry.state, entry.ended_by) for entry in record.segments] == [
        ("soak.s1", "ended", "duration")
    ]
    assert verify(Path("x")).exit_code == 0 and verify(Path("x/trials/soak.s1")).exit_code == 0
    code, out, _err = run("show", "x", "--all")
    assert code == 0 and "180 sent = 180 ok" in out
    assert run("show", "x/trials/soak.s1", "7")[0] == 0
    code, out, _err = run("watch", ".", "--once")
    assert code == 0 and "soak ended" in out and "180 sent, 180 ok" in out
    code, out, _err = run("watch", "x/trials/soak.s1", "--json")
    assert code == 0 and json.loads(out)["state"] == "ended"
    code, out, _err = run(*SOAK[:1], "--resume", "x")
    assert code == 0 and "180 sent" in out and verify(Path("x")).exit_code == 0


def test_a_soak_that_has_not_begun_is_told(run: Run, quiet: Path, tmp_path: Path) -> None:
    """A contract and nothing else: whoever looks on is told so, and verification says what is missing."""
    (tmp_path / "x" / layout.TRIALS).mkdir(parents=True)
    shutil.copy(quiet / layout.CONTRACT, "x")
    code, out, _err = run("watch", "x", "--once")
    assert code == 0 and "Nothing was measured yet" in out
    assert verify(Path("x")).exit_code == 3


@pytest.mark.parametrize("width", [40, 80, 160])
def test_every_page_fits_its_width(
    run: Run, quiet: Path, killed: Path, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    """Columns are left out and words are broken before a line is longer than the terminal."""
    monkeypatch.setenv("COLUMNS", str(width))
    for arguments in (
        ("show", str(quiet)),
        ("watch", str(quiet), "--once"),
        ("watch", str(killed), "--once"),
    ):
        code, out, _err = run(*arguments)
        assert code == 0 and out and max(map(len, out.splitlines())) <= width


@pytest.mark.parametrize(
    ("fault", "words"),
    [("slowing:30", "drifting up"), ("slower:3@95", "stepped at 0:0")],
)
def test_a_server_that_changes_is_found_out(run: Run, fault: str, words: str) -> None:
    """A drift beyond --max-drift is exit code 1, with its series, size and moment; without a limit it is told."""
    code, out, _err = run(
        *SOAK, *QUIET, "--fault", fault, "--max-drift", "50%", "--window", "6s", "--out", "x"
    )
    assert code == 1 and words in out, out
    assert verify(Path("x")).exit_code == 0


def test_a_restart_is_named_with_its_recovery(run: Run) -> None:
    """Failures, the time away, two parts of the server; an error rate within its limit holds. JSON is the result."""
    code, out, _err = run(
        *SOAK, *QUIET, "--fault", "restart:30@60", "--max-error-rate", "30%", "--out", "x", "--json"
    )
    result = decode_soak(out.encode())
    assert result == record_of("x").result and len(result.parts) == 2 and result.counts.failed > 10
    (outage,) = result.segments[0].outages
    assert outage.restarted and outage.recovery_ns is not None and outage.recovery_ns > 20 * 10**9
    shown, out, _err = run("show", "x")
    assert code == shown == 0 and "Server lost" in out and "restarted" in out and "alone mislead" in out
    assert verify(Path("x")).exit_code == 0


def test_a_server_lost_for_good_is_exit_code_5(run: Run) -> None:
    """It did not come back before the end."""
    code, out, _err = run(*SOAK, *QUIET, "--fault", "restart:3600@120", "--out", "x")
    assert code == 5 and "not back within what was observed" in out
    assert verify(Path("x")).exit_code == 0


def test_all_that_is_left_is_named(run: Run) -> None:
    """The drain of an overloaded server is cut: each of the 38 is listed with how far it had come.

    KV pool in full budgets, what waits in the server, disk, and how long it will last were told before.
    """
    code, out, err = run(
        *SOAK, "--shape", "1024/2048", "-c", "38", "--duration", "2s", "--drain", "1s", "--out", "x"
    )
    before = err[: err.index("soak.s1: load")]
    assert "hold 21.3 requests of 1024/2048 at their full 3,072 tokens; concurrency 38" in before
    assert "at most 32 requests at once: of 38, 6 wait" in before
    assert "on disk for 1,000 requests" in before and "submitting for 2.0 s" in before
    result = record_of("x").result
    assert code == 3 and result is not None and result.verdict.reasons[0].startswith("ended: not one of 38")
    left = result.segments[0].unfinished
    assert len(left) == 38 == result.counts.cancelled + result.counts.unfinished
    fates = {request.fate for request in left}
    assert "decoding" in fates and all(request.tokens for request in left if request.fate == "decoding")
    assert "Left without an end: 38 requests" in out and out.count("cancelled") >= 38
    assert verify(Path("x")).exit_code == 0
    # The one that is kept quiet about is missed.
    edit_json(Path("x/trials/soak.s1"), layout.RESULT, lambda document: document["unfinished"].pop(7))
    report = verify(Path("x/trials/soak.s1"))
    assert {check.name for check in report.checks if check.status == "fail"} == {Name.unfinished}


def test_a_load_that_outruns_its_server_fails_by_name(run: Run) -> None:
    """At the outstanding limit it ends: exit code 1 with count and moment, everything that was out has its own end."""
    load = ("--shape", "64/200", "--rate", "40", "--arrivals", "constant", "--outstanding-limit", "12")
    code, out, _err = run(*SOAK, *load, "--duration", "10m", "--out", "x")
    record = record_of("x")
    result, (segment,) = record.result, record.segments
    assert code == record.exit_code == 1 and segment.ended_by == "outstanding_limit" and record.left_ns
    assert result is not None and result.verdict.status == "fail"
    assert result.counts.sent == result.counts.ok >= 12
    (gate,) = [gate for gate in result.verdict.gates if gate.status == "fail"]
    at_s = f"after {result.submitted_s:,.1f} s"
    assert gate.gate == "outstanding" and f"limit of 12 unanswered requests {at_s}" in gate.detail
    words = " ".join(out.split())
    assert (
        f"12 unanswered requests {at_s}" in words and "It came to its limit of unanswered requests" in words
    )
    code, out, _err = run("watch", "x", "--once")
    assert code == 0 and "ended at its limit of unanswered requests" in " ".join(out.split())
    report = verify(Path("x"))
    assert report.exit_code == 0, [check for check in report.all_checks() if check.status == "fail"]


def test_segments_share_one_budget_of_raw_reads(run: Run) -> None:
    """A soak that goes on has what the files of earlier segments left of it, says so, and verification holds that."""
    assert run(*SOAK, *QUIET, "--raw-budget", "20KB", "--out", "x")[0] == 0
    spent = []
    for number, share in ((1, 0.6), (2, 0.8)):
        kill("x", share, f"soak.s{number}")
        spent.append(Path(f"x/trials/soak.s{number}/reads.zst").stat().st_size)
        code, _out, err = run(*SOAK, "--resume", "x")
        left = max(0, 20_000 - sum(spent))
        assert code == 0 and "raw reads up to" in err and " more of " in err, err
        header = json.loads(Path(f"x/trials/soak.s{number + 1}/trial.json").read_bytes())
        assert header["plan"]["soak"]["raw_budget_bytes"] == left
    # Each file is cut at its share of bytes, and those of reads are not even over time: no kill is as crude elsewhere.
    found = verify(Path("x")).check(Name.segments)
    assert found.status == "pass", found


def test_a_killed_soak_goes_on(run: Run, quiet: Path, tmp_path: Path) -> None:
    """What was cut short is sealed as it is, a new segment submits what is left, the gap is told, and all verifies."""
    shutil.copytree(quiet, tmp_path / "x")
    kill("x", 0.93)
    code, out, _err = run("watch", "x", "--once")
    assert code == 0 and "soak killed" in out
    report = verify(Path("x"))
    assert report.exit_code == 3, [check for check in report.all_checks() if check.status == "fail"]
    code, out, err = run(*SOAK, "--resume", "x")
    assert code == 0 and "soak.s1 was cut short by a kill" in err and "between soak.s1 and soak.s2" in out
    record = record_of("x")
    first, second = record.segments
    assert (first.state, first.ended_by, second.state, second.ended_by) == (
        "killed",
        None,
        "ended",
        "duration",
    )
    assert abs(first.covered_ns + second.planned_ns - 180 * 10**9) < 2 * 10**9 and record.left_ns == 0
    assert record.result is not None and len(record.result.gaps) == 1 and record.result.gaps[0].length_s
    report = verify(Path("x"))
    assert report.exit_code == 0, [
        check for check in report.all_checks() if check.status in ("fail", "unverified")
    ]


def test_a_segment_that_submitted_nothing_came_to_nothing(run: Run, killed: Path) -> None:
    """Killed between its header and its first request: no segment, no collapse and no lie; its key is not used."""
    segment = killed / layout.TRIALS / "soak.s1"
    for path in segment.iterdir():
        if path.name not in (layout.HEADER, layout.JOURNAL, layout.PROMPTS):
            path.unlink()
    lines = (segment / layout.JOURNAL).read_bytes().splitlines(keepends=True)
    (segment / layout.JOURNAL).write_bytes(b"".join(line for line in lines if b"submit_began" not in line))
    code, out, _err = run("watch", "x", "--once")
    assert code == 0 and "Nothing was measured yet" in out
    assert run(*SOAK, "--resume", "x")[0] == 0
    assert [entry.key for entry in record_of("x").segments] == ["soak.s1.retry1"]
    assert verify(killed).exit_code == 0


@pytest.mark.usefixtures("killed")
def test_a_soak_that_is_held_is_not_resumed(run: Run) -> None:
    """The process that runs it holds it: a second one is refused, and whoever looks on sees that it lives."""
    from nameplate.studies.soak_archive import SoakArchive

    with SoakArchive.open(Path("x")).held():
        code, out, _err = run("watch", "x", "--json")
        assert code == 0 and json.loads(out)["state"] == "running"
        code, _out, err = run(*SOAK, "--resume", "x")
    assert code == 2 and "still running" in err
    assert not (Path("x") / layout.TRIALS / "soak.s2").exists()


@pytest.mark.usefixtures("killed")
def test_other_terms_are_refused_on_resume(run: Run) -> None:
    """A soak goes on as it began."""
    code, _out, err = run(*SOAK, "--resume", "x", "--duration", "1h", "--slo", "ttft p95 < 1s")
    assert code == 2 and "--duration, --slo cannot be changed" in err
    code, _out, err = run("soak", "--resume", "x")
    assert code == 2 and "Name it again" in err
    code, _out, err = run("soak", "http://127.0.0.1:1", "--resume", "x")
    assert code == 2 and "simulated time" in err
