"""What a response body means: the typed events that every dialect is reduced to."""

from enum import StrEnum
from typing import TypeAlias

import msgspec


class Channel(StrEnum):
    """Name the kind of text that an output carries."""

    content = "content"
    reasoning = "reasoning"
    tool_call = "tool_call"


class Output(msgspec.Struct, frozen=True, gc=False):
    """Hold non-empty generated text.

    ``tokens`` is how much the server's own count rose since the last counted output (so it includes tokens that
    were silent in between), None where the server does not count along. ``joined`` is True when this output came
    in the same wire event as the one before it: both are then one event in time, and its tokens are 0.
    """

    channel: Channel
    text: str
    tokens: int | None = None
    joined: bool = False


class Usage(msgspec.Struct, frozen=True, gc=False):
    """Hold the server's counts so far, cumulative; None is absent, which is not zero."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None


class Finish(msgspec.Struct, frozen=True, gc=False):
    """Hold why the generation ended, in the server's own word."""

    reason: str


class StreamError(msgspec.Struct, frozen=True, gc=False):
    """Hold an error that the server reported in the body; texts are bounded."""

    message: str
    kind: str = ""
    code: str = ""


class Done(msgspec.Struct, frozen=True, gc=False):
    """Stand for the ``[DONE]`` marker."""


Event: TypeAlias = Output | Usage | Finish | StreamError | Done
