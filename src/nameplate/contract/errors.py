"""The error tree: whose fault it is decides the exit code."""

from __future__ import annotations

from typing import ClassVar


class NameplateError(Exception):
    """Say what happened, why it matters and what to try; the subclass says whose fault it is.

    `what`, `why` and `hint` are sentences for people. `exit_code` is the process's exit status.
    """

    exit_code: ClassVar[int] = 1
    fault: ClassVar[str] = "unknown"

    def __init__(self, what: str, *, why: str = "", hint: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.why = why
        self.hint = hint

    def __str__(self) -> str:
        return " ".join(part for part in (self.what, self.why, self.hint) if part)


class CallerError(NameplateError):
    """The request itself is wrong: an option, a file, a contract that cannot be met."""

    exit_code = 2
    fault = "the request"


class EvidenceError(NameplateError):
    """What is on disk is damaged, incomplete or contradicts itself."""

    exit_code = 4
    fault = "the evidence"


class ClientError(NameplateError):
    """This machine could not carry the load as planned: descriptors, disk, memory, lateness."""

    exit_code = 4
    fault = "this machine"


class ServerError(NameplateError):
    """The server under test cannot be measured: down, wrong model, refuses, or speaks something else."""

    exit_code = 5
    fault = "the server"


class PromptRefused(ServerError):  # noqa: N818 - it is an outcome, not a fault
    """The server is well, and takes no prompt of this length: one cell of a matrix cannot be measured."""


class Interrupted(NameplateError):  # noqa: N818 - it is an outcome, not a fault
    """A person stopped the work; everything so far is on disk."""

    exit_code = 130
    fault = "nobody"
