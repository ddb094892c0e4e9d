"""Request bodies, and back from a body to the user text and its hashes."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

import msgspec

from nameplate.contract.errors import CallerError
from nameplate.contract.sampling import Sampling
from nameplate.contract.target import Api, Target

HEAD_CHARACTERS: Final = 64
"""Characters of the user text, after a shared prefix, that must be unique in a study."""

RESERVED: Final = ("model", "messages", "prompt", "stream", "n")
"""Fields that are decided here: an extra field of that name would change what is measured without saying so."""


class Message(msgspec.Struct, frozen=True):
    """Hold one chat message; the content is plain text."""

    role: str
    content: str


class BodyOptions(msgspec.Struct, frozen=True):
    """Hold what all bodies of a contract have in common.

    `usage` and `continuous_usage` ask for `stream_options`; a streamed body without either sends none. `extra`
    are further JSON fields, merged last and field by field: they may replace sampling fields, but none of
    `RESERVED`. `limit_field` is the name under which the output length is sent.
    """

    api: Api = "chat"
    model: str = ""
    sampling: Sampling = Sampling()
    stream: bool = True
    usage: bool = True
    continuous_usage: bool = False
    limit_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    extra: Mapping[str, Any] = {}

    @classmethod
    def of(cls, target: Target, sampling: Sampling) -> BodyOptions:
        """Take what a target was found to accept."""
        return cls(
            api=target.api,
            model=target.model,
            sampling=sampling,
            usage=target.stream_usage,
            continuous_usage=target.continuous_usage,
            limit_field=target.limit_field,
            extra=target.extra_body,
        )


class PromptHashes(msgspec.Struct, frozen=True):
    """Hold the SHA-256 of a user text, and of its first 64 characters after the shared part; lower-case hex."""

    sha256: str
    head_sha256: str


def build_body(
    options: BodyOptions, prompt: str | Sequence[Message], output_tokens: int, *, seed: int | None = None
) -> bytes:
    """Write a request body as compact JSON; equal arguments give equal bytes.

    `seed` is sent where the sampling asks for one per request. Raises `CallerError` if an extra field is one of
    `RESERVED`, or if messages are given to the completions API.
    """
    fields: dict[str, Any] = {"model": options.model}
    if options.api == "chat":
        messages = [Message("user", prompt)] if isinstance(prompt, str) else list(prompt)
        fields["messages"] = [{"role": message.role, "content": message.content} for message in messages]
    elif isinstance(prompt, str):
        fields["prompt"] = prompt
    else:
        raise CallerError(
            "The prompts are chat messages, but the completions API takes plain text.",
            hint="Use --api chat, or a data set with a `prompt` field.",
        )
    fields[options.limit_field] = output_tokens
    sampling = options.sampling
    for name, value in (
        ("temperature", sampling.temperature),
        ("top_p", sampling.top_p),
        ("top_k", sampling.top_k),
        ("seed", seed if sampling.seed_per_request else None),
        ("ignore_eos", True if sampling.ignore_eos else None),
    ):
        if value is not None:
            fields[name] = value
    fields["stream"] = options.stream
    if options.stream and (options.usage or options.continuous_usage):
        fields["stream_options"] = {"include_usage": True}
        if options.continuous_usage:
            fields["stream_options"]["continuous_usage_stats"] = True
    for name in sorted(options.extra):
        if name in RESERVED:
            raise CallerError(
                f"The extra body field {name!r} is set by nameplate itself.",
                why="Replacing it would change what is measured without the contract saying so.",
                hint="Leave it out; --model and --api have options of their own.",
            )
        fields[name] = _merged(fields.get(name), options.extra[name])
    return msgspec.json.encode(fields)


def _merged(old: Any, new: Any) -> Any:
    if isinstance(old, dict) and isinstance(new, Mapping):
        return {**old, **{str(key): _merged(old.get(key), new[key]) for key in sorted(new)}}
    return new


def user_text_of(body: bytes) -> str:
    """Return the user's text of a chat or completions body, whatever wrote it.

    Chat: the contents of all messages of the role `user`, one line break between two; without any, those of all
    messages. Content parts that are not text count as nothing. Completions: the prompt; several prompts, or token
    numbers, joined by line breaks or spaces. Raises `ValueError` naming what is missing; never anything else.
    """
    try:
        fields = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"the request body is not JSON: {error}") from None
    if not isinstance(fields, dict):
        raise ValueError("the request body is not a JSON object")
    messages = fields.get("messages")
    if isinstance(messages, list):
        pairs = [(m.get("role"), _content(m.get("content"))) for m in messages if isinstance(m, dict)]
        texts = [text for role, text in pairs if role == "user"]
        return "\n".join(texts or [text for _, text in pairs])
    prompt = fields.get("prompt")
    if isinstance(prompt, str):
        return prompt
    if isinstance(prompt, list):
        if all(isinstance(part, int) for part in prompt):
            return " ".join(map(str, prompt))
        return "\n".join(part if isinstance(part, str) else _tokens(part) for part in prompt)
    raise ValueError("the request body has neither messages nor a prompt")


def _tokens(part: Any) -> str:
    return " ".join(map(str, part)) if isinstance(part, list) else str(part)


def _content(content: Any) -> str:
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    texts = [
        part if isinstance(part, str) else part.get("text")
        for part in content
        if isinstance(part, str | dict)
    ]
    return "".join(text for text in texts if isinstance(text, str))


def prompt_hashes(text: str, shared_characters: int = 0) -> PromptHashes:
    """Hash a user text whole, and its first 64 characters after a shared prefix of `shared_characters`."""
    head = text[shared_characters : shared_characters + HEAD_CHARACTERS]
    return PromptHashes(sha256=_sha256(text), head_sha256=_sha256(head))


def _sha256(text: str) -> str:
    # A lone surrogate can stand in a JSON string, and must not stop a verification.
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
