"""One request in flight: what is known of it until its row is written."""

from __future__ import annotations

from nameplate.contract.target import Api
from nameplate.evidence.rows import RequestRow
from nameplate.evidence.timeline import Timeline
from nameplate.schedule.stage import Phase
from nameplate.wire.http import ResponseReader
from nameplate.wire.tally import Tally


class Flight:
    """Hold one request's state; mutable, private to the load that owns it. Times are monotonic nanoseconds."""

    __slots__ = (
        "asked_output_tokens",
        "body_sent_ns",
        "class_name",
        "connect_ns",
        "detail",
        "ended",
        "head_sha256",
        "idle_ns",
        "index",
        "keep",
        "last_byte_ns",
        "phase",
        "prompt",
        "prompt_sha256",
        "reader",
        "scheduled_ns",
        "sent_ns",
        "slot",
        "tally",
        "told_first_output",
        "unparsed",
    )

    def __init__(
        self,
        index: int,
        phase: Phase,
        slot: int | None,
        scheduled_ns: int,
        api: Api,
        keep: bool,
        prompt: int | None = None,
    ) -> None:
        self.index = index
        self.prompt = index if prompt is None else prompt
        self.phase: Phase = phase
        self.slot = slot
        self.scheduled_ns = scheduled_ns
        self.keep = keep
        self.class_name = ""
        self.asked_output_tokens = 0
        self.prompt_sha256 = ""
        self.head_sha256 = ""
        self.sent_ns: int | None = None
        self.body_sent_ns: int | None = None
        self.last_byte_ns: int | None = None
        self.connect_ns: int | None = None
        self.idle_ns: int | None = None
        self.ended = False
        self.detail = ""
        self.told_first_output = False
        self.unparsed = 0
        self.reader = ResponseReader()
        self.tally = Tally(api, streaming=True, keep_gaps=True)

    def row(self, worker: int) -> RequestRow:
        """Build the row of an ended request."""
        return RequestRow(
            index=self.index,
            phase=self.phase,
            class_=self.class_name,
            slot=self.slot,
            scheduled_ns=self.scheduled_ns,
            sent_ns=self.sent_ns,
            body_sent_ns=self.body_sent_ns,
            asked_output_tokens=self.asked_output_tokens,
            prompt_sha256=self.prompt_sha256,
            prompt_head_sha256=self.head_sha256,
            connect_ns=self.connect_ns,
            idle_ns=self.idle_ns,
            worker=worker,
        ).told(self.tally)

    def timeline(self) -> Timeline:
        """Return when each output event came, with its tokens where the server counted every one."""
        times, tokens = self.tally.output_times_ns, self.tally.output_event_tokens
        assert times is not None and tokens is not None
        return Timeline.of(self.index, times, tokens)
