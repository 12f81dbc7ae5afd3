"""Print the lowest versions that pyproject.toml allows, as constraints for pip; PyTorch alone stays the pinned one."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]


PINNED = ("torch", "torchvision")


def lowest(pyproject, pinned):
    """One line a package, from the dependencies, all extras and the group of the tests.

    >>> project = {"dependencies": ["numpy>=2.1"], "optional-dependencies": {"train": ["torch>=2.6"]}}
    >>> lowest({"project": project, "dependency-groups": {"test": ["ray[data]>=2.40"]}}, "torch==2.9")
    ['numpy==2.1', 'ray==2.40', 'torch==2.9']
    """
    wanted = [
        *pyproject["project"]["dependencies"],
        *(one for extra in pyproject["project"]["optional-dependencies"].values() for one in extra),
        *pyproject["dependency-groups"]["test"],
    ]
    floors = dict(re.fullmatch(r"([\w-]+)(?:\[.*\])?>=([\d.]+)", one).groups() for one in wanted if ">=" in one)
    floors |= {name: version for name, version in re.findall(r"^(\S+)==(\S+)$", pinned, re.MULTILINE) if name in PINNED}
    return [f"{name}=={version}" for name, version in sorted(floors.items())]


if __name__ == "__main__":
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    print(*lowest(project, (ROOT / "constraints.txt").read_text(encoding="utf-8")), sep="\n")  # noqa: T201
