"""Readiness: epoll where there is one, the best selector elsewhere, behind one small face."""

from __future__ import annotations

import select
import selectors

READABLE = 1
WRITABLE = 4
BROKEN = 8 | 16  # EPOLLERR, EPOLLHUP


class SelectorPoller:
    """Offer epoll's calls over `selectors` on systems without epoll."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()

    def register(self, fd: int, events: int) -> None:
        self._selector.register(fd, self._mask(events))

    def modify(self, fd: int, events: int) -> None:
        self._selector.modify(fd, self._mask(events))

    def unregister(self, fd: int) -> None:
        self._selector.unregister(fd)

    def poll(self, timeout_s: float, maxevents: int = -1) -> list[tuple[int, int]]:
        del maxevents
        ready = self._selector.select(timeout_s)
        return [
            (
                key.fd,
                (READABLE if mask & selectors.EVENT_READ else 0)
                | (WRITABLE if mask & selectors.EVENT_WRITE else 0),
            )
            for key, mask in ready
        ]

    def close(self) -> None:
        self._selector.close()

    @staticmethod
    def _mask(events: int) -> int:
        mask = selectors.EVENT_READ if events & READABLE else 0
        return mask | (selectors.EVENT_WRITE if events & WRITABLE else 0)


Poller = SelectorPoller if not hasattr(select, "epoll") else select.epoll
