"""Print the lowest versions that pyproject.toml allows, as constraints for pip; PyTorch alone stays the pinned one."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]


def lowest(pyproject, pinned):
    """One line a package, from the dependencies and all extras.

    >>> lowest({"dependencies": ["torch>=2.6", "ray[data]>=2.40"], "optional-dependencies": {}}, "torch==2.9")
    ['ray==2.40', 'torch==2.9']
    """
    wanted = [
        *pyproject["dependencies"],
        *(one for extra in pyproject["optional-dependencies"].values() for one in extra),
    ]
    floors = dict(re.fullmatch(r"([\w-]+)(?:\[.*\])?>=([\d.]+)", one).groups() for one in wanted if ">=" in one)
    floors["torch"] = re.search(r"^torch==(\S+)$", pinned, re.MULTILINE)[1]
    return [f"{name}=={version}" for name, version in sorted(floors.items())]


if __name__ == "__main__":
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    print(*lowest(project, (ROOT / "constraints.txt").read_text(encoding="utf-8")), sep="\n")  # noqa: T201
