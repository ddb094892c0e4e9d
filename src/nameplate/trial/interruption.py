"""A person's interrupts: the first drains, the second cancels; either way everything so far is sealed."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from nameplate.client.process import Command
from nameplate.contract.errors import Interrupted


class Interruption:
    """Count interrupts. While a load runs they steer it; at any other time they raise `Interrupted` at once."""

    def __init__(self) -> None:
        self.count = 0
        self._loading = False
        self._told = 0

    def interrupt(self) -> None:
        """Take one interrupt."""
        self.count += 1
        if not self._loading:
            raise Interrupted("Interrupted.", hint="Everything measured so far is on disk.")

    @contextmanager
    def loading(self) -> Iterator[None]:
        """Mark the time during which interrupts only steer."""
        self._loading = True
        try:
            yield
        finally:
            self._loading = False

    def command(self) -> Command | None:
        """Return what a running load should be told, once for each interrupt."""
        if self.count == self._told:
            return None
        self._told = self.count
        return "stop" if self.count == 1 else "cancel"

    @contextmanager
    def handling(self) -> Iterator[None]:
        """Take the terminal's interrupt and the polite end signal while the context lasts."""

        def handle(_number: int, _frame: FrameType | None) -> None:
            self.interrupt()

        before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
