"""The bodies of generation requests, read into typed values."""

from typing import Any

import msgspec

MAX_TOKENS = 1 << 24  # above any context: keeps a hostile number from costing memory


class BadRequestError(ValueError):
    """Refuse a body, with the message, parameter and status that vLLM would give."""

    def __init__(
        self, message: str, param: str | None = None, *, kind: str = "BadRequestError", code: int = 400
    ):
        super().__init__(message)
        self.message, self.param, self.kind, self.code = message, param, kind, code


class StreamOptions(msgspec.Struct, frozen=True):
    """Hold `stream_options`."""

    include_usage: bool = False
    continuous_usage_stats: bool = False


class Message(msgspec.Struct, frozen=True):
    """Hold one chat message; content is text or a list of parts, of which the text ones are read."""

    role: str
    content: str | list[Any] | None = None

    @property
    def text(self) -> str:
        """Return all text of the message."""
        if isinstance(self.content, list):
            parts = [part.get("text") for part in self.content if isinstance(part, dict)]
            return "\n".join(part for part in parts if isinstance(part, str))
        return self.content or ""


class GenerationBody(msgspec.Struct, frozen=True):
    """Hold what the simulated server understands of a chat or completions body; other keys are ignored."""

    model: str | None = None
    messages: list[Message] | None = None
    prompt: str | list[str | int | list[int]] | None = None
    stream: bool = False
    stream_options: StreamOptions | None = None
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    min_tokens: int | None = None
    ignore_eos: bool | None = None
    seed: int | None = None
    temperature: float | None = None
    n: int | None = None

    @property
    def asked_tokens(self) -> int | None:
        """Return the output limit that counts: `max_completion_tokens` wins, as in vLLM."""
        return self.max_tokens if self.max_completion_tokens is None else self.max_completion_tokens


_DECODER = msgspec.json.Decoder(GenerationBody)


def read_generation(body: bytes) -> GenerationBody:
    """Read a body; raise BadRequestError if it is no JSON, has a wrong type or asks for what is not simulated."""
    try:
        value = _DECODER.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadRequestError(f"Invalid request body: {error}") from None
    if value.n not in (None, 1):
        raise BadRequestError("only n=1 is simulated", "n")
    if value.asked_tokens is not None and not 1 <= value.asked_tokens <= MAX_TOKENS:
        raise BadRequestError(f"max_tokens must be at least 1, got {value.asked_tokens}.", "max_tokens")
    if value.min_tokens is not None and value.min_tokens > (value.asked_tokens or MAX_TOKENS):
        raise BadRequestError("min_tokens must not exceed max_tokens", "min_tokens")
    if value.temperature is not None and value.temperature < 0:
        raise BadRequestError(f"temperature must be non-negative, got {value.temperature}.", "temperature")
    if value.stream_options is not None and not value.stream:
        raise BadRequestError("Stream options can only be defined when `stream=True`.", "stream_options")
    return value


def prompt_text(body: GenerationBody) -> str | list[int]:
    """Return the one prompt of a completions body; raise BadRequestError for none or several."""
    prompt = body.prompt
    if isinstance(prompt, list):
        if prompt and all(isinstance(token, int) for token in prompt):
            return [token & 0xFFFFFFFF for token in prompt if isinstance(token, int)]
        if len(prompt) == 1 and isinstance(prompt[0], str):
            return prompt[0]
        if len(prompt) == 1 and isinstance(prompt[0], list):
            return [token & 0xFFFFFFFF for token in prompt[0]]
        raise BadRequestError("exactly one prompt is simulated", "prompt")
    if prompt is None:
        raise BadRequestError("prompt is required", "prompt")
    return prompt
