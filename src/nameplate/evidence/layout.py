"""The trial directory: the specification of its files.

A trial is a directory that can be read without this program. Files are only appended to; `manifest.json` comes
last, and a directory without it is an unfinished trial.

========================  =====================================================================================
`trial.json`              the header (`header.TrialHeader`), written before the first request
`journal.jsonl`           what happened when (`journal.JournalEntry`), a JSON object a line
`requests.jsonl`          one row a request (`rows.RequestRow`), written when the request ends
`reads.zst`               the wire's history: independent zstd frames of packed records (`records`)
`events.zst`              output events of each ended request: their times and counted tokens (`timeline`)
`prompts.zst`             request bodies as sent (`nameplate.prompts.store`)
`server.jsonl`            the server's own state over time, one sample a line; a failed scrape is a row too
`client.jsonl`            the client's own state over time (`client_sample.ClientSample`), of a soak
`trace.jsonl`             the requests of a recorded trace as they are repeated, named by digest in `trial.json`;
                          it is a trace of the form `jsonl` itself (`nameplate.prompts.trace_lines`)
`gpu.jsonl`               the GPUs of the server's host over time, where they could be read
`result.json`             measurement, verdict with reasons, identity after
`manifest.json`           SHA-256 and size of every other file, written last
========================  =====================================================================================

All times are integer nanoseconds of one monotonic clock (`trial.json` holds a pair of monotonic and wall time).
JSON is UTF-8; lines end with LF; a last line without LF, or a last zstd frame that does not decode, is a torn
tail: it is dropped, and said.

Version history: 1 - first.
"""

from __future__ import annotations

from pathlib import Path

FORMAT_VERSION = 1

HEADER = "trial.json"
JOURNAL = "journal.jsonl"
REQUESTS = "requests.jsonl"
READS = "reads.zst"
EVENTS = "events.zst"
PROMPTS = "prompts.zst"
SERVER = "server.jsonl"
CLIENT = "client.jsonl"
GPU = "gpu.jsonl"
TRACE = "trace.jsonl"
RESULT = "result.json"
MANIFEST = "manifest.json"

# A study's directory (`nameplate.studies.archive`) holds these beside a journal and a manifest of its own.
CONTRACT = "contract.json"
STUDY = "study.json"
SOAK = "soak.json"
PLATE = "plate.json"
# Drawn from the above at any time (`nameplate.ratingplate`), so they are evidence of nothing and in no manifest.
PLATE_SVG, PLATE_PNG, PLATE_MARKDOWN, PLATE_TEXT = "plate.svg", "plate.png", "plate.md", "plate.txt"
DRAWN = (PLATE_SVG, PLATE_PNG, PLATE_MARKDOWN, PLATE_TEXT)
TRIALS = "trials"

# All that belongs to a trial beside its manifest.
SEALED = (HEADER, JOURNAL, REQUESTS, READS, EVENTS, PROMPTS, SERVER, CLIENT, GPU, TRACE, RESULT)


def parts(directory: Path, name: str) -> list[Path]:
    """List the files that are read as the file `name`: itself, and one a worker with a number as suffix."""
    numbered = [path for path in directory.glob(name + ".*") if path.suffix[1:].isdecimal()]
    whole = directory / name
    return ([whole] if whole.exists() else []) + sorted(numbered, key=lambda path: int(path.suffix[1:]))


def trials(directory: Path) -> list[Path]:
    """List the directories of a study's trials that began, by name."""
    return sorted(path.parent for path in (directory / TRIALS).glob(f"*/{HEADER}"))
