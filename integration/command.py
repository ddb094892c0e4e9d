"""The command as a person runs it, and a server's metrics page as it stands."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

from prometheus_client.parser import text_string_to_metric_families


def nameplate(*arguments: str, expected: tuple[int, ...] = (0,)) -> Any:
    """Run the command with --json and return its document; the exit code must be one that is expected."""
    done = subprocess.run(
        [sys.executable, "-m", "nameplate", *arguments, "--json"],
        capture_output=True,
        text=True,
        timeout=3000,
    )
    document = json.loads(done.stdout) if done.stdout else {}
    said = document.get("verdict") or document.get("error") or document.get("shapes")
    assert done.returncode in expected, f"exit {done.returncode}\n{done.stderr}\n{said}"
    return document


def metric_samples(url: str, name: str) -> dict[tuple[tuple[str, str], ...], float]:
    """Return every sample of one metric, by its labels."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(f"{url}/metrics", timeout=10) as reply:
        page = reply.read().decode()
    return {
        tuple(sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(page)
        for sample in family.samples
        if sample.name == name
    }


def buckets(url: str, name: str) -> dict[float, float]:
    """Return a histogram's cumulative counts by upper edge in seconds."""
    return {
        float(dict(labels)["le"]): value for labels, value in metric_samples(url, f"{name}_bucket").items()
    }


def lines(path: Path) -> list[dict[str, Any]]:
    """Return the objects of a file of JSON lines."""
    return [json.loads(line) for line in path.read_text().splitlines()]


def rows(trial: Path) -> list[dict[str, Any]]:
    """Return a trial's requests."""
    return lines(trial / "requests.jsonl")


def idle_samples(trial: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what the idle server said of itself before a trial's load and after it."""
    idle = {
        e["detail"]["moment"]: e["detail"]["sample"]
        for e in lines(trial / "journal.jsonl")
        if e["what"] == "idle"
    }
    return idle["before"], idle["after"]
