"""The requests as bytes, ready before they are due."""

from __future__ import annotations

from nameplate import __version__
from nameplate.contract.target import Credentials, Target
from nameplate.prompts.store import PromptStore

# Answers that were sent together often end together, and then as many requests start at once; unpacking one takes
# longer (30 us, long ones 100 us) than starting it.
AHEAD = 128
# An opening wave of long prompts is held ready up to this size; what is beyond it is unpacked as it is sent.
READY_LIMIT_BYTES = 64 << 20


class Bodies:
    """Turn prompts of a store into whole HTTP requests, a few ahead of the load.

    With several workers what lies before the last one asked for is another's, and is not kept.
    """

    def __init__(
        self, store: PromptStore, target: Target, credentials: Credentials, workers: int = 1
    ) -> None:
        self._store = store
        self._shared = workers > 1
        self._head = request_head(target, credentials)
        self._ready: dict[int, bytes] = {}
        self._ready_bytes = 0
        self._next = 0
        self._until = 0

    def request(self, index: int) -> bytes:
        """Return the whole request with this index."""
        ready = self._ready.pop(index, None)
        while self._shared and self._ready and (first := next(iter(self._ready))) < index:
            self._ready_bytes -= len(self._ready.pop(first))
        if index >= self._next:
            self._next = index + 1
            self._until = max(self._until, index + 1 + AHEAD)
        if ready is not None:
            self._ready_bytes -= len(ready)
            return ready
        return self._build(index)

    def prepare(self, first: int, count: int) -> None:
        """Make the first `count` requests of a stage ready, as far as memory allows."""
        self._ready.clear()
        self._ready_bytes = 0
        self._next = first
        self._until = first + max(count, AHEAD)
        while self.top_up():
            pass

    def top_up(self) -> bool:
        """Make one more request ready; False when enough are."""
        if (
            self._next >= self._until
            or self._ready_bytes >= READY_LIMIT_BYTES
            or self._next >= len(self._store)
        ):
            return False
        data = self._build(self._next)
        self._ready[self._next] = data
        self._ready_bytes += len(data)
        self._next += 1
        return True

    def _build(self, index: int) -> bytes:
        body = self._store.body(index)
        return b"%s%d\r\n\r\n%s" % (self._head, len(body), body)


def request_head(target: Target, credentials: Credentials) -> bytes:
    """Build everything before the body, up to the value of Content-Length, which comes last."""
    given = {name.lower() for name, _ in credentials.headers}
    lines = [f"POST {target.generate_path} HTTP/1.1", f"Host: {target.authority}"]
    ours = (
        ("User-Agent", f"nameplate/{__version__}"),
        ("Accept", "text/event-stream, application/json"),
        ("Accept-Encoding", "identity"),
        ("Content-Type", "application/json"),
    )
    lines += [f"{name}: {value}" for name, value in ours if name.lower() not in given]
    lines += [f"{name}: {value}" for name, value in credentials.headers]
    return ("\r\n".join(lines) + "\r\nContent-Length: ").encode("latin-1")
