"""Make the evidence that pages are tried on, by the real commands in simulated time.

    python -m integration.browser.evidence OUT [PREFIX...]      all of it, or the paths that begin so

Each path under OUT is one directory that a command left; what is there already is not made again:

    capacity/   confirmed (three shapes)  zero  noisy  open-above  open-below  budget  mixed (several statuses)
                interrupted  lost (the server died)  invalid  certified  warm
    rate/       confirmed  noisy  open-above
    curve/      concurrency  rate  input  repeated
    speed/      quick  phases (burst, mixed)  over-capacity  looped  not-ready  preempted  traffic  skipped
    soak/       steady  outage  drifting  collapsed (never back)  left (requests without an end)
    trial/      closed  open  ramp  steps  trace  overload  failing (every kind)  invalid  no-raw  interrupted
    import/     aiperf-raw  aiperf-records  aiperf-summary  guidellm  vllm  sglang  inference-bench
    hostile/    capacity  speed  trial  trace  curve  soak  import  import-guidellm  import-matrix
    empty/      capacity  rate  curve  speed  trial  soak
    huge/       capacity (six shapes)  trial (5,000 requests)  soak (two hours)

The directory of a trial itself is `trial/NAME/trials/KEY`.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from integration.browser.cases import CASES, Case

ROOT = Path(__file__).parents[2]
CACHE = ROOT / ".cache" / "browser"
# What people see does not change what was measured.
_NOT_MEASURING = {"report", "pages", "ratingplate", "compare", "cli", "verify", "tests", "__pycache__"}


def evidence(say: Callable[[str], object] = lambda _: None) -> Path:
    """Return the directory of all evidence, made by this tree's code; make what is missing of it."""
    out = CACHE / f"evidence-{_digest()}"
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "lock").open("w") as lock:
        # Whoever comes second waits, and finds it made.
        fcntl.flock(lock, fcntl.LOCK_EX)
        for stale in CACHE.glob("evidence-*"):
            if stale != out:
                shutil.rmtree(stale, ignore_errors=True)
        make(out, CASES, say)
    return out


def make(out: Path, cases: tuple[Case, ...], say: Callable[[str], object] = lambda _: None) -> None:
    """Make cases under a directory, as many at a time as there are processors; RuntimeError where one goes wrong."""
    wanted = [case for case in cases if not _is_made(out, case)]
    wrong: list[str] = []

    def one(case: Case) -> None:
        began = time.monotonic()
        fault = _make(out, case)
        say(f"{time.monotonic() - began:6.1f} s  {case.path}")
        if fault:
            wrong.append(fault)

    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        list(pool.map(one, wanted))
    if wrong:
        raise RuntimeError("\n".join(wrong))


def _make(out: Path, case: Case) -> str | None:
    """Make one case, in its place only when it is whole; return what went wrong."""
    place, note, rough = out / case.path, _note(out, case), out / ".rough" / case.path
    shutil.rmtree(place, ignore_errors=True)
    shutil.rmtree(rough, ignore_errors=True)
    rough.mkdir(parents=True)
    command = list(case.command)
    if case.write is not None:
        file = rough / "given.json"
        case.write(file)
        command = [str(file) if word == "FILE" else word for word in command]
    # Only simulated measurements report progress.
    quiet = [] if command[0] == "import" else ["--quiet-terminal"]
    words = [sys.executable, "-m", "integration.browser.staged", *case.stage, *command, *quiet]
    done = subprocess.run(
        [*words, "--out", str(rough / "made")], capture_output=True, text=True, cwd=rough, env=_environment()
    )
    if done.returncode != case.code:
        said = done.stdout[-1500:] + done.stderr[-1500:]
        return f"{case.path}: exit code {done.returncode}, not {case.code}:\n{said}"
    place.parent.mkdir(parents=True, exist_ok=True)
    (rough / "made").rename(place)
    shutil.rmtree(rough)
    note.parent.mkdir(parents=True, exist_ok=True)
    note.write_text(_words(case))
    return None


def _is_made(out: Path, case: Case) -> bool:
    note = _note(out, case)
    return (out / case.path).is_dir() and note.exists() and note.read_text() == _words(case)


def _note(out: Path, case: Case) -> Path:
    return out / ".made" / case.path


def _words(case: Case) -> str:
    return repr((case.stage, case.command))


def _environment() -> dict[str, str]:
    path = os.pathsep.join((str(ROOT / "src"), str(ROOT)))
    return {**os.environ, "PYTHONPATH": path, "COLUMNS": "120"}


def _digest() -> str:
    """Return what stands for the code that measures."""
    digest = hashlib.sha256(Path(__file__).with_name("staged.py").read_bytes())
    source = ROOT / "src" / "nameplate"
    for path in sorted(source.rglob("*.py")):
        inner = path.relative_to(source)
        if not _NOT_MEASURING & set(inner.parts):
            digest.update(f"{inner}\0".encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def main() -> int:
    """Make what is asked for, and say how long each took."""
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        print(__doc__)
        return 2
    prefixes = tuple(sys.argv[2:])
    cases = tuple(case for case in CASES if not prefixes or case.path.startswith(prefixes))
    make(Path(sys.argv[1]), cases, lambda line: print(line, flush=True))
    return 0


if __name__ == "__main__":
    sys.exit(main())
