"""Send one small request that is not measured, and read from its answer all that it tells."""

from __future__ import annotations

from msgspec import Struct

from nameplate.contract.target import Api
from nameplate.engines.failures import FailureKind, TransportError
from nameplate.engines.transport import Reply, Transport
from nameplate.wire.body import BodyDecoder
from nameplate.wire.events import Output, Usage
from nameplate.wire.outcome import Ending, Outcome
from nameplate.wire.tally import Tally

# A probe's answer has a few tokens; a server that cannot start it in this time cannot be measured by trials either.
TIMEOUT_S = 600.0
_TEXT_LIMIT = 4096

_ENDINGS: dict[FailureKind, Ending] = {
    "timeout": Ending.deadline_total,
    "reset": Ending.reset,
    "not_http": Ending.malformed,
    "too_large": Ending.malformed,
}


class Asked(Struct, frozen=True):
    """Hold one answer. Counts are the server's own; None is absent, which is not zero.

    `status` is None where no answer came, and `error` then says why. `streamed`: the answer came as events.
    `counts_along`: its chunks carried running token counts. `first_event_tokens`: tokens of the first event, where
    they did. `text` is bounded.
    """

    outcome: Outcome
    status: int | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    finish_reason: str | None = None
    text: str = ""
    streamed: bool = False
    has_usage: bool = False
    counts_along: bool = False
    output_events: int = 0
    first_event_tokens: int | None = None
    warnings: tuple[str, ...] = ()
    error: str | None = None

    @property
    def ok(self) -> bool:
        return self.outcome is Outcome.ok


def ask(
    transport: Transport, body: bytes, path: str, *, streaming: bool = True, timeout_s: float = TIMEOUT_S
) -> Asked:
    """Post one body and return what came back; it never raises for what a server does."""
    api: Api = "chat" if path.endswith("/chat/completions") else "completions"
    tally = Tally(api, streaming)
    try:
        reply = transport.fetch("POST", path, body, timeout_s=timeout_s)
    except TransportError as error:
        ending = _ENDINGS.get(error.kind, Ending.connect_failed)
        return Asked(tally.end(0, ending, error.what), error=error.what)
    kind, encoding = reply.header("content-type"), reply.header("content-encoding")
    tally.headers(reply.status, kind, encoding)
    # The whole body came at once: there are no times in an answer that is not measured.
    tally.body(0, reply.body)
    outcome = tally.end(0, Ending.complete)
    text, has_usage, counts_along, streamed = _read(reply, api)
    return Asked(
        outcome,
        reply.status,
        tally.prompt_tokens,
        tally.completion_tokens,
        tally.cached_tokens,
        tally.finish_reason,
        text,
        streamed,
        has_usage,
        counts_along,
        tally.output_events,
        tally.first_event_tokens,
        tuple(sorted(tally.warnings)),
        tally.error,
    )


def _read(reply: Reply, api: Api) -> tuple[str, bool, bool, bool]:
    decoder = BodyDecoder(reply.header("content-type"), reply.header("content-encoding"), api)
    events = [*decoder.feed(reply.body), *decoder.finish()]
    outputs = [event for event in events if isinstance(event, Output)]
    text = "".join(output.text for output in outputs)[:_TEXT_LIMIT]
    has_usage = any(isinstance(event, Usage) and event.completion_tokens is not None for event in events)
    streamed = decoder.kind == "sse"
    counted = streamed and any(output.tokens is not None for output in outputs)
    return text, has_usage, counted, streamed
