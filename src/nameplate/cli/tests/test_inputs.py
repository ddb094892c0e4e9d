"""What a person sees who types something wrong, or whose server is not what they think."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from nameplate.cli.request import redacted_command
from nameplate.cli.study_run import repeating
from nameplate.sim.process import running

CAPACITY = ("--shape", "64/8", "--slo", "ttft p95 < 1s")

Run = Callable[..., tuple[int, str, str]]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("capacity",), "TARGET is missing"),
        (("capacity", "sim:demo"), "--shape is missing"),
        (("capacity", "sim:demo", "--shape", "64/8"), "--slo is missing"),
        (("capacity", "sim:demo", "--shape", "64", "--slo", "ttft p95 < 1s"), "not a shape"),
        (("capacity", "sim:demo", "--shape", "64/8", "--slo", "ttft 95 < 1s"), "not an SLO"),
        (("capacity", "sim:demo", "--shape", "64/8", "--slo", "ttft p95 <= 1s"), "strict"),
        (("capacity", "sim:demo", "--shape", "64/8", "--slo", "ttft p95 < 1"), "not a duration"),
        (("capacity", "sim:nothing", *CAPACITY), "unknown preset"),
        (("capacity", "ftp://host", *CAPACITY), "not an http(s) URL"),
        (("capacity", "http://user:word@host", *CAPACITY), "user name or password"),
        (("capacity", "sim:demo", *CAPACITY, "--cache", "tepid"), "not a cache policy"),
        (("capacity", "sim:demo", *CAPACITY, "--raw", "some"), "--raw"),
        (("capacity", "sim:demo", *CAPACITY, "--shape", "32/4", "--dataset", __file__), "lengths of its own"),
        (("capacity", "sim:demo", *CAPACITY, "--min", "9", "--max", "3"), "No level lies between"),
        (("capacity", "sim:demo", *CAPACITY, "--deadline", "first_output=0.5s"), "not above the limit"),
        (("capacity", "sim:demo", *CAPACITY, "--deadline", "lunch=1h"), "NAME=DURATION"),
        (("capacity", "sim:demo", *CAPACITY, "--deadline", "total=0s"), "total"),
        (("trial", "sim:demo", "--shape", "64/8", "-c", "4", "--workers", "2"), "--workers"),
        (("capacity", "sim:demo", *CAPACITY, "--expect", "speed=9"), "neither a plate nor figures"),
        (("capacity", "sim:demo", *CAPACITY, "--temperature", "hot"), "not a number"),
        (("capacity", "sim:demo", *CAPACITY, "--fact", "colour"), "not name=value"),
        (("capacity", "sim:demo", *CAPACITY, "--api-key-env", "NOT_SET_ANYWHERE"), "is not set"),
        (("capacity", "sim:demo", *CAPACITY, "--header", "no colon"), "--header"),
        (("capacity", "sim:demo", *CAPACITY, "--confirmations", "0"), "--confirmations"),
        (("capacity", "sim:demo", "--shape", "8000/8000", "--slo", "ttft p95 < 1s"), "context holds"),
        (("capacity", "sim:demo", "--shape", "4/8", "--slo", "ttft p95 < 1s"), "too short"),
        (("trial", "sim:demo", "--shape", "64/8"), "--concurrency"),
        (("trial", "sim:demo", "--shape", "64/8", "-c", "4", "--start", "staggered"), "belong together"),
        (("trial", "sim:demo", "--shape", "64/8", "-c", "8", "--requests", "4"), "cannot keep 8 in flight"),
        (("nonsense",), "nonsense"),
        (("verify", "/nowhere"), "/nowhere"),
    ],
)
def test_wrong_input_is_named(run: Run, arguments: tuple[str, ...], words: str) -> None:
    """Wrong input gets exit code 2 and a paragraph that names it, and leaves no directory behind."""
    code, out, err = run(*arguments)
    assert code == 2, err
    assert words in " ".join(err.split())
    assert out == ""
    assert not list(Path("runs").glob("*"))


def test_out_is_never_overwritten(run: Run, tmp_path: Path) -> None:
    """A directory that holds something is refused."""
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "thing").touch()
    code, _out, err = run("capacity", "sim:demo", *CAPACITY, "--out", "taken")
    assert code == 2 and "not empty" in err


@contextmanager
def answering(answer: bytes | None) -> Iterator[str]:
    """Serve one fixed answer to every connection, or none at all; yield the URL."""
    listener = socket.create_server(("127.0.0.1", 0))
    listener.settimeout(0.05)
    over = threading.Event()

    def serve() -> None:
        held = []
        while not over.is_set():
            try:
                connection, _address = listener.accept()
            except TimeoutError:
                continue
            if answer is None:
                held.append(connection)
                continue
            with connection:
                connection.recv(65536)
                connection.sendall(answer)
        for connection in held:
            connection.close()

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        over.set()
        thread.join()
        listener.close()


HTML = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 13\r\nConnection: close\r\n\r\n<html></html>"
NOT_HTTP = b"SSH-2.0-OpenSSH_9.2\r\n"


@pytest.mark.live
@pytest.mark.parametrize(
    ("answer", "words"), [(HTML, "not an OpenAI-compatible"), (NOT_HTTP, "HTTP"), (None, "in time")]
)
def test_a_server_that_is_none(
    run: Run, monkeypatch: pytest.MonkeyPatch, answer: bytes | None, words: str
) -> None:
    """HTML, another protocol and a server that hangs each get a message of their own and exit code 5."""
    monkeypatch.setattr("nameplate.engines.models.TIMEOUT_S", 1.0, raising=False)
    with answering(answer) as url:
        code, _out, err = run("probe", url)
    assert code == 5, err
    assert words in " ".join(err.split())


@pytest.mark.live
def test_nothing_listens(run: Run) -> None:
    """A refused connection says that nothing listens there."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    code, out, err = run("capacity", f"http://127.0.0.1:{port}", *CAPACITY, "--json")
    assert code == 5 and "refused" in err
    assert json.loads(out)["error"]["exit_code"] == 5
    assert not list(Path("runs").glob("*"))


@pytest.mark.live
def test_wrong_model_and_missing_key(run: Run) -> None:
    """A wrong model's name lists what is served; a missing key names the options that give one."""
    with running("demo", "--api-key", "sesame-open") as server:
        code, _out, err = run("probe", server.url)
        assert code == 5 and "--api-key-env" in err
        os.environ["TEST_KEY"] = "sesame-open"
        try:
            code, _out, err = run("probe", server.url, "--api-key-env", "TEST_KEY", "--model", "other")
            assert code == 5 and "demo" in err
            code, _out, _err = run(
                "trial", server.url, "--api-key-env", "TEST_KEY", "--shape", "64/4", "-c", "2", "--requests", "4",
                "--header", "X-Secret: sesame-open", "--out", "keyed",
            )  # fmt: skip
            assert code in (0, 4)
        finally:
            del os.environ["TEST_KEY"]
    files = [path for path in Path("keyed").rglob("*") if path.is_file()]
    assert len(files) > 8
    for path in files:
        assert b"sesame-open" not in path.read_bytes(), f"the key is in {path}"


def test_json_is_one_document(run: Run) -> None:
    """With --json, standard output holds exactly one document, also for an error."""
    code, out, _err = run("trial", "sim:demo", "--shape", "64/8", "-c", "2", "--requests", "4", "--json")
    assert code == 0 and json.loads(out)["plan"]["concurrency"] == 2
    code, out, _err = run("trial", "sim:demo", "--shape", "x", "-c", "2", "--json")
    assert code == 2 and json.loads(out)["error"]["fault"] == "the request"


def test_every_start_policy_runs_and_verifies(run: Run) -> None:
    """Burst, staggered and handover each run a valid trial whose evidence verifies."""
    for start in (("burst",), ("staggered", "--stagger", "20ms"), ("handover",)):
        arguments = (
            "trial",
            "sim:demo",
            "--shape",
            "64/16",
            "-c",
            "3",
            "--requests",
            "12",
            "--out",
            start[0],
        )
        code, out, err = run(*arguments, "--start", *start, "--json")
        assert code == 0, err
        plan = json.loads(out)["plan"]
        assert plan["start"] == start[0] and (plan["stagger_ns"] > 0) == (start[0] == "staggered")
        assert run("verify", start[0])[0] in (0, 3)


def test_capacity_exit_codes(run: Run) -> None:
    """The boundary's status decides the exit code: 0 confirmed, 1 rated zero, 3 open above."""
    base = ("capacity", "sim:demo", "--shape", "256/8", "--requests", "8", "--slo")
    assert run(*base, "ttft p95 < 80ms", "--out", "a")[0] == 0
    assert run(*base, "ttft p95 < 1ms", "--out", "b")[0] == 1
    assert run(*base, "ttft p95 < 1h", "--max", "2", "--out", "c")[0] == 3


def test_a_study_goes_on(run: Run) -> None:
    """An interrupted study resumes at the next trial, and its sealed trials are not run again."""
    base = ("capacity", "sim:demo", "--shape", "256/8", "--requests", "8", "--slo", "ttft p95 < 80ms")
    code, _out, _err = run(*base, "--max-trials", "3", "--out", "s")
    assert code == 3
    sealed = {path: path.stat().st_mtime_ns for path in Path("s").glob("trials/*/manifest.json")}
    assert len(sealed) == 3
    code, _out, _err = run("capacity", "sim:demo", "--resume", "s")
    assert code == 3  # the contract, and so its budget of trials, is what it was
    assert {path: path.stat().st_mtime_ns for path in Path("s").glob("trials/*/manifest.json")} == sealed
    assert run("verify", "s")[0] == 0


def test_headers_are_redacted() -> None:
    """Whatever form a header option has, its value is not in the stored command."""
    for words in (("--header", "X-Key: secret"), ("--header=X-Key: secret",)):
        assert "secret" not in " ".join(redacted_command(("capacity", "http://h", *words)))


def test_the_repeating_command_needs_no_directory() -> None:
    """The command that repeats a study leaves out the directory that is taken now."""
    again = repeating(("capacity", "http://h", "--out", "runs/a", "--shape", "1k/1k"))
    assert again == "nameplate capacity http://h --shape 1k/1k"


def test_options_from_a_file(run: Run, tmp_path: Path) -> None:
    """A TOML file gives defaults by the options' own names, and the command line wins over it."""
    file = tmp_path / "study.toml"
    file.write_text('[trial]\nshape = "64/8"\nconcurrency = 2\nrequests = 4\nfact = "colour=blue"\n')
    code, out, err = run("--config", str(file), "trial", "sim:demo", "-c", "3", "--json")
    assert code == 0, err
    result = json.loads(out)
    assert result["plan"]["concurrency"] == 3 and result["plan"]["requests"] == 4
    assert result["identity_before"]["facts"]["colour"]["value"] == "blue"
    file.write_text('[trial]\nshapes = "64/8"\n')
    code, _out, err = run("--config", str(file), "trial", "sim:demo", "-c", "3")
    assert code == 2 and "no option 'shapes'" in " ".join(err.split())


@pytest.mark.parametrize(
    ("fault", "code", "words"),
    [
        ("stall@12", 1, "timeout"),
        ("cut@12", 1, "reset"),
        ("error_event@12", 1, "stream_error"),
        ("429@12", 1, "rejected"),
        ("wrong_usage@12", 4, "output_length"),
        ("phantom", 4, "no_other_traffic"),
        ("html", 5, "not an OpenAI-compatible"),
    ],
)
def test_faults_of_a_server_are_named(run: Run, fault: str, code: int, words: str) -> None:
    """Each fault of a server ends a trial with its own exit code and its own word, and the evidence verifies."""
    found, out, err = run(
        "trial", "sim:demo", "--fault", fault, "--shape", "64/16", "-c", "4", "--requests", "12", "--warmup", "0",
        "--slo", "ttft p95 < 1s", "--deadline", "silence=5s", "--deadline", "first_output=20s", "--out", "faulty",
    )  # fmt: skip
    assert found == code, err
    assert words in " ".join((out + err).split())
    for trial in Path("faulty").glob("trials/*"):
        assert run("verify", str(trial))[0] in (0, 3)


@pytest.mark.live
def test_a_reader_that_leaves_is_no_answer() -> None:
    """A closed pipe, and standard output that was closed from the start, end without traceback and not with code 1."""
    for command in (
        f"{sys.executable} -m nameplate --help | true",
        f"{sys.executable} -m nameplate --help >&-",
    ):
        done = subprocess.run(
            ["bash", "-c", f"set -o pipefail; {command}"], capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0, done.stderr
        assert "Traceback" not in done.stderr


def test_a_study_of_a_data_set_goes_on_where_it_stopped(run: Run, tmp_path: Path) -> None:
    """A resumed study takes the rows that no trial had yet: no prompt is sent twice."""
    rows = (
        {"prompt": f"number {i} of many, said in words of its own", "output_tokens": 4} for i in range(900)
    )
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    base = ("capacity", "sim:demo", "--shape", "64/4", "--requests", "8", "--slo", "ttft p95 < 30ms")
    given = ("--dataset", "rows.jsonl")
    assert run(*base, *given, "--out", "d")[0] == 0
    # As a kill in the middle leaves it: the last trials gone, no manifest, no plate.
    began = {
        path: json.loads((path / "trial.json").read_text())["started"]["monotonic_ns"]
        for path in Path("d/trials").iterdir()
    }
    for trial in sorted(began, key=lambda path: began[path])[-4:]:
        shutil.rmtree(trial)
    for name in ("manifest.json", "plate.json"):
        (tmp_path / "d" / name).unlink()
    assert run("capacity", "sim:demo", "--resume", "d", *given)[0] == 0
    lines = [
        json.loads(line)
        for path in Path("d").rglob("requests.jsonl")
        for line in path.read_text().splitlines()
    ]
    hashes = [row["prompt_sha256"] for row in lines]
    assert len(hashes) == len(set(hashes))
    assert run("verify", "d")[0] in (0, 3)
