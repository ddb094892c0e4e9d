"""What all tests of the client share."""

import pytest


@pytest.fixture(autouse=True)
def _quick_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait less between the attempts before a load gives up a server."""
    monkeypatch.setattr("nameplate.client.loop.REOPEN_EVERY_NS", 10_000_000)
