"""Which evidence there is: one command a case, in simulated time, and what it must end with."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from integration.browser.staged import BACKWARDS, CLOSING, HOSTILE, IMAGE, MODEL, SCRIPT, TEMPLATE

EXCHANGE = Path(__file__).parents[2] / "src" / "nameplate" / "exchange"
GOLDEN = EXCHANGE / "peers" / "tests" / "golden"
MATRIX = EXCHANGE / "inference_bench" / "tests" / "published.json"


class Case(Struct, frozen=True):
    """Name one directory of evidence, the command that makes it (without --out), and its exit code.

    `stage` are the words for `staged` before the command. `write` makes the file that stands for FILE in the command.
    """

    path: str
    command: tuple[str, ...]
    code: int = 0
    stage: tuple[str, ...] = ()
    write: Callable[[Path], object] | None = None


TTFT = ("--slo", "ttft p95 < 250ms")
SHAPE = ("--shape", "512/64")
DEMO = ("sim:demo", *SHAPE)
# A request every five seconds: hours are hundreds of requests, which simulate in seconds.
CALM = ("soak", "sim:demo", "--shape", "256/32", "--rate", "0.2", "--arrivals", "constant")


def _capacity(name: str, *words: str, code: int = 0, stage: tuple[str, ...] = ()) -> Case:
    return Case(f"capacity/{name}", ("capacity", *words), code, stage)


CAPACITY = (
    _capacity("confirmed", *DEMO, "--shape", "256/32", "--shape", "512/32", *TTFT, "--slo", "e2e p95 < 5s"),
    _capacity("zero", *DEMO, "--slo", "ttft p95 < 10ms", code=1),
    # Of the trials at C=9 one has a p95 of 236.2 ms and two have less.
    _capacity("noisy", *DEMO, "--slo", "ttft p95 < 235.7ms", "--guess", "9", code=3),
    _capacity("open-above", *DEMO, *TTFT, "--max", "4", code=3),
    _capacity("open-below", *DEMO, *TTFT, "--min", "12", "--max", "16", code=3),
    _capacity("budget", *DEMO, *TTFT, "--max-trials", "5", code=3),
    # Some statuses beside each other.
    _capacity("mixed", *DEMO, "--shape", "1k/32", "--shape", "128/16", *TTFT, "--max", "10", code=3),
    _capacity("interrupted", *DEMO, "--shape", "256/32", *TTFT, code=130, stage=("--interrupt-trial", "9")),
    _capacity("lost", *DEMO, *TTFT, "--fault", "die:8@300", code=5),
    _capacity("invalid", *DEMO, *TTFT, "--fault", "phantom:3@150", code=4),
    _capacity("certified", *DEMO, *TTFT, "--confidence", "95%", "--guess", "9"),
    _capacity("warm", *DEMO, *TTFT, "--cache", "warm:256", "--guess", "12"),
)  # fmt: skip

RATE = (
    Case("rate/confirmed", ("rate", *DEMO, "--slo", "ttft p95 < 1s", "--requests", "300", "--resolution", "15%")),
    Case("rate/noisy", ("rate", *DEMO, "--slo", "ttft p95 < 1s", "--requests", "400", "--resolution", "15%"), 3),
    Case("rate/open-above", ("rate", *DEMO, *TTFT, "--max", "4", "--requests", "200", "--resolution", "25%"), 3),
)  # fmt: skip

CURVE = (
    Case("curve/concurrency", ("curve", *DEMO, "-c", "1,2,4,8,16,32,64")),
    Case("curve/rate", ("curve", *DEMO, "--rate", "1,4,8,16,32")),
    Case("curve/input", ("curve", "sim:h200", "--input", "8k,32k,128k,limit")),
    Case("curve/repeated", ("curve", "sim:demo", "--shape", "256/32", "-c", "1,4,16", "--repeat", "3")),
)  # fmt: skip

SPEED = (
    Case("speed/quick", ("speed", "sim:h200", "--quick", "--launch-command",
                         "vllm serve model --api-key sk-1234567890abcdef", "--fact", "hardware=1 x H200 NVL")),
    Case("speed/phases", ("speed", "sim:matrix", "--contexts", "1k,4k", "-c", "1,2,4,8", "--window", "5s", "--burst",
                          "--mixed", "--mixed-arrival", "8k", "--mixed-streams", "4", "--mixed-shape", "512/2k")),
    Case("speed/over-capacity", ("speed", "sim:matrix-small-kv", "--contexts", "8k,16k,40k", "-c", "1,8,32", "--window",
                                 "5s"), 0),
    Case("speed/looped", ("speed", "sim:matrix-loop-few", "--contexts", "1k", "-c", "4,16,32", "--window", "25s"), 0),
    Case("speed/not-ready", ("speed", "sim:matrix-slow-ramp", "--contexts", "1k", "-c", "1,2,8", "--window", "3s",
                             "--ready-timeout", "4s"), 0),
    Case("speed/preempted", ("speed", "sim:matrix-preempt", "--contexts", "8k", "-c", "1,16", "--window", "20s"), 0),
    Case("speed/traffic", ("speed", "sim:matrix-traffic", "--no-prefill", "--contexts", "1k", "-c", "8", "--window",
                           "20s"), 4),
    Case("speed/skipped", ("speed", "sim:matrix", "--no-prefill", "--contexts", "1k", "-c", "1,2,4,8", "--time-budget",
                           "60s"), 0),
)  # fmt: skip

SOAK = (
    Case("soak/steady", (*CALM, "--duration", "60m", "--slo", "ttft p95 < 1s", "--max-error-rate", "1%")),
    Case("soak/outage", (*CALM, "--duration", "40m", "--fault", "restart:90@200", "--max-error-rate", "50%")),
    Case("soak/drifting", (*CALM, "--duration", "60m", "--fault", "slowing:3", "--max-drift", "20%"), 1),
    Case("soak/collapsed", (*CALM, "--duration", "30m", "--fault", "restart:7200@200"), 5),
    Case("soak/left", ("soak", "sim:demo", "--shape", "1024/2048", "-c", "38", "--duration", "4s", "--drain", "1s"), 3),
)  # fmt: skip

FAILURES = (
    "503@every 11", "429@every 13", "cut:5@every 17", "error_event@every 19", "stall:3@every 23", "early_stop@every 29",
    "slow_headers:1@every 31", "wrong_usage@every 37", "no_usage@every 41",
)  # fmt: skip

_TRACE = (
    *(
        {"time": 400 * n, "input_tokens": 200 + 40 * (n % 7), "output_tokens": 8 + n % 24,
         "class": ("chat", "rag")[n % 2], "prefix": ["sys", str(n % 5)]}
        for n in range(90)
    ),
)  # fmt: skip


def _write_trace(path: Path, classes: tuple[str, str] = ("chat", "rag")) -> None:
    named = dict(zip(("chat", "rag"), classes, strict=True))
    rows = [{**row, "class": named[str(row["class"])]} for row in _TRACE]
    head = {"nameplate_trace": 1, "time_unit": "ms", "block_tokens": 64}
    path.write_text("".join(json.dumps(line) + "\n" for line in (head, *rows)))


REPEAT = ("--trace", "FILE", "--trace-format", "jsonl")

TRIAL = (
    Case("trial/closed", ("trial", *DEMO, "-c", "8", "--requests", "128", *TTFT)),
    Case("trial/open", ("trial", *DEMO, "--rate", "8", "--requests", "240", *TTFT)),
    Case("trial/ramp", ("trial", *DEMO, "--ramp", "1:30:60s", *TTFT), 1),
    Case("trial/steps", ("trial", *DEMO, "--steps", "2x20s,20x10s,0x10s,2x20s")),
    Case("trial/trace", ("trial", "sim:demo", *REPEAT), write=_write_trace),
    Case("trial/overload", ("trial", *DEMO, "-c", "48", "--requests", "192", *TTFT), 1),
    Case("trial/failing", ("trial", *DEMO, "-c", "8", "--requests", "160", "--warmup", "0", *TTFT,
                           "--deadline", "silence=5s", *(word for text in FAILURES for word in ("--fault", text))), 4),
    Case("trial/invalid", ("trial", *DEMO, "-c", "4", "--requests", "64", *TTFT, "--fault", "early_stop:4@every 2"), 4),
    Case("trial/no-raw", ("trial", *DEMO, "-c", "4", "--requests", "64", "--no-raw", "--no-prompts")),
    Case("trial/interrupted", ("trial", *DEMO, "-c", "8", "--requests", "400"), 130, ("--interrupt-report", "20")),
)  # fmt: skip


def _copy(source: Path, model: str | None = None) -> Callable[[Path], object]:
    """Return what writes a result file of another tool, with another name for its model if one is given."""

    def write(path: Path) -> None:
        text = source.read_text()
        if model is not None:
            written = json.dumps(model)
            text = text.replace('"made/model-1b"', written).replace('"model": "model"', f'"model": {written}')
        path.write_text(text)

    return write


def _imported(name: str, source: Path, *words: str, code: int = 0) -> Case:
    return Case(f"import/{name}", ("import", "FILE", *words), code, write=_copy(source))


IMPORT = (
    _imported("aiperf-raw", GOLDEN / "aiperf_raw.jsonl", "--slo", "ttft p95 < 1s", code=1),
    _imported("aiperf-records", GOLDEN / "aiperf_records.jsonl"),
    _imported("aiperf-summary", GOLDEN / "aiperf_summary.json"),
    _imported("guidellm", GOLDEN / "guidellm.json"),
    _imported("vllm", GOLDEN / "vllm_detailed.json"),
    _imported("sglang", GOLDEN / "sglang.jsonl"),
    _imported("inference-bench", MATRIX),
)

NOTES = (
    "--note", " ".join(HOSTILE), "--launch-command", f"serve {SCRIPT} {IMAGE}", "--fact", f"hardware={CLOSING}",
    "--fact", f"quantisation={IMAGE}{TEMPLATE}",
)  # fmt: skip
FACTS = NOTES[4:]
AT_HOSTILE = ("sim:hostile", *SHAPE)

HOSTILE_CASES = (
    Case("hostile/capacity", ("capacity", *AT_HOSTILE, *TTFT, "--guess", "9", *FACTS)),
    Case("hostile/speed", ("speed", "sim:hostile", "--contexts", "1k", "-c", "1,2", "--window", "3s", *NOTES)),
    Case("hostile/trial", ("trial", *AT_HOSTILE, "-c", "4", "--requests", "64", "--warmup", "0", *FACTS,
                           "--fault", "error_event@every 11", *TTFT), 1),
    Case("hostile/trace", ("trial", "sim:hostile", *REPEAT),
         write=lambda path: _write_trace(path, (SCRIPT, BACKWARDS))),
    Case("hostile/curve", ("curve", *AT_HOSTILE, "-c", "1,4", *FACTS)),
    Case("hostile/soak", ("soak", *AT_HOSTILE, "--rate", "1", "--duration", "3m", *FACTS, "--fault",
                          "error_event@every 11"), 1),
    Case("hostile/import", ("import", "FILE"), write=_copy(GOLDEN / "vllm_detailed.json", MODEL)),
    Case("hostile/import-guidellm", ("import", "FILE"), write=_copy(GOLDEN / "guidellm.json", MODEL)),
    Case("hostile/import-matrix", ("import", "FILE"), write=_copy(MATRIX, MODEL)),
)  # fmt: skip

EMPTY = (
    Case("empty/capacity", ("capacity", *DEMO, *TTFT), 130, ("--interrupt-trial", "1")),
    Case("empty/rate", ("rate", *DEMO, *TTFT), 130, ("--interrupt-trial", "1")),
    Case("empty/curve", ("curve", *DEMO, "-c", "1,4"), 130, ("--interrupt-trial", "1")),
    Case("empty/speed", ("speed", "sim:matrix", "--time-budget", "1s", "--contexts", "1k", "-c", "1,2"), 3),
    Case("empty/trial", ("trial", *DEMO, "-c", "4"), 130, ("--interrupt-report", "3")),
    Case("empty/soak", (*CALM, "--duration", "10m"), 130, ("--interrupt-report", "3")),
)  # fmt: skip

HUGE = (
    # Six shapes of a dozen trials each, of a hundred requests each.
    Case("huge/capacity", ("capacity", "sim:demo", *TTFT, "--requests", "100", "--guess", "9",
                           *(word for i in ("256", "512", "1024") for o in ("32", "64") for word in
                             ("--shape", f"{i}/{o}")))),
    Case("huge/trial", ("trial", "sim:demo", "--shape", "256/32", "-c", "16", "--requests", "5000")),
    Case("huge/soak", (*CALM, "--duration", "2h")),
)  # fmt: skip

CASES = (
    *CAPACITY, *RATE, *CURVE, *SPEED, *SOAK, *TRIAL, *IMPORT, *HOSTILE_CASES, *EMPTY, *HUGE,
)  # fmt: skip
