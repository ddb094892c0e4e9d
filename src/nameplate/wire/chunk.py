"""Read one JSON document of the chat or completions API: a streamed chunk or a whole answer."""

from typing import Any, Literal, TypeAlias

import msgspec

from nameplate.wire import loose
from nameplate.wire.events import Channel, Event, Finish, Output, StreamError, Usage

Api: TypeAlias = Literal["chat", "completions"]


class _Struct(msgspec.Struct, gc=False):
    pass


class _Function(_Struct):
    name: str | None = None
    arguments: str | None = None


class _ToolCall(_Struct):
    function: _Function | None = None


class _Delta(_Struct):
    content: str | None = None
    reasoning: str | None = None
    reasoning_content: str | None = None
    refusal: str | None = None
    tool_calls: list[_ToolCall] | None = None
    function_call: _Function | None = None


class _Details(_Struct):
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None


class _Usage(_Struct):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: _Details | None = None
    completion_tokens_details: _Details | None = None
    # Beside the details: Moonshot and SGLang name them at the top, DeepSeek has its own word.
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None
    prompt_cache_hit_tokens: int | None = None


class _Timings(_Struct):
    """llama.cpp's counts: ``prompt_n`` are the prompt tokens that were not cached."""

    prompt_n: int | None = None
    predicted_n: int | None = None
    cache_n: int | None = None


class _Choice(_Struct):
    delta: _Delta | None = None
    message: _Delta | None = None
    text: str | None = None
    finish_reason: str | None = None
    usage: _Usage | None = None
    error: Any = None


class _Extension(_Struct):
    usage: _Usage | None = None


class _Chunk(_Struct):
    choices: list[_Choice] | None = None
    usage: _Usage | None = None
    timings: _Timings | None = None
    x_groq: _Extension | None = None
    error: Any = None


_decode = msgspec.json.Decoder(_Chunk).decode
_COUNTS_NOTHING = _Details()
# An enum's members are looked up through its metaclass each time, which the hot path feels.
_CONTENT = Channel.content
_REASONING = Channel.reasoning
_TOOL_CALL = Channel.tool_call


class ChunkReader:
    """Turn documents into events, in the order outputs, finish, usage, error.

    Counts of tokens a document: they are read as the server's running count only if the first document with
    output carries one. An output then gets the rise since the last counted output, so silent tokens go to the
    next output (silent ones after the last output only show in the final usage); the first output of a document
    gets all of it, further ones 0. An output whose document lacks the count gets None.
    """

    __slots__ = ("_api", "_counted", "_counting", "_had_output", "documents", "warnings")

    def __init__(self, api: Api) -> None:
        self._api = api
        self._counted = 0
        self._counting: bool | None = None
        self._had_output = False
        self.documents = 0
        self.warnings: set[str] = set()

    def read(self, data: bytes, events: list[Event], whole: bool = False) -> None:
        """Append a document's events; ``whole`` for an answer that is not streamed.

        A document that is no chunk and no error means nothing and has no events. Raises LooseJsonError if the
        bytes are not one JSON object.
        """
        try:
            chunk = _decode(data)
        except (msgspec.MsgspecError, RecursionError, ValueError):
            self._read_loose(data, events, whole)
            return
        choices = chunk.choices
        # The ordinary chunk: one choice, one kind of text, and perhaps counts.
        if (
            choices
            and len(choices) == 1
            and chunk.error is None
            and chunk.timings is None
            and chunk.x_groq is None
        ):
            choice = choices[0]
            delta = choice.delta
            if (
                delta is not None
                and choice.finish_reason is None
                and choice.error is None
                and choice.usage is None
                and choice.text is None
                and delta.tool_calls is None
                and delta.function_call is None
                and delta.refusal is None
            ):
                content = delta.content
                reasoning = delta.reasoning or delta.reasoning_content
                if content:
                    if not reasoning:
                        self._ordinary(_CONTENT, content, chunk.usage, events)
                        return
                elif reasoning:
                    self._ordinary(_REASONING, reasoning, chunk.usage, events)
                    return
        if not choices and chunk.usage is None and chunk.error is None and chunk.timings is None:
            self._read_bare(data, chunk, events)
            return
        self.documents += 1
        self._events(chunk, events, whole)

    def _ordinary(self, channel: Channel, text: str, usage: _Usage | None, events: list[Event]) -> None:
        self.documents += 1
        self._had_output = True
        if usage is None:
            if self._counting is None:
                self._counting = False
            events.append(Output(channel, text))
            return
        counts = self._usage(usage, None)
        rise = None if self._counting is False else self._rise(counts)
        events.append(Output(channel, text, rise))
        if counts is not None:
            events.append(counts)

    def _read_loose(self, data: bytes, events: list[Event], whole: bool) -> None:
        document = loose.parse(data)
        if document is None:
            return
        if isinstance(document, list) and loose.is_error(document):
            events.append(loose.describe_error(document))
            return
        if not isinstance(document, dict):
            raise loose.LooseJsonError(f"a JSON {type(document).__name__} where an object belongs")
        if document.get("choices") is None and loose.is_error(document):
            events.append(loose.describe_error(document))
            return
        self.documents += 1
        self._events(_loose_chunk(document, self.warnings), events, whole)

    def _read_bare(self, data: bytes, chunk: _Chunk, events: list[Event]) -> None:
        if chunk.choices is None and chunk.x_groq is None:
            document = loose.parse(data)
            if loose.is_error(document):
                events.append(loose.describe_error(document))
            return
        self.documents += 1
        self._events(chunk, events, False)

    def _events(self, chunk: _Chunk, events: list[Event], whole: bool) -> None:
        usage = chunk.usage
        if usage is None and chunk.x_groq is not None:
            usage = chunk.x_groq.usage
        choices = chunk.choices or ()
        outputs: list[Output] = []
        for choice in choices:
            self._outputs(choice, whole, outputs)
            if usage is None:
                usage = choice.usage
        counts = None
        if usage is not None or chunk.timings is not None:
            counts = self._usage(usage, chunk.timings)
        if outputs:
            self._had_output = True
            if self._counting is not False:
                rise = self._rise(counts)
                for index, output in enumerate(outputs):
                    outputs[index] = Output(output.channel, output.text, rise, output.joined)
                    rise = None if rise is None else 0
            events += outputs
        for choice in choices:
            if choice.finish_reason:
                events.append(Finish(choice.finish_reason[:80]))
            if choice.error:
                events.append(loose.describe_error(choice.error))
        if counts is not None:
            events.append(counts)
        if chunk.error:
            events.append(loose.describe_error({"error": chunk.error}))

    def _outputs(self, choice: _Choice, whole: bool, outputs: list[Output]) -> None:
        delta = choice.delta
        if choice.text and (delta is None or self._api == "completions"):
            outputs.append(Output(_CONTENT, choice.text, None, bool(outputs)))
            return
        if delta is None:
            # A whole message inside a stream repeats what was streamed, unless nothing was.
            if choice.message is None or (self._had_output and not whole):
                return
            delta = choice.message
        reasoning = delta.reasoning or delta.reasoning_content
        if reasoning:
            outputs.append(Output(_REASONING, reasoning, None, bool(outputs)))
        if delta.content:
            outputs.append(Output(_CONTENT, delta.content, None, bool(outputs)))
        if delta.refusal:
            outputs.append(Output(_CONTENT, delta.refusal, None, bool(outputs)))
        if delta.tool_calls or delta.function_call is not None:
            functions = [call.function for call in delta.tool_calls or ()]
            functions.append(delta.function_call)
            text = "".join(f"{f.name or ''}{f.arguments or ''}" for f in functions if f is not None)
            if text:
                outputs.append(Output(_TOOL_CALL, text, None, bool(outputs)))

    def _rise(self, counts: Usage | None) -> int | None:
        completion = None if counts is None else counts.completion_tokens
        if self._counting is None:
            self._counting = completion is not None
        if completion is None:
            return None
        rise = completion - self._counted
        if rise < 0:
            return 0
        self._counted = completion
        return rise

    def _usage(self, usage: _Usage | None, timings: _Timings | None) -> Usage | None:
        prompt = completion = cached = reasoning = None
        if usage is not None:
            prompt = usage.prompt_tokens
            completion = usage.completion_tokens
            details = usage.prompt_tokens_details or _COUNTS_NOTHING
            cached = details.cached_tokens
            if cached is None:
                cached = usage.cached_tokens
            if cached is None:
                cached = usage.prompt_cache_hit_tokens
            details = usage.completion_tokens_details or _COUNTS_NOTHING
            reasoning = details.reasoning_tokens
            if reasoning is None:
                reasoning = usage.reasoning_tokens
        if timings is not None:
            if completion is None:
                completion = timings.predicted_n
            if cached is None:
                cached = timings.cache_n
            if prompt is None and timings.prompt_n is not None and timings.cache_n is not None:
                prompt = timings.prompt_n + timings.cache_n
        counts = (prompt, completion, cached, reasoning)
        for value in counts:
            if value is not None and not 0 <= value <= loose.COUNT_LIMIT:
                self.warnings.add("bad_usage")
                return Usage(*(loose.count(each) for each in counts))
        if prompt is None and completion is None and cached is None and reasoning is None:
            return None
        return Usage(prompt, completion, cached, reasoning)


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


def _loose_function(value: Any) -> _Function | None:
    if not isinstance(value, dict):
        return None
    arguments = value.get("arguments")
    if isinstance(arguments, dict | list) and arguments:
        arguments = msgspec.json.encode(arguments).decode()
    return _Function(_text(value.get("name")), _text(arguments))


def _loose_delta(value: Any) -> _Delta | None:
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
    return _Delta(
        content=_text(content),
        reasoning=_text(value.get("reasoning")) or _text(thinking),
        reasoning_content=_text(value.get("reasoning_content")),
        refusal=_text(value.get("refusal")),
        tool_calls=[
            _ToolCall(_loose_function(call.get("function"))) for call in calls if isinstance(call, dict)
        ]
        if isinstance(calls, list)
        else None,
        function_call=_loose_function(value.get("function_call")),
    )


def _loose_usage(value: Any, warnings: set[str]) -> _Usage | None:
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
    return _Usage(
        prompt_tokens=number(value, "prompt_tokens"),
        completion_tokens=number(value, "completion_tokens"),
        prompt_tokens_details=_Details(cached_tokens=number(prompt_details, "cached_tokens")),
        completion_tokens_details=_Details(reasoning_tokens=number(completion_details, "reasoning_tokens")),
        cached_tokens=number(value, "cached_tokens"),
        reasoning_tokens=number(value, "reasoning_tokens"),
        prompt_cache_hit_tokens=number(value, "prompt_cache_hit_tokens"),
    )


def _loose_choice(value: Any, warnings: set[str]) -> _Choice:
    if not isinstance(value, dict):
        return _Choice()
    reason = value.get("finish_reason")
    if isinstance(reason, dict):
        reason = reason.get("type")
    return _Choice(
        delta=_loose_delta(value.get("delta")),
        message=_loose_delta(value.get("message")),
        text=_text(value.get("text")),
        finish_reason=loose.clean(reason) if isinstance(reason, str) else None,
        usage=_loose_usage(value.get("usage"), warnings),
        error=value.get("error"),
    )


def _loose_chunk(document: dict[str, Any], warnings: set[str]) -> _Chunk:
    choices = document.get("choices")
    timings = document.get("timings")
    extension = document.get("x_groq")
    return _Chunk(
        choices=[_loose_choice(choice, warnings) for choice in choices]
        if isinstance(choices, list)
        else None,
        usage=_loose_usage(document.get("usage"), warnings),
        timings=_Timings(*(loose.count(timings.get(key)) for key in ("prompt_n", "predicted_n", "cache_n")))
        if isinstance(timings, dict)
        else None,
        x_groq=_Extension(_loose_usage(extension.get("usage"), warnings))
        if isinstance(extension, dict)
        else None,
        error=document.get("error"),
    )


__all__ = ["Api", "ChunkReader", "StreamError"]
