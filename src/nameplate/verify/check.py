"""What verification reports: one line a check, and what was counted."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from nameplate.contract.errors import EvidenceError
from nameplate.verdict.trial import TrialStatus
from nameplate.verify.names import MEANING, Group, Name, group_of

Status = Literal["pass", "fail", "unverified", "invalid"]

EXIT_FAILED = EvidenceError.exit_code
EXIT_UNVERIFIED = 3


class Check(Struct, frozen=True, kw_only=True):
    """Hold one check's result.

    `pass`: it holds. `fail`: the evidence contradicts itself or is damaged. `unverified`: what it needs was not kept.
    `invalid`: it does not hold, and the trial says so itself: it was judged invalid for that reason. A gate passes when
    it recomputes to what was recorded, whatever that is; `says` is what the gate itself came to. `counted` is how many
    things were looked at.
    """

    name: Name
    status: Status
    detail: str
    counted: int = 0
    says: str | None = None

    @property
    def group(self) -> Group:
        return group_of(self.name)

    @property
    def meaning(self) -> str:
        return MEANING[self.name]


class Counts(Struct, frozen=True, kw_only=True):
    """Hold what was counted in the evidence itself; bytes are UTF-8 bytes of output text."""

    requests: int = 0
    records: int = 0
    raw_bytes: int = 0
    streams: int = 0
    output_events: int = 0
    output_tokens: int = 0
    output_bytes: int = 0
    unique_outputs: int = 0
    unique_prompts: int = 0

    def __add__(self, other: Counts) -> Counts:
        """Add up two trials' counts; prompts and outputs that both have are counted in each."""
        return Counts(**{name: getattr(self, name) + getattr(other, name) for name in self.__struct_fields__})


class Report(Struct, frozen=True, kw_only=True):
    """Hold the verification of one trial, or of a study with its trials.

    `verdict` is what the evidence recomputes to, null where it cannot be recomputed.
    """

    directory: str
    kind: Literal["trial", "study", "segment", "soak"]
    checks: tuple[Check, ...]
    counts: Counts
    verdict: TrialStatus | str | None = None
    trials: tuple[Report, ...] = ()

    def check(self, name: Name | str) -> Check:
        """Return one check; KeyError where this report has none of that name."""
        for check in self.checks:
            if check.name == name:
                return check
        raise KeyError(name)

    def all_checks(self) -> tuple[Check, ...]:
        """Return the study's own checks and those of its trials."""
        return self.checks + tuple(check for trial in self.trials for check in trial.all_checks())

    @property
    def exit_code(self) -> int:
        """Return 4 where a check fails, else 3 where one is unverified, else 0."""
        statuses = {check.status for check in self.all_checks()}
        if "fail" in statuses:
            return EXIT_FAILED
        return EXIT_UNVERIFIED if "unverified" in statuses else 0
