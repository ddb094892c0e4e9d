"""The JSON of chat and completions documents: one typed schema, and a tolerant way into it for odd shapes."""

from typing import Any

import msgspec

from nameplate.wire import loose


class _Part(msgspec.Struct, gc=False):
    pass


class Function(_Part):
    name: str | None = None
    arguments: str | None = None


class ToolCall(_Part):
    function: Function | None = None


class Delta(_Part):
    content: str | None = None
    reasoning: str | None = None
    reasoning_content: str | None = None
    thinking: str | None = None
    refusal: str | None = None
    tool_calls: list[ToolCall] | None = None
    function_call: Function | None = None


class Details(_Part):
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None


class UsagePart(_Part):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: Details | None = None
    completion_tokens_details: Details | None = None
    # Beside the details: Moonshot and SGLang name them at the top, DeepSeek has its own word.
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None
    prompt_cache_hit_tokens: int | None = None


class Timings(_Part):
    """llama.cpp's counts: ``prompt_n`` are the prompt tokens that were not cached."""

    prompt_n: int | None = None
    predicted_n: int | None = None
    cache_n: int | None = None


class Choice(_Part):
    delta: Delta | None = None
    message: Delta | None = None
    text: str | None = None
    finish_reason: str | None = None
    usage: UsagePart | None = None
    error: Any = None


class Extension(_Part):
    usage: UsagePart | None = None


class Chunk(_Part):
    choices: list[Choice] | None = None
    usage: UsagePart | None = None
    timings: Timings | None = None
    x_groq: Extension | None = None
    error: Any = None


decode = msgspec.json.Decoder(Chunk).decode


def _text(value: Any) -> str | None:
    """Return the text of a string, or of a list of parts, one level of lists inside a part included."""
    if isinstance(value, str):
        return loose.clean(value)
    if isinstance(value, list):
        return "".join(_part(part) for part in value)
    return None


def _part(part: Any, deep: bool = True) -> str:
    if isinstance(part, str):
        return loose.clean(part)
    if isinstance(part, dict):
        for key in ("text", "content", "refusal"):
            if isinstance(part.get(key), str):
                return loose.clean(part[key])
        inner = part.get("thinking")
        if isinstance(inner, str):
            return loose.clean(inner)
        if deep and isinstance(inner, list):
            return "".join(_part(each, False) for each in inner)
    return ""


def _is_thinking(part: Any) -> bool:
    return isinstance(part, dict) and part.get("type") in ("thinking", "reasoning")


def _function(value: Any) -> Function | None:
    if not isinstance(value, dict):
        return None
    arguments = value.get("arguments")
    if isinstance(arguments, dict | list) and arguments:
        arguments = loose.clean(loose.dump(arguments))
    return Function(_text(value.get("name")), _text(arguments))


def _delta(value: Any) -> Delta | None:
    if not isinstance(value, dict):
        return None
    content = value.get("content")
    thinking: list[Any] = []
    if isinstance(content, list):
        thinking = [part for part in content if _is_thinking(part)]
        content = [part for part in content if not _is_thinking(part)]
    calls = value.get("tool_calls")
    if isinstance(calls, dict):
        calls = [calls]
    return Delta(
        content=_text(content),
        reasoning=_text(value.get("reasoning")) or _text(thinking),
        reasoning_content=_text(value.get("reasoning_content")),
        thinking=_text(value.get("thinking")),
        refusal=_text(value.get("refusal")),
        tool_calls=[ToolCall(_function(call.get("function"))) for call in calls if isinstance(call, dict)]
        if isinstance(calls, list)
        else None,
        function_call=_function(value.get("function_call")),
    )


def _usage(value: Any, warnings: set[str]) -> UsagePart | None:
    if not isinstance(value, dict):
        return None

    def number(source: Any, key: str) -> int | None:
        raw = source.get(key) if isinstance(source, dict) else None
        found = loose.count(raw)
        if raw is not None and found is None:
            warnings.add("bad_usage")
        return found

    prompt_details = value.get("prompt_tokens_details")
    completion_details = value.get("completion_tokens_details")
    return UsagePart(
        prompt_tokens=number(value, "prompt_tokens"),
        completion_tokens=number(value, "completion_tokens"),
        prompt_tokens_details=Details(cached_tokens=number(prompt_details, "cached_tokens")),
        completion_tokens_details=Details(reasoning_tokens=number(completion_details, "reasoning_tokens")),
        cached_tokens=number(value, "cached_tokens"),
        reasoning_tokens=number(value, "reasoning_tokens"),
        prompt_cache_hit_tokens=number(value, "prompt_cache_hit_tokens"),
    )


def _choice(value: Any, warnings: set[str]) -> Choice:
    if not isinstance(value, dict):
        return Choice()
    reason = value.get("finish_reason")
    if isinstance(reason, dict):
        reason = reason.get("type")
    return Choice(
        delta=_delta(value.get("delta")),
        message=_delta(value.get("message")),
        text=_text(value.get("text")),
        finish_reason=loose.clean(reason) if isinstance(reason, str) else None,
        usage=_usage(value.get("usage"), warnings),
        error=value.get("error"),
    )


def from_document(document: dict[str, Any], warnings: set[str]) -> Chunk:
    choices = document.get("choices")
    timings = document.get("timings")
    extension = document.get("x_groq")
    return Chunk(
        choices=[_choice(choice, warnings) for choice in choices] if isinstance(choices, list) else None,
        usage=_usage(document.get("usage"), warnings),
        timings=Timings(*(loose.count(timings.get(key)) for key in ("prompt_n", "predicted_n", "cache_n")))
        if isinstance(timings, dict)
        else None,
        x_groq=Extension(_usage(extension.get("usage"), warnings)) if isinstance(extension, dict) else None,
        error=document.get("error"),
    )
