"""The drawing: valid XML that says what the plate says, where nothing leaves its place and nothing is foreign."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nameplate.ratingplate.face import BOLD, FOREIGN, MEDIUM, face
from nameplate.ratingplate.metal import LEFT, RIGHT, WIDTH
from nameplate.ratingplate.model import RatingPlate
from nameplate.ratingplate.sheet import SVG
from nameplate.ratingplate.svg import draw
from nameplate.ratingplate.tests.plates import DIGEST, HOSTILE, LONG_NAME, filled, not_rated, plate, rated

KNOWN = {"svg", "title", "desc", "style", "defs", "linearGradient", "radialGradient", "stop", "pattern"}
KNOWN |= {"g", "rect", "path", "line", "circle", "text"}
MOST_STAMPS = ("SIMULATED", "UNFINISHED")


class Box:
    """Hold where a text stands, by the plate's own faces."""

    def __init__(self, element: ET.Element) -> None:
        self.text = element.text or ""
        self.size = float(element.get("font-size", "0"))
        self.weight = int(element.get("font-weight", "0"))
        tracking = float(element.get("letter-spacing", "0"))
        known = FOREIGN if element.get("font-family") else face(self.weight)
        self.width = known.width(self.text, self.size, tracking)
        x = float(element.get("x", "0"))
        anchor = element.get("text-anchor", "start")
        self.left = x - {"start": 0.0, "middle": self.width / 2, "end": self.width}[anchor]
        self.right, self.baseline = self.left + self.width, float(element.get("y", "0"))
        told = element.get("textLength")
        self.told = None if told is None else float(told)

    def meets(self, other: Box) -> bool:
        """Tell whether two lines of text lie over each other, by the height of their letters."""
        apart = self.right <= other.left + 0.5 or other.right <= self.left + 0.5
        above = self.baseline <= other.baseline - 0.72 * other.size + 0.5
        below = other.baseline <= self.baseline - 0.72 * self.size + 0.5
        return not (apart or above or below)


def tag(element: ET.Element) -> str:
    return element.tag.removeprefix(f"{{{SVG}}}")


def boxes_of(root: ET.Element) -> list[Box]:
    """Return every text that is not turned."""
    turned = {
        id(text) for group in root.iter(f"{{{SVG}}}g") if group.get("transform") for text in group.iter()
    }
    return [Box(text) for text in root.iter(f"{{{SVG}}}text") if id(text) not in turned]


def hold_places(held: RatingPlate) -> None:
    """Check that every text stays within the frame, below the one above it, and as wide as it says."""
    root = ET.fromstring(draw(held, embed_fonts=False))
    boxes, bottom = boxes_of(root), float(root.get("height", "0")) - 13
    for box in boxes:
        assert box.left >= LEFT - 2.5, box.text
        assert box.right <= RIGHT + 0.01, box.text
        assert box.baseline + 0.2 * box.size <= bottom
        assert box.told is None or abs(box.told - box.width) < 0.02
    for at, box in enumerate(boxes):
        assert not any(box.meets(other) for other in boxes[at + 1 :]), box.text


def test_it_says_what_the_plate_says() -> None:
    """Number, unit, promise, machine, date and digest stand in the drawing, the number with its raw value."""
    root = ET.fromstring(draw(plate()))
    said = [element.text for element in root.iter(f"{{{SVG}}}text")]
    for wanted in (
        "9",
        "concurrent requests",
        "Qwen/Qwen3-32B",
        "4 x NVIDIA H200 141 GB",
        "not stated",
        "2026-11-30",
    ):
        assert wanted in said
    assert "ttft\u00a0p95\u00a0<\u00a0250\u00a0ms" in said
    assert f"sha256:{DIGEST[:16]}…" in said
    assert [element.get("data-value") for element in root.iter() if element.get("data-value")] == ["9"]
    described = root.findtext(f"{{{SVG}}}desc") or ""
    assert DIGEST in described
    assert "512 tokens in, 64 out: 9 concurrent requests" in described
    assert root.get("role") == "img"
    ids = (root.get("aria-labelledby") or "").split()
    assert ids == [element.get("id") for element in root if tag(element) in ("title", "desc")]


@pytest.mark.parametrize(
    "stamp", ["NOISY", "OPEN ABOVE", "OPEN BELOW", "UNSETTLED", "INVALID", "INTERRUPTED", "NONE"]
)
def test_status_beats_number(stamp: str) -> None:
    """A plate without a rating shows its status where the number would stand, and no number of its own."""
    root = ET.fromstring(draw(plate(not_rated(stamp))))
    said = [element.text for element in root.iter(f"{{{SVG}}}text")]
    assert stamp in said
    assert "NOT RATED" in said
    assert "RATED" not in said
    assert not any(element.get("data-value") for element in root.iter())


def test_simulated_is_stamped() -> None:
    """What no machine did says so in the drawing, in its title and in its description."""
    root = ET.fromstring(draw(plate(stamps=("SIMULATED",))))
    assert "SIMULATED" in [element.text for element in root.iter(f"{{{SVG}}}text")]
    assert "simulated" in (root.findtext(f"{{{SVG}}}title") or "")
    assert "SIMULATED" in (root.findtext(f"{{{SVG}}}desc") or "")


@pytest.mark.parametrize("text", HOSTILE)
def test_foreign_text_is_only_text(text: str) -> None:
    """Whatever a name holds, the drawing is valid XML of known elements, without links, scripts and events."""
    drawn = draw(filled(text))
    root = ET.fromstring(drawn)
    for element in root.iter():
        assert tag(element) in KNOWN
        for name, value in element.attrib.items():
            assert not name.lower().startswith("on")
            assert "href" not in name
            assert "http" not in value
    assert drawn.encode("utf-8")
    assert len(drawn) < 200_000


@pytest.mark.parametrize("text", HOSTILE)
def test_foreign_text_keeps_its_place(text: str) -> None:
    """Long, wide, mirrored and empty texts stay in their cells."""
    hold_places(filled(text))


@pytest.mark.parametrize("count", range(1, 9))
def test_one_to_eight_ratings(count: int) -> None:
    """Any number of shapes has its lines, rated or not, and none touches another."""
    held = [rated(str(10**at), 10**at, f"{8 * at} tokens in, 64 out") for at in range(count)]
    hold_places(plate(*held, model=LONG_NAME))
    hold_places(plate(*[not_rated("INTERRUPTED") for _ in range(count)], stamps=MOST_STAMPS))
    root = ET.fromstring(draw(plate(*held)))
    values = [element.get("data-value") for element in root.iter() if element.get("data-value")]
    assert values == [repr(rating.number) for rating in held]


def test_long_names_are_whole_in_the_description() -> None:
    """A name that the plate has no room for ends in an ellipsis there and is whole in the description."""
    name = "organisation/" + "a-very-long-part-" * 20
    root = ET.fromstring(draw(plate(model=name)))
    said = [element.text or "" for element in root.iter(f"{{{SVG}}}text")]
    assert any(text.endswith("…") and "very-long-part" in text for text in said)
    assert name in (root.findtext(f"{{{SVG}}}desc") or "")


@settings(max_examples=40, deadline=None)
@given(st.text(max_size=120), st.text(max_size=120))
def test_any_text_keeps_its_place(model: str, promise: str) -> None:
    """No text of any characters leaves its cell or covers another."""
    hold_places(plate(model=model, hardware=promise, promise=promise))
    hold_places(plate(rated(subject=model), not_rated("NOT READY", promise), promise=model))


def test_faces_know_their_letters() -> None:
    """Both faces have what plates say themselves, digits are of one height of em, and bold is wider."""
    for weight in (MEDIUM, BOLD):
        assert face(weight).has("ABCXYZabcxyz0123456789 <>=%/.,:;·…≥≤×–—µé")
        assert not face(weight).has("模")
    assert face(BOLD).width("rated", 10) > face(MEDIUM).width("rated", 10)
    assert face(BOLD).width("模", 10) == 10
    assert face(BOLD).width("e\u0301", 10) == face(BOLD).width("e", 10)
    assert WIDTH > RIGHT > LEFT
