"""The truth log: when the server received each request and when it sent what, for tests of those who measure.

JSON lines. The first describes the server (`kind` "server"); then one line a request when it ends. Times are
CLOCK_MONOTONIC of the machine, as time.monotonic_ns() gives them in any process. `first_sent_ns` and `last_sent_ns`
are taken when the send of the first and the last output tokens returned; `events_ns` (if asked for) are all such
times as differences to `received_ns`.
"""

from io import BufferedWriter
from pathlib import Path

import msgspec

from nameplate.sim.http import Output
from nameplate.sim.stream import ServedRequest


class TruthRow(msgspec.Struct, frozen=True, omit_defaults=False):
    """Hold one line of the log."""

    number: int
    received_ns: int
    first_sent_ns: int | None
    last_sent_ns: int | None
    prompt_tokens: int
    cached_tokens: int
    tokens: int
    finish: str | None
    events_ns: list[int] | None = None


class TruthLog:
    """Write the log; `path` None writes nothing and costs nothing."""

    def __init__(self, path: Path | None, about: dict[str, object], *, events: bool = False) -> None:
        self._file: BufferedWriter | None = path.open("wb") if path is not None else None
        self._events = events
        self._sent: dict[int, list[int]] = {}
        self._encoder = msgspec.json.Encoder()
        if self._file is not None:
            self._file.write(self._encoder.encode({"kind": "server", **about}) + b"\n")
            self._file.flush()

    @property
    def wanted(self) -> bool:
        """Say whether anything is written."""
        return self._file is not None

    def sent(self, output: Output, t_ns: int) -> None:
        """Note that an output was sent by `t_ns`."""
        if self._file is None or not output.tokens:
            return
        times = self._sent.setdefault(output.number, [])
        if self._events or len(times) < 2:
            times.append(t_ns)
        else:
            times[1] = t_ns

    def finished(self, served: ServedRequest) -> None:
        """Write the line of a request that ended."""
        if self._file is None:
            return
        times = self._sent.pop(served.number, [])
        row = TruthRow(
            served.number,
            served.received_ns,
            times[0] if times else None,
            times[-1] if times else None,
            served.prompt_tokens,
            served.cached_tokens,
            served.output_tokens,
            served.finish,
            [t_ns - served.received_ns for t_ns in times] if self._events else None,
        )
        self._file.write(self._encoder.encode(row) + b"\n")

    def flush(self) -> None:
        """Give what was written to the system."""
        if self._file is not None:
            self._file.flush()

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None
