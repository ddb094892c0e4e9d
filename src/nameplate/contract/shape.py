"""A request shape: how long the prompt is and how long the answer."""

from __future__ import annotations

from msgspec import Struct

from nameplate.contract.errors import CallerError
from nameplate.contract.quantity import parse_tokens


class Shape(Struct, frozen=True, order=True):
    """Hold one input and output length in tokens, as asked; the server's own count stands beside it in results."""

    input_tokens: int
    output_tokens: int

    @classmethod
    def parse(cls, text: str) -> Shape:
        """Read `8192/1024` or `8k/1k`; CallerError if it is not two positive counts."""
        first, slash, second = text.partition("/")
        if not slash:
            raise CallerError(
                f"{text!r} is not a shape.", hint="Write input/output tokens: 8192/1024 or 8k/1k."
            )
        shape = cls(parse_tokens(first), parse_tokens(second))
        if shape.input_tokens < 1 or shape.output_tokens < 1:
            raise CallerError(
                f"The shape {text!r} has an empty side.", hint="Both lengths must be at least 1 token."
            )
        return shape

    def __str__(self) -> str:
        return f"{self.input_tokens}/{self.output_tokens}"
