"""Read one JSON document of the chat or completions API: a streamed chunk or a whole answer."""

from typing import Literal, TypeAlias

import msgspec

from nameplate.wire import loose, schema
from nameplate.wire.events import Channel, Event, Finish, Output, Usage

Api: TypeAlias = Literal["chat", "completions"]

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

    __slots__ = ("_api", "_counted", "_counting", "_had_output", "any_chunk", "warnings")

    def __init__(self, api: Api) -> None:
        self._api = api
        self._counted = 0
        self._counting: bool | None = None
        self._had_output = False
        self.any_chunk = False
        self.warnings: set[str] = set()

    def read(self, data: bytes, events: list[Event], whole: bool = False) -> None:
        """Append a document's events; ``whole`` for an answer that is not streamed.

        A document that is no chunk and no error means nothing and has no events. Raises LooseJsonError if the
        bytes are not one JSON object.
        """
        try:
            chunk = schema.decode(data)
        except (msgspec.MsgspecError, RecursionError, ValueError):
            self._read_loose(data, events, whole)
            return
        choices = chunk.choices
        if chunk.error:
            # Rare, and what stands beside the error object can tell its kind.
            self._read_loose(data, events, whole)
            return
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
                reasoning = delta.reasoning or delta.reasoning_content or delta.thinking
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
        self.any_chunk = True
        self._events(chunk, events, whole)

    def _ordinary(
        self, channel: Channel, text: str, usage: schema.UsagePart | None, events: list[Event]
    ) -> None:
        self.any_chunk = True
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
        self.any_chunk = True
        self._events(schema.from_document(document, self.warnings), events, whole)

    def _read_bare(self, data: bytes, chunk: schema.Chunk, events: list[Event]) -> None:
        if chunk.choices is None and chunk.x_groq is None:
            document = loose.parse(data)
            if loose.is_error(document):
                events.append(loose.describe_error(document))
            return
        self.any_chunk = True
        self._events(chunk, events, False)

    def _events(self, chunk: schema.Chunk, events: list[Event], whole: bool) -> None:
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
            # Some servers write the word null.
            if choice.finish_reason and choice.finish_reason != "null":
                events.append(Finish(choice.finish_reason[:80]))
            if choice.error:
                events.append(loose.describe_error(choice.error))
        if counts is not None:
            events.append(counts)
        if chunk.error:
            events.append(loose.describe_error({"error": chunk.error}))

    def _outputs(self, choice: schema.Choice, whole: bool, outputs: list[Output]) -> None:
        delta = choice.delta
        if choice.text and (delta is None or self._api == "completions"):
            outputs.append(Output(_CONTENT, choice.text, None, bool(outputs)))
            return
        if delta is None:
            # A whole message inside a stream repeats what was streamed, unless nothing was.
            if choice.message is None or (self._had_output and not whole):
                return
            delta = choice.message
        reasoning = delta.reasoning or delta.reasoning_content or delta.thinking
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

    def _usage(self, usage: schema.UsagePart | None, timings: schema.Timings | None) -> Usage | None:
        prompt = completion = cached = reasoning = None
        if usage is not None:
            prompt, completion = usage.prompt_tokens, usage.completion_tokens
            details = usage.prompt_tokens_details
            if details is not None:
                cached = details.cached_tokens
            if cached is None:
                cached = usage.cached_tokens
            if cached is None:
                cached = usage.prompt_cache_hit_tokens
            details = usage.completion_tokens_details
            if details is not None:
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
        if prompt is completion is cached is reasoning is None:
            return None
        limit = loose.COUNT_LIMIT
        if (
            (prompt is None or 0 <= prompt <= limit)
            and (completion is None or 0 <= completion <= limit)
            and (cached is None or 0 <= cached <= limit)
            and (reasoning is None or 0 <= reasoning <= limit)
        ):
            return Usage(prompt, completion, cached, reasoning)
        self.warnings.add("bad_usage")
        return Usage(*(loose.count(each) for each in (prompt, completion, cached, reasoning)))
