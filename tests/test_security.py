"""What SECURITY.md promises of an installation."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
EXCEPTED = ("torch", "torchvision")
LOCKED = ("train", "vision", "text", "report", "review", "onnx")


def plain(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def pins(name):
    text = (ROOT / name).read_text(encoding="utf-8")
    return {plain(name): version for name, version in re.findall(r"^([\w.-]+)==([^\s;\\]+)", text, re.MULTILINE)}


def test_what_is_installed_by_hashes_is_what_is_tested():
    tested = pins("constraints.txt")
    for name, version in pins("requirements.lock").items():
        assert tested.get(name, version) == version, name


def test_every_dependency_is_locked_with_hashes():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = [*project["dependencies"], *(each for extra in LOCKED for each in project["optional-dependencies"][extra])]
    names = {plain(re.match(r"[\w.-]+", each)[0]) for each in wanted} - {"prune4rel", *EXCEPTED}
    locked = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    assert names <= pins("requirements.lock").keys()
    entries = re.split(r"^(?=\S)", locked, flags=re.MULTILINE)[1:]
    assert all("--hash=sha256:" in entry for entry in entries if not entry.startswith("#"))
    assert "://" not in locked
