"""Prompts and lengths from a JSONL file.

One JSON object a line, with one of

    {"prompt": "text"}
    {"messages": [{"role": "user", "content": "text"}, ...]}
    {"input_tokens": 812}                                       a length only: the text is generated

and, wherever it is known, "output_tokens"; "input_tokens" beside a prompt is what the prompt is said to cost.
Other fields, empty lines, a byte order mark and CRLF line ends are ignored.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Final, Self

import msgspec

from nameplate.contract.errors import CallerError
from nameplate.prompts.body import HEAD_CHARACTERS, Message

MAXIMUM_LINE_BYTES: Final = 16 << 20
"""A prompt of a million tokens is about 6 MB; a longer line is hardly a prompt."""

MAXIMUM_TOKENS: Final = 1 << 31

_HINT: Final = (
    'Each line is a JSON object with "prompt", "messages" or "input_tokens", and "output_tokens" if known.'
)


class DatasetError(CallerError):
    """One line of a data set cannot be used; `line` counts from 1."""

    def __init__(self, path: Path, line: int, what: str) -> None:
        super().__init__(f"{path}, line {line}: {what}.", hint=_HINT)
        self.line = line


class DatasetRow(msgspec.Struct, frozen=True):
    """Hold one line: a text, or messages, or neither of them and a length."""

    line: int
    prompt: str | None = None
    messages: tuple[Message, ...] | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None

    @property
    def content(self) -> str | tuple[Message, ...] | None:
        """Return what `build_body` takes, or None for a row that is a length only."""
        return self.prompt if self.messages is None else self.messages

    @property
    def user_text(self) -> str | None:
        """Return the user text, as `user_text_of` finds it in the body; None for a length only."""
        if self.messages is None:
            return self.prompt
        users = [message.content for message in self.messages if message.role == "user"]
        return "\n".join(users or [message.content for message in self.messages])


class Dataset:
    """Read rows by number; the file is checked whole when it is opened, and only offsets are kept.

    A row is used once in a study unless `repeat` is allowed. `shared_heads` counts prompts that begin with the
    same 64 characters as an earlier one: with these a prefix cache can hit.
    """

    def __init__(self, file: BinaryIO, path: Path, *, repeat: bool = False) -> None:
        self._file = file
        self._path = path
        self.repeat = repeat
        self.shared_heads = 0
        self._offsets = array("Q")
        self._lines = array("Q")
        self._check()

    @classmethod
    def open(cls, path: Path, *, repeat: bool = False) -> Dataset:
        """Open and check a file. Raises `CallerError` naming the file, and the line where one is wrong."""
        try:
            file = path.open("rb")
        except OSError as error:
            raise CallerError(f"The data set {path} cannot be read: {error.strerror}.") from None
        try:
            return cls(file, path, repeat=repeat)
        except BaseException:
            file.close()
            raise

    def _check(self) -> None:
        prompts: dict[bytes, int] = {}
        heads: set[bytes] = set()
        for line, offset, data in self._raw_lines():
            row = self._parse(line, data)
            text = row.user_text
            if text is not None:
                # What tells two requests apart is all their messages, not only the user's part.
                whole = msgspec.json.encode(row.content)
                first = prompts.setdefault(_digest(whole), line)
                if first != line and not self.repeat:
                    raise DatasetError(
                        self._path, line, f"the same prompt as in line {first}; repeats are not allowed"
                    )
                head = _digest(text[:HEAD_CHARACTERS].encode("utf-8", "surrogatepass"))
                self.shared_heads += head in heads
                heads.add(head)
            self._offsets.append(offset)
            self._lines.append(line)
        if not self._offsets:
            raise CallerError(f"The data set {self._path} is empty.", hint=_HINT)

    def _raw_lines(self) -> Iterator[tuple[int, int, bytes]]:
        """Yield (line number, offset, bytes) of every line that is not blank, one line in memory at a time."""
        offset, line = 0, 0
        while data := self._file.readline(MAXIMUM_LINE_BYTES + 1):
            line += 1
            if len(data) > MAXIMUM_LINE_BYTES:
                raise DatasetError(self._path, line, f"longer than {MAXIMUM_LINE_BYTES >> 20} MiB")
            start = offset
            offset += len(data)
            if line == 1 and data.startswith(b"\xef\xbb\xbf"):
                start, data = start + 3, data[3:]
            if data.strip():
                yield line, start, data

    def _parse(self, line: int, data: bytes) -> DatasetRow:
        try:
            fields = msgspec.json.decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise DatasetError(self._path, line, f"not JSON ({error})") from None
        if not isinstance(fields, dict):
            raise DatasetError(self._path, line, "not a JSON object")
        try:
            return _row(line, fields)
        except ValueError as error:
            raise DatasetError(self._path, line, str(error)) from None

    def __len__(self) -> int:
        return len(self._offsets)

    def require(self, count: int) -> None:
        """Raise `CallerError` if a study that needs `count` prompts would run out of them."""
        if count > len(self) and not self.repeat:
            raise CallerError(
                f"The data set {self._path} holds {len(self)} prompts, and {count} are needed.",
                why="A prompt that is sent twice is answered from the prefix cache.",
                hint="Give a longer file, ask for fewer requests, or allow repeats.",
            )

    def row(self, number: int) -> DatasetRow:
        """Return the row of a number from 0; past the end the file begins again, if repeats are allowed."""
        if number < 0:
            raise ValueError(f"rows are counted from 0, not {number}")
        self.require(number + 1)
        number %= len(self)
        self._file.seek(self._offsets[number])
        return self._parse(self._lines[number], self._file.readline(MAXIMUM_LINE_BYTES + 1))

    def __iter__(self) -> Iterator[DatasetRow]:
        return (self.row(number) for number in range(len(self)))

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _digest(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()[:16]


def _row(line: int, fields: dict[str, Any]) -> DatasetRow:
    prompt, messages = fields.get("prompt"), fields.get("messages")
    if prompt is not None and messages is not None:
        raise ValueError('both "prompt" and "messages"')
    if prompt is not None and (not isinstance(prompt, str) or not prompt.strip()):
        raise ValueError('"prompt" is not a text, or is empty')
    row = DatasetRow(
        line=line,
        prompt=prompt,
        messages=None if messages is None else _messages(messages),
        input_tokens=_tokens(fields, "input_tokens"),
        output_tokens=_tokens(fields, "output_tokens"),
    )
    if row.content is None and row.input_tokens is None:
        raise ValueError('neither "prompt" nor "messages" nor "input_tokens"')
    return row


def _tokens(fields: dict[str, Any], name: str) -> int | None:
    value = fields.get(name)
    if value is None:
        return None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MAXIMUM_TOKENS:
        raise ValueError(f'"{name}" is not a whole number above 0')
    return value


def _messages(value: Any) -> tuple[Message, ...]:
    if not isinstance(value, list) or not value:
        raise ValueError('"messages" is not a list, or is empty')
    messages = []
    for number, message in enumerate(value, 1):
        role = message.get("role") if isinstance(message, dict) else None
        if not isinstance(role, str) or not role:
            raise ValueError(f"message {number} has no role")
        content = message.get("content")
        if isinstance(content, list):
            content = _joined([part.get("text") if isinstance(part, dict) else part for part in content])
        if not isinstance(content, str):
            raise ValueError(f"the content of message {number} is not text")
        messages.append(Message(role, content))
    if not any(message.content.strip() for message in messages):
        raise ValueError("all messages are empty")
    return tuple(messages)


def _joined(parts: list[Any]) -> str | None:
    texts = [part for part in parts if isinstance(part, str)]
    return "".join(texts) if len(texts) == len(parts) else None
