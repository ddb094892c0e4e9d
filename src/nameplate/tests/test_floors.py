"""The house's floors: who may import whom."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

# A room may import from its own floor and from those below; the exceptions are written out beneath.
FLOORS = {
    "zstd": 0,
    "contract": 1,
    "companion": 1,
    "verdict": 1,
    "schedule": 1,
    "wire": 1,
    "statistics": 1,
    "evidence": 2,
    "prompts": 2,
    "engines": 2,
    "hosts": 2,
    "client": 3,
    "sim": 3,
    "measure": 4,
    "verify": 4,
    "trial": 5,
    "studies": 5,
    "exchange": 5,
    "compare": 5,
    "report": 6,
    "pages": 6,
    "ratingplate": 6,
    "cli": 6,
}

# Sideways on one floor: only along these arrows, so that no two rooms know each other.
SIDEWAYS = {
    ("companion", "contract"),
    ("verdict", "contract"),
    ("verdict", "statistics"),
    ("verdict", "wire"),
    ("schedule", "contract"),
    ("engines", "prompts"),
    ("sim", "client"),
    ("verify", "measure"),
    ("compare", "exchange"),
    ("studies", "trial"),
    ("pages", "report"),
    ("cli", "report"),
    ("cli", "pages"),
    ("cli", "ratingplate"),
    ("pages", "ratingplate"),
    ("ratingplate", "report"),
}

# Pure rooms take time and bytes as arguments: no clock, no socket, no process, no file.
PURE = ("contract", "verdict", "schedule", "wire", "statistics")
IMPURE = {
    "time",
    "socket",
    "ssl",
    "select",
    "selectors",
    "subprocess",
    "threading",
    "os",
    "asyncio",
    "random",
}

# What verify must not know: it checks what these made.
UNKNOWN_TO_VERIFY = {"client", "studies", "trial", "sim"}


def modules(room: str) -> list[Path]:
    """List a room's modules without its tests."""
    single = ROOT / f"{room}.py"
    if single.exists():
        return [single]
    return [path for path in (ROOT / room).rglob("*.py") if "tests" not in path.relative_to(ROOT).parts]


def imports(path: Path) -> set[str]:
    """Return every module that a file imports, by full name, at whatever depth."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
            if node.module == "nameplate":
                found |= {f"nameplate.{alias.name}" for alias in node.names}
    return found


def rooms_of(path: Path) -> set[str]:
    """Return the rooms that a file imports from."""
    parts = [name.split(".") for name in imports(path)]
    return {part[1] for part in parts if part[0] == "nameplate" and len(part) > 1} & FLOORS.keys()


def test_every_room_has_a_floor() -> None:
    """Each package of the source tree is on the map."""
    found = {path.name for path in ROOT.iterdir() if path.is_dir() and any(path.glob("*.py"))} - {"tests"}
    assert found <= FLOORS.keys()


def test_imports_go_down() -> None:
    """No room imports from a higher floor, and sideways only along a named arrow."""
    wrong = []
    for room, floor in FLOORS.items():
        for path in modules(room):
            for other in rooms_of(path) - {room}:
                if FLOORS[other] > floor or (FLOORS[other] == floor and (room, other) not in SIDEWAYS):
                    wrong.append(f"{path.relative_to(ROOT)} imports {other}")
    assert not wrong, "\n".join(sorted(wrong))


def test_pure_rooms_touch_nothing() -> None:
    """Pure rooms import no clock, socket, process or file module."""
    wrong = [
        f"{path.relative_to(ROOT)} imports {name}"
        for room in PURE
        for path in modules(room)
        for name in imports(path)
        if name.split(".")[0] in IMPURE
    ]
    assert not wrong, "\n".join(sorted(wrong))


def test_verify_is_independent() -> None:
    """The verifier imports nothing of what produced the evidence."""
    wrong = [
        f"{path.relative_to(ROOT)} imports {room}"
        for path in modules("verify")
        for room in rooms_of(path) & UNKNOWN_TO_VERIFY
    ]
    assert not wrong, "\n".join(sorted(wrong))
