"""How a request ended: the connection's side of it, and the verdict on the whole exchange."""

from enum import StrEnum


class Ending(StrEnum):
    """Name how the connection's side of one request ended.

    ``complete``: the framing says that the message is whole (for a close-delimited body the close says so).
    ``eof``: the peer closed the connection before that. ``malformed``: the framing itself was broken.
    """

    complete = "complete"
    eof = "eof"
    malformed = "malformed"
    reset = "reset"
    connect_failed = "connect_failed"
    deadline_connect = "deadline_connect"
    deadline_first_output = "deadline_first_output"
    deadline_silence = "deadline_silence"
    deadline_total = "deadline_total"
    cancelled = "cancelled"
    unfinished = "unfinished"


class Outcome(StrEnum):
    """Name what became of one request: the closed list that every row uses."""

    ok = "ok"
    http_error = "http_error"
    stream_error = "stream_error"
    truncated = "truncated"
    ended_without_marker = "ended_without_marker"
    malformed = "malformed"
    connect_failed = "connect_failed"
    reset = "reset"
    cancelled = "cancelled"
    unfinished = "unfinished"
    timed_out_connect = "timed_out_connect"
    timed_out_first_output = "timed_out_first_output"
    timed_out_silence = "timed_out_silence"
    timed_out_total = "timed_out_total"

    @property
    def is_timeout(self) -> bool:
        """Say whether one of our own deadlines ended the request."""
        return self.value.startswith("timed_out_")
