"""Who may import whom: one direction, never upward."""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "prune4rel"
FLOORS = (
    (
        "errors",
        "_version",
        "_compiled",
        "machine",
        "blocks",
        "progress",
        "half",
        "storage",
        "provenance",
        "registry",
        "confusion",
        "noise",
    ),
    ("signals", "selection"),
    ("neighbours", "gradients", "augment", "networks"),
    ("data", "loading"),
    ("greedy",),
    ("methods", "scale", "learners"),
    ("training", "report"),
    ("pipeline",),
    ("recipes",),
    ("cli", "__main__"),
)
FLOOR_OF = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}


def imports_of(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("prune4rel."):
            yield node.module.split(".")[1]


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda path: str(path.relative_to(SOURCE)))
def test_no_module_imports_upward(path):
    room = path.relative_to(SOURCE).parts[0].removesuffix(".py")
    if room == "__init__":
        return
    for other in imports_of(path):
        assert FLOOR_OF[other] <= FLOOR_OF[room], f"{room} must not import {other}"


def test_modules_stay_small():
    for path in SOURCE.rglob("*.py"):
        assert len(path.read_text(encoding="utf-8").splitlines()) <= 500, path
