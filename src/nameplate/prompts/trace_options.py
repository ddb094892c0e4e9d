"""What a caller says of a recorded trace: its form, its unit of time, which part of it is wanted, and how fast."""

from __future__ import annotations

from fractions import Fraction
from math import isfinite
from pathlib import Path
from typing import Final, Literal

from msgspec import Struct

from nameplate.contract.errors import CallerError

TraceFormat = Literal["jsonl", "mooncake", "burstgpt"]
TimeUnit = Literal["s", "ms", "us", "ns"]

UNIT_NS: Final[dict[TimeUnit, int]] = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}

PUBLISHED_UNIT: Final[dict[TraceFormat, str]] = {
    "mooncake": " The published Mooncake traces are in ms.",
    "burstgpt": " The published BurstGPT traces are in s.",
}
"""What the publishers say, for a hint only: a file that borrows the form may have another unit. Mooncake:
"relative arrival times of requests, ranging from 0 to 3,600,000, in milliseconds" (R. Qin et al., technical report,
section 4.1). BurstGPT: "request submission time, seconds from 0:00:00 on the first day" (schema in the README
of HPMLL/BurstGPT)."""

PUBLISHED_BLOCK_TOKENS: Final[dict[TraceFormat, int]] = {"mooncake": 512}
"""Mooncake, same section: ids come from "hashing token blocks (with a block size of 512) into prefix hash values"."""

MAXIMUM_BLOCK_TOKENS: Final = 1 << 20


class TraceError(CallerError):
    """One line of a trace cannot be used; `line` counts from 1, `field` is the name that stands in the file."""

    def __init__(self, path: Path, line: int, field: str, what: str, *, hint: str = "") -> None:
        where = f'{path}, line {line}, "{field}"' if field else f"{path}, line {line}"
        super().__init__(f"{where}: {what}.", hint=hint)
        self.line = line
        self.field = field


class TraceOptions(Struct, frozen=True, kw_only=True):
    """Say how a file is to be read and which of its requests are to be repeated.

    `time_unit` is needed wherever the file does not tell it itself, as only a header of `jsonl` can. `block_tokens` is
    needed for `jsonl` without a header; for Mooncake it overrides what the publishers say. `from_ns` and `to_ns` are
    a window, `to` excluded, in the file's own time, as it is written there (but in ns). Requests of it are repeated
    `speed_up` times faster than they were recorded; lengths stay. `classes`, where given, are the only ones that are
    kept; `longest_tokens` leaves out what is longer, input and output together, than the server's context.
    """

    format: TraceFormat
    time_unit: TimeUnit | None = None
    block_tokens: int | None = None
    speed_up: float = 1.0
    from_ns: int | None = None
    to_ns: int | None = None
    classes: tuple[str, ...] = ()
    longest_tokens: int | None = None

    def __post_init__(self) -> None:
        if not isfinite(self.speed_up) or not 1e-6 <= self.speed_up <= 1e6:
            raise CallerError(
                f"A trace cannot be repeated {self.speed_up:g} times faster.",
                hint="The factor is from 0.000001 to 1000000: 2 halves all gaps, 0.5 doubles them.",
            )
        if self.from_ns is not None and self.to_ns is not None and self.to_ns <= self.from_ns:
            raise CallerError(
                f"The trace's window ends at {self.to_ns} ns, before it begins at {self.from_ns} ns."
            )
        if self.block_tokens is not None and not 1 <= self.block_tokens <= MAXIMUM_BLOCK_TOKENS:
            raise CallerError(f"{self.block_tokens} tokens are not the size of a block.")

    @property
    def speed(self) -> Fraction:
        """Return the factor as the decimal number that it is written as."""
        return Fraction(repr(self.speed_up))


class TraceCounts(Struct, frozen=True, kw_only=True):
    """Tell what a file held and what was left out, and why; every request of the file is in exactly one of these.

    `no_output` are requests that failed when they were recorded (BurstGPT: "some failure that `Response tokens` are
    0s") or have no output to ask for. `reordered` of the kept ones stood behind a later one. `odd_totals` have a total
    that is not the sum of their parts. Times are the file's own; None where it has no request.
    """

    read: int
    kept: int
    before_window: int
    after_window: int
    no_input: int
    no_output: int
    other_class: int
    too_long: int
    reordered: int
    odd_totals: int
    first_ns: int | None
    last_ns: int | None

    def said(self) -> str:
        """Say in one sentence what was left out."""
        reasons = (
            (self.before_window, "before the window"),
            (self.after_window, "after it"),
            (self.no_input, "without input"),
            (self.no_output, "without output (failed when recorded)"),
            (self.other_class, "of another class"),
            (self.too_long, "too long"),
        )
        left = ", ".join(f"{count} {reason}" for count, reason in reasons if count)
        return f"{self.kept} of {self.read} requests kept" + (f"; left out: {left}." if left else ".")
