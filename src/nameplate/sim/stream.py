"""One request's answer on its way: engine emissions in, response bytes out, its faults applied."""

import msgspec

from nameplate.sim.faults import FaultName, FaultPlan
from nameplate.sim.http import LAST_CHUNK, End, error_body, response, stream_head
from nameplate.sim.replies import DONE, Renderer, Usage, error_event
from nameplate.sim.sequence import Emission
from nameplate.sim.tokens import Answer

_BREAKING: tuple[FaultName, ...] = ("die", "cut", "stall", "error_event")
_FAILURE = "EngineCore encountered an issue. See stack trace (above) for the root cause."


class ServedRequest(msgspec.Struct, gc=False):
    """Record one generation request for the truth log; `number` counts them from 0.

    `finish` is the finish reason, "cancelled", or the name of the fault that ended the request.
    """

    number: int
    connection: int
    received_ns: int
    prompt_tokens: int
    output_tokens: int = 0
    cached_tokens: int = 0
    finish: str | None = None


class Reply:
    """Write the answer to one request, streamed or whole."""

    def __init__(
        self,
        served: ServedRequest,
        renderer: Renderer,
        answer: Answer,
        faults: FaultPlan,
        *,
        streaming: bool,
        include_usage: bool,
        keep_alive: bool,
    ) -> None:
        self.served = served
        self.streaming = streaming
        self.not_before_ns = served.received_ns
        self._renderer = renderer
        self._answer = answer
        self._usage = Usage(served.prompt_tokens)
        self._include_usage = include_usage
        self._keep_alive = keep_alive
        self._texts: list[str] = []
        self._stalled = False
        number = served.number
        self._break: tuple[FaultName, float] | None = None
        for name in _BREAKING:
            after = faults.of(name, number)
            if after is not None:
                self._break = (name, after)
                break
        self._excess = int(faults.of("wrong_usage", number) or 0)
        self._tell_cached = faults.of("no_cached", number) is None
        self._ordinary = streaming and self._break is None

    def head(self) -> bytes:
        """Return what is sent as soon as the request is accepted."""
        return stream_head(keep_alive=self._keep_alive)

    def take(self, emission: Emission) -> tuple[bytes, End]:
        """Return the bytes that one emission becomes, and what is then to be done with the connection."""
        total = emission.total
        if self._ordinary and emission.finish is None and total != emission.tokens:
            self._usage.completion_tokens = total
            return self._renderer.text(self._answer.next(emission.tokens), None, self._usage), "more"
        if self._stalled:
            return b"", "more"
        if self._break is not None and emission.total > self._break[1]:
            return self._broken(self._break[0])
        usage = self._usage
        text = self._answer.next(emission.tokens)
        if not self.streaming:
            self._texts.append(text)
            return (
                (b"", "more")
                if emission.finish is None
                else (self._document(emission, emission.finish), self._end())
            )
        data = b""
        if emission.total == emission.tokens:
            data = self._renderer.role(usage)
        usage.completion_tokens = emission.total
        data += self._renderer.text(text, emission.finish, usage)
        if emission.finish is None:
            return data, "more"
        if self._include_usage:
            self._settle(emission)
            data += self._renderer.usage(usage)
        return data + DONE + LAST_CHUNK, self._end()

    def _settle(self, emission: Emission) -> None:
        self._usage.completion_tokens = max(0, emission.total + self._excess)
        self._usage.cached_tokens = emission.cached_tokens if self._tell_cached else None

    def _document(self, emission: Emission, finish: str) -> bytes:
        self._settle(emission)
        usage = self._usage if self._include_usage else None
        return response(
            200, self._renderer.document("".join(self._texts), finish, usage), keep_alive=self._keep_alive
        )

    def _broken(self, name: FaultName) -> tuple[bytes, End]:
        self.served.finish = name
        if name == "die":
            return b"", "exit"
        if name == "cut":
            return b"", "reset"
        if name == "stall":
            self._stalled = True
            return b"", "more"
        if self.streaming:
            return error_event(_FAILURE) + DONE + LAST_CHUNK, self._end()
        body = error_body(_FAILURE, "InternalServerError", None, 500)
        return response(500, body, keep_alive=self._keep_alive), self._end()

    def _end(self) -> End:
        return "done" if self._keep_alive else "close"
