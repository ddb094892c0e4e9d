"""What leaves the process: one JSON document on standard output, words for people on standard error."""

from __future__ import annotations

import sys

import msgspec

from nameplate.contract.errors import NameplateError


def print_json(value: object) -> None:
    """Print one JSON document to standard output."""
    sys.stdout.buffer.write(msgspec.json.format(msgspec.json.encode(value)) + b"\n")
    sys.stdout.buffer.flush()


def print_error(error: NameplateError, as_json: bool) -> None:
    """Say what happened, why it matters and what to try; with `--json` as a document, too."""
    from nameplate.report.console import people
    from nameplate.report.error import error_paragraph

    people().print(error_paragraph(error))
    if as_json:
        print_json(
            {
                "error": {
                    "what": error.what,
                    "why": error.why,
                    "hint": error.hint,
                    "fault": error.fault,
                    "exit_code": error.exit_code,
                }
            }
        )
