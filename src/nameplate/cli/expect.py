"""Reading what a baseline is expected to show: an earlier plate, or figures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from nameplate.contract.errors import CallerError
from nameplate.contract.quantity import parse_duration_ns, parse_ratio
from nameplate.contract.shape import Shape
from nameplate.measure.plate import Plate, decode_plate, expectation_of
from nameplate.verdict.expectation import DEFAULT_TOLERANCE, Expectation

_HINT = (
    "Give a plate.json or a study's directory, or figures: ttft=2.1s,prefill=3840,decode=104,tolerance=10%."
)


def read_expectations(text: str | None, shapes: Sequence[Shape]) -> dict[Shape, Expectation]:
    """Read `--expect` for each shape; CallerError where it is neither a plate nor figures."""
    if text is None:
        return {}
    path = Path(text)
    if path.exists():
        plate = read_plate(path)
        found = {shape: expectation_of(plate, shape, f"the plate {path}") for shape in shapes}
        if not any(found.values()):
            raise CallerError(f"The plate {path} has none of the shapes {', '.join(map(str, shapes))}.")
        return {shape: expectation for shape, expectation in found.items() if expectation is not None}
    figures = _figures(text)
    return dict.fromkeys(shapes, figures)


def read_plate(path: Path) -> Plate:
    """Read a plate from its file or its study's directory; CallerError where there is none."""
    file = path / "plate.json" if path.is_dir() else path
    try:
        return decode_plate(file.read_bytes())
    except OSError as error:
        raise CallerError(f"The plate {file} cannot be read: {error.strerror}.", hint=_HINT) from None


def _figures(text: str) -> Expectation:
    given: dict[str, str] = {}
    for part in text.split(","):
        name, equals, value = part.partition("=")
        if not equals or name.strip() not in ("ttft", "prefill", "decode", "tolerance"):
            raise CallerError(f"--expect {text!r} is neither a plate nor figures.", hint=_HINT)
        given[name.strip()] = value.strip()
    try:
        prefill = float(given["prefill"]) if "prefill" in given else None
        decode = float(given["decode"]) if "decode" in given else None
    except ValueError:
        raise CallerError(f"--expect {text!r} has a figure that is no number.", hint=_HINT) from None
    return Expectation(
        parse_duration_ns(given["ttft"]) if "ttft" in given else None,
        prefill,
        decode,
        parse_ratio(given["tolerance"]) if "tolerance" in given else DEFAULT_TOLERANCE,
    )
