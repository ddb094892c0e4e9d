"""A view's faults stay in the view: no trial ends because a line could not be drawn."""

from __future__ import annotations

from types import TracebackType

from nameplate.contract.errors import NameplateError


class Harmless:
    """Swallow what goes wrong inside, but never an interrupt: its handler may raise at any line."""

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        return isinstance(error, Exception) and not isinstance(error, NameplateError)
