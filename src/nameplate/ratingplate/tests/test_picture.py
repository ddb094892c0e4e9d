"""The picture: of the drawing's size, with something on it, and the same each time."""

from __future__ import annotations

import builtins
import struct
import xml.etree.ElementTree as ET
import zlib

import pytest

from nameplate.contract.errors import ClientError
from nameplate.ratingplate.picture import SCALE, render
from nameplate.ratingplate.svg import draw
from nameplate.ratingplate.tests.plates import HOSTILE, not_rated, plate, rated

pytest.importorskip("resvg_py")


def size_of(png: bytes) -> tuple[int, int]:
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = struct.unpack_from(">II", png, 16)
    return width, height


def pixels(png: bytes) -> bytes:
    """Return the unpacked scan lines, still filtered: enough to tell a blank picture from a drawn one."""
    data, at = b"", 8
    while at < len(png):
        length, kind = struct.unpack_from(">I4s", png, at)
        if kind == b"IDAT":
            data += png[at + 8 : at + 8 + length]
        at += 12 + length
    return zlib.decompress(data)


def test_size_and_ink() -> None:
    """A picture is twice as large as the drawing, not blank, and the same each time, byte by byte."""
    held = plate(not_rated("NOISY"), stamps=("SIMULATED",))
    png = render(held)
    root = ET.fromstring(draw(held))
    width, height = size_of(png)
    assert width == float(root.get("width", "0")) * SCALE
    assert abs(height - float(root.get("height", "0")) * SCALE) <= 1
    assert len(set(pixels(png))) > 50
    assert render(held) == png


def test_any_text_is_a_picture() -> None:
    """Characters that no font has, and any others, leave a picture all the same."""
    held = plate(*(rated(subject=text) for text in HOSTILE), model=HOSTILE[4], hardware="".join(HOSTILE[5:9]))
    assert size_of(render(held))[0] == 1280


def test_without_the_renderer(monkeypatch: pytest.MonkeyPatch) -> None:
    """An installation without resvg says so, and what to do."""
    real = builtins.__import__

    def missing(name: str, *more: object) -> object:
        if name == "resvg_py":
            raise ImportError("No module named 'resvg_py'")
        return real(name, *more)  # type: ignore[arg-type]

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(ClientError) as caught:
        render(plate())
    assert "resvg" in caught.value.what
    assert "pip install resvg-py" in (caught.value.hint or "")
