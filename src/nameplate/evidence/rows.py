"""One row a request: what `requests.jsonl` holds."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct, field, structs

from nameplate.schedule.stage import Phase
from nameplate.wire.loop import LEAST_CHARS, Loop
from nameplate.wire.tally import Tally


class RequestRow(Struct, frozen=True, kw_only=True):
    """Hold the facts of one request; times are monotonic nanoseconds, absent is None and never zero.

    `phase` is the phase in which the request was sent: `warmup` (serial, unmeasured), `ramp` (unmeasured load of
    a handover start), `opening` (the first measured request of a slot), `steady`, `arrival` (one that came beside
    held streams). `class_` names the workload
    class, the shape by default. `asked_output_tokens` is what the request asked for, and `output_tokens` what
    the server counted (`output_tokens_source` is `usage`) or the number of output events (`estimated`).
    `first_event_tokens` is how many tokens the first output event held, where the server counts them.
    `longest_channel_chars` are the characters of its longest channel (content, reasoning, tool call), and `loop` is
    the repetition that a channel ended in: `channel`, `period_chars`, and `length_chars`, the repeating end within
    the channel's last 131,072 characters. Without a loop, at least 4,096 characters say that the text did not loop,
    fewer that it is too short to judge, and no count that the row was written before loops were looked for.
    `connect_ns` is how long its connection took to open, `idle_ns` how long a reused connection had been idle.
    """

    index: int
    phase: Phase
    class_: str = field(name="class")
    slot: int | None
    scheduled_ns: int
    sent_ns: int | None = None
    body_sent_ns: int | None = None
    first_output_ns: int | None = None
    first_answer_ns: int | None = None
    second_output_ns: int | None = None
    last_output_ns: int | None = None
    finish_ns: int | None = None
    end_ns: int | None = None
    outcome: str = "unfinished"
    http_status: int | None = None
    finish_reason: str | None = None
    asked_output_tokens: int
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None
    output_tokens: int | None = None
    output_tokens_source: Literal["usage", "estimated"] | None = None
    output_events: int = 0
    first_event_tokens: int | None = None
    longest_gap_ns: int | None = None
    output_bytes: int = 0
    longest_channel_chars: int | None = None
    loop: Loop | None = None
    prompt_sha256: str
    prompt_head_sha256: str
    output_sha256: str | None = None
    error: str | None = None
    warnings: tuple[str, ...] = ()
    connect_ns: int | None = None
    idle_ns: int | None = None
    worker: int = 0

    def told(self, tally: Tally) -> RequestRow:
        """Return the row with everything that the response told, as its tally folded it."""
        return structs.replace(
            self,
            first_output_ns=tally.first_output_ns,
            first_answer_ns=tally.first_answer_ns,
            second_output_ns=tally.second_output_ns,
            last_output_ns=tally.last_output_ns,
            finish_ns=tally.finish_ns,
            end_ns=tally.end_ns,
            outcome=tally.outcome.value,
            http_status=tally.http_status,
            finish_reason=tally.finish_reason,
            prompt_tokens=tally.prompt_tokens,
            cached_tokens=tally.cached_tokens,
            reasoning_tokens=tally.reasoning_tokens,
            output_tokens=tally.output_tokens,
            output_tokens_source=tally.output_tokens_source,
            output_events=tally.output_events,
            first_event_tokens=tally.first_event_tokens,
            longest_gap_ns=tally.longest_gap_ns,
            output_bytes=tally.output_bytes,
            longest_channel_chars=tally.longest_channel_chars,
            loop=tally.loop,
            output_sha256=tally.output_sha256,
            error=tally.error,
            warnings=tuple(sorted(tally.warnings)),
        )

    @property
    def measured(self) -> bool:
        return self.phase in ("opening", "steady")

    @property
    def long_enough_to_loop(self) -> bool | None:
        """Tell whether its text is long enough to be judged; None where its length is not known."""
        return None if self.longest_channel_chars is None else self.longest_channel_chars >= LEAST_CHARS

    @property
    def ttft_ns(self) -> int | None:
        """Return first output - sent."""
        if self.first_output_ns is None or self.sent_ns is None:
            return None
        return self.first_output_ns - self.sent_ns

    @property
    def e2e_ns(self) -> int | None:
        """Return last output - sent."""
        if self.last_output_ns is None or self.sent_ns is None:
            return None
        return self.last_output_ns - self.sent_ns

    @property
    def itl_ns(self) -> float | None:
        """Return (last output - first output) / (output tokens - tokens of the first event), one value a request.

        Where the server does not tell what the first event held, one token is assumed. None below two tokens.
        """
        if self.first_output_ns is None or self.last_output_ns is None or self.output_tokens is None:
            return None
        later = self.output_tokens - (self.first_event_tokens or 1)
        return (self.last_output_ns - self.first_output_ns) / later if later > 0 else None

    @property
    def tpot_ns(self) -> float | None:
        """Return (E2E - TTFT) / (output tokens - 1), the common definition."""
        if self.first_output_ns is None or self.last_output_ns is None or self.output_tokens is None:
            return None
        return (
            (self.last_output_ns - self.first_output_ns) / (self.output_tokens - 1)
            if self.output_tokens > 1
            else None
        )
