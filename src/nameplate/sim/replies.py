"""Render one request's answer as vLLM would: stream events or one document."""

import msgspec

from nameplate.sim.http import chunk

_encode = msgspec.json.Encoder().encode
_COUNTS = b'{"prompt_tokens":%d,"total_tokens":%d,"completion_tokens":%d'


def _literal(data: bytes) -> bytes:
    """Return a part of a template that stands for itself: a model's name can hold a percent sign."""
    return data.replace(b"%", b"%%")


class Usage(msgspec.Struct):
    """Hold the counts that a usage object reports; `cached_tokens` None says nothing of caching."""

    prompt_tokens: int
    completion_tokens: int = 0
    cached_tokens: int | None = None

    def encode(self, *, details: bool = True) -> bytes:
        """Return the usage object as JSON."""
        total = self.prompt_tokens + self.completion_tokens
        head = _COUNTS % (self.prompt_tokens, total, self.completion_tokens)
        if not details:
            return head + b"}"
        if self.cached_tokens is None:
            return head + b',"prompt_tokens_details":null}'
        return head + b',"prompt_tokens_details":{"cached_tokens":%d}}' % self.cached_tokens


class Renderer:
    """Turn pieces of text into response bytes, for chat or completions.

    What does not change within a stream is rendered once, because a stream has thousands of events.
    """

    def __init__(
        self, *, chat: bool, identifier: str, created: int, model: str, continuous_usage: bool
    ) -> None:
        self._chat = chat
        self._identifier, self._created, self._model = identifier, created, model
        self._continuous = continuous_usage
        object_name = "chat.completion.chunk" if chat else "text_completion"
        self._prefix = b'data: {"id":%b,"object":"%b","created":%d,"model":%b,"choices":[' % (
            msgspec.json.encode(identifier),
            object_name.encode(),
            created,
            msgspec.json.encode(model),
        )
        if chat:
            self._open = self._prefix + b'{"index":0,"delta":{"content":'
            self._plain = b'},"logprobs":null,"finish_reason":null,"token_ids":null}]'
            self._last = b'},"logprobs":null,"finish_reason":"%b","stop_reason":null,"token_ids":null}]'
        else:
            self._open = self._prefix + b'{"index":0,"text":'
            self._plain = b',"logprobs":null,"finish_reason":null,"stop_reason":null}]'
            self._last = b',"logprobs":null,"finish_reason":"%b","stop_reason":null}]'
        self._no_usage = b"}\n\n" if chat else b',"usage":null}\n\n'
        # An ordinary chunk is one substitution: there are thousands of them in a stream.
        usage_end = b',"usage":' + _COUNTS + b"}}\n\n" if continuous_usage else self._no_usage
        self._ordinary = _literal(self._open) + b"%b" + _literal(self._plain) + usage_end

    def role(self, usage: Usage) -> bytes:
        """Return the chunk that opens a chat stream and holds no token; nothing for completions."""
        if not self._chat:
            return b""
        data = (
            self._prefix
            + b'{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]'
        )
        return chunk(data + self._tail(usage))

    def text(self, text: str, finish: str | None, usage: Usage) -> bytes:
        """Return the chunk that carries new text; on the last one `finish` is the reason."""
        written = _encode(text)
        if finish is not None:
            tail = self._last % finish.encode()
            return chunk(b"".join((self._open, written, tail, self._tail(usage))))
        if self._continuous:
            prompt, done = usage.prompt_tokens, usage.completion_tokens
            data = self._ordinary % (written, prompt, prompt + done, done)
        else:
            data = self._ordinary % written
        return b"%x\r\n%b\r\n" % (len(data), data)

    def usage(self, usage: Usage) -> bytes:
        """Return the chunk that reports the final usage and holds no choice."""
        return chunk(b"%b],%b%b}\n\n" % (self._prefix, b'"usage":', usage.encode()))

    def document(self, text: str, finish: str, usage: Usage | None) -> bytes:
        """Return the whole answer of a request that does not stream."""
        choice: dict[str, object] = {"index": 0}
        if self._chat:
            choice["message"] = {"role": "assistant", "content": text, "tool_calls": []}
        else:
            choice["text"] = text
        choice |= {"logprobs": None, "finish_reason": finish, "stop_reason": None}
        return msgspec.json.encode(
            {
                "id": self._identifier,
                "object": "chat.completion" if self._chat else "text_completion",
                "created": self._created,
                "model": self._model,
                "choices": [choice],
                "usage": None if usage is None else msgspec.Raw(usage.encode()),
            }
        )

    def _tail(self, usage: Usage) -> bytes:
        if self._continuous:
            return b',"usage":%b}\n\n' % usage.encode(details=False)
        return self._no_usage


DONE = chunk(b"data: [DONE]\n\n")


def error_event(message: str) -> bytes:
    """Return the event of a failure after the headers were sent."""
    error = {"message": message, "type": "InternalServerError", "param": None, "code": 500}
    return chunk(b"data: " + msgspec.json.encode({"error": error}) + b"\n\n")
