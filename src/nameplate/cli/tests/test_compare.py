"""`nameplate compare` over real evidence of simulated runs: the same server, a slower one, another contract."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from nameplate.cli.tests.conftest import Run
from nameplate.exchange.peers.tests.making import HERE, SUMMARY

TRIAL = ("--shape", "64/8", "-c", "4", "--requests", "32", "--warmup", "1", "--quiet-terminal")


def trial(run: Run, directory: str, *options: str) -> None:
    code, _, err = run("trial", "sim:demo", *TRIAL, *options, "--out", directory)
    assert code == 0, err


def test_like_slower_and_other_runs(run: Run) -> None:
    """Two runs of one server are equal; one whose steps take 5% longer is worse; another contract is refused."""
    for number in range(3):
        trial(run, f"a/{number}")
        trial(run, f"b/{number}")
        trial(run, f"slow/{number}", "--fault", "slower:1.05@0")
    trial(run, "other", "--temperature", "0.5")
    code, out, _ = run("compare", "a", "b", "--fail-if", "itl p50 +3%", "--margin", "5%")
    assert code == 0 and out.startswith("A and B are equal within 5%: ITL p50."), out
    code, out, _ = run("compare", "a", "slow", "--fail-if", "itl p50 +3%", "--json")
    told = json.loads(out)
    assert code == told["exit_code"] == 1 and told["answer"]["verdict"] == "worse"
    assert told["schema"] == "nameplate.compare/1" and told["conditions"][0]["outcome"] == "broken"
    # Thirty-two requests carry no p99.
    code, out, _ = run("compare", "a", "slow", "--fail-if", "itl p99 +5%", "--markdown", "-o", "page.html")
    assert code == 3 and out.startswith("**B is worse than A") and "not known" in out
    assert "What changed, and how certain that is" in Path("page.html").read_text()
    further = ("--and-a", "a/1", "--and-a", "a/2", "--and-b", "slow/1", "--and-b", "slow/2")
    code, out, _ = run("compare", "a/0", "slow/0", *further)
    assert code == 0 and out.startswith("B is worse than A")
    (single,) = Path("a/0/trials").iterdir()
    code, out, _ = run("compare", str(single), "b/0")
    assert code == 3 and "1 trial a side; a verdict needs 3" in out
    code, out, _ = run("compare", "a", "a")
    assert code == 0 and "share results" in out
    code, out, err = run("compare", "a/0", "other")
    assert code == 2 and not out and "sampling.temperature" in err and "--vary sampling.temperature" in err
    code, out, err = run("compare", "a/0", "other", "--json")
    assert code == 2 and "--vary sampling.temperature" in json.loads(out)["error"]["hint"]
    code, out, _ = run("compare", "a/0", "other", "--vary", "sampling.*")
    assert code == 3 and "is the point" in out
    code, out, err = run("compare", "a/0", "other", "--markdown")
    assert code == 2 and out.startswith("**A and B are not comparable as they are: 2 terms")
    assert "| must be alike | &#45;&#45;vary sampling.temperature |" in out
    assert "─" not in out + err


def study(run: Run, kind: str, directory: str, *options: str) -> None:
    asked = ("--shape", "64/8", "--slo", "ttft p95 < 1s", "--quiet-terminal", "--no-report")
    code, _, err = run(kind, "sim:demo", *asked, *options, "--out", directory)
    assert code in (0, 3), err


def test_studies_are_compared_as_they_were_sealed_and_asked(run: Run) -> None:
    """Loads of another kind are refused by name; what was altered after it was sealed is no evidence."""
    study(run, "capacity", "a", "--requests", "24", "--max", "2")
    study(run, "rate", "rate", "--requests", "24", "--max", "0.5", "--guess", "0.5")
    code, out, _ = run("compare", "a", "a")
    assert code == 0 and "equal" in out
    code, out, _ = run("compare", "rate", "a", "--markdown")
    assert code == 2 and "| load.kind | open loop | closed loop | must be alike |" in out

    shutil.copytree("a", "altered")
    plate = Path("altered/plate.json")
    rated = json.loads(plate.read_text())
    rated["shapes"][0]["rated"] = 90
    plate.write_text(json.dumps(rated))
    for first, second in (("altered", "a"), ("a", "altered")):
        code, out, err = run("compare", first, second)
        assert code == 4 and not out and "shapes.0.rated is 90" in err
    code, out, _ = run("compare", "a", "altered", "--json")
    assert code == json.loads(out)["error"]["exit_code"] == 4
    code, out, _ = run("compare", "a", "altered", "--markdown")
    assert code == 4 and out.startswith("**altered is not what was sealed")

    shutil.rmtree("altered/trials")
    code, out, _ = run("compare", "altered", "a", "--markdown")
    assert code == 2 and out.startswith("**altered holds no sealed trial that counts.**")
    code, out, _ = run("compare", "altered", "a", "--json")
    assert code == json.loads(out)["error"]["exit_code"] == 2


def test_wrong_input_is_told_in_words(run: Run) -> None:
    """What is no result, no condition, no share or two answers at once is refused by 2, with what would be right."""
    for arguments, words in (
        ((".", "."), "holds no result that can be compared"),
        ((str(HERE / SUMMARY), str(HERE / SUMMARY), "--fail-if", "fast"), "is no condition"),
        ((str(HERE / SUMMARY), str(HERE / SUMMARY), "--margin", "lots"), "is not a share"),
        ((str(HERE / SUMMARY), str(HERE / SUMMARY), "--confidence", "100%"), "gives no interval"),
        ((str(HERE / SUMMARY), str(HERE / SUMMARY), "--json", "--markdown"), "two answers"),
        ((str(HERE / SUMMARY), "gone"), "does not exist"),
    ):
        code, out, err = run("compare", *arguments)
        assert code == 2 and words in err + out, (arguments, err)
