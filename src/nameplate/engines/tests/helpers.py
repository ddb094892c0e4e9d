"""Adapters over fakes, and the recorded pages."""

from __future__ import annotations

from pathlib import Path

from nameplate.contract.target import Target
from nameplate.engines.adapter import Adapter
from nameplate.engines.detect import detect
from nameplate.engines.fakes import FakeClock, FakeServer, FakeTraits, reply
from nameplate.engines.transport import Reply, Transport

DATA = Path(__file__).parent / "data"
TARGET = Target.parse("http://fake.test")


def golden(name: str) -> Reply:
    """Return a recorded answer of a real server."""
    kind = "application/json" if name.endswith(".json") else "text/plain; version=0.0.4; charset=utf-8"
    return reply((DATA / name).read_bytes(), content_type=kind)


def detected(transport: Transport, target: Target = TARGET) -> Adapter:
    return detect(transport, target, FakeClock())


def fake_adapter(traits: FakeTraits | None = None) -> tuple[Adapter, FakeServer]:
    server = FakeServer(traits)
    return detected(server), server
