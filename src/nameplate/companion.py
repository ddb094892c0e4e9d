"""A process that works beside a load at its own pace, and ends when its parent closes the pipe to it.

Parsing a page or asking a driver in the client's own process would delay its loop; a child that obeys a pipe ends with
its parent, however that ends.
"""

from __future__ import annotations

import os
import selectors
import subprocess
import sys
import time
from collections.abc import Iterator

from nameplate.contract.errors import ClientError

STOP_S = 5.0


class Companion:
    """Start and stop one child, `python -m MODULE ...`; it ends its own child and no other."""

    def __init__(self, module: str, *arguments: str, task: str, stop_s: float = STOP_S) -> None:
        self._command = [sys.executable, "-m", module, *arguments]
        self._task = task
        self._stop_s = stop_s
        self._child: subprocess.Popen[bytes] | None = None

    @property
    def running(self) -> bool:
        return self._child is not None and self._child.poll() is None

    def start(self, order: bytes = b"") -> None:
        """Start the child and hand it its order; ClientError where it cannot be started."""
        try:
            self._child = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,  # the terminal's interrupt is for the parent, which then stops it
            )
            if order:
                stdin = self._child.stdin
                assert stdin is not None
                stdin.write(order)
                stdin.flush()
        except OSError as error:
            self.stop()
            raise ClientError(
                f"The process that {self._task} could not be started: {error.strerror}.",
                hint="Is the number of processes limited?",
            ) from None

    def stop(self) -> int | None:
        """Close its stdin and wait; return its exit status, None if it was never started or cannot be ended."""
        child, self._child = self._child, None
        if child is None:
            return None
        if child.stdin is not None:
            try:
                child.stdin.close()
            except OSError:
                pass
        for end in (None, child.terminate, child.kill):
            if end is not None:
                end()
            try:
                return child.wait(self._stop_s)
            except subprocess.TimeoutExpired:
                continue
        return None


def beats(stdin: int, interval_s: float) -> Iterator[None]:
    """Yield at once and then each interval, until `stdin` is at its end: the child's side.

    Work that takes longer than the interval skips the missed beats instead of catching up in a burst.
    """
    due_s = time.monotonic()
    with selectors.DefaultSelector() as selector:
        selector.register(stdin, selectors.EVENT_READ)
        while True:
            yield
            now_s = time.monotonic()
            due_s += interval_s * max(1, -(-(now_s - due_s) // interval_s))
            while (left_s := due_s - time.monotonic()) > 0:
                if selector.select(left_s) and not os.read(stdin, 4096):
                    return
            if selector.select(0) and not os.read(stdin, 4096):
                return
