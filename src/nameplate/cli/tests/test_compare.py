"""`nameplate compare` over real evidence of simulated runs: the same server, a slower one, another contract."""

from __future__ import annotations

import json
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
    assert code == 0 and "1 trial a side; a verdict needs 3" in out
    code, out, _ = run("compare", "a", "a")
    assert code == 0 and "share results" in out
    code, out, err = run("compare", "a/0", "other")
    assert code == 2 and not out and "sampling.temperature" in err and "--vary sampling.temperature" in err
    code, out, err = run("compare", "a/0", "other", "--json")
    assert code == 2 and "--vary sampling.temperature" in json.loads(out)["error"]["hint"]
    code, out, _ = run("compare", "a/0", "other", "--vary", "sampling.*")
    assert code == 0 and "is the point" in out


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
