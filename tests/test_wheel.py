"""What is published, built and installed with what it declares and nothing else: no PyTorch, no Pillow, no pandas."""

import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from importlib.metadata import distribution
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def build(source, target, *kinds):
    command = [
        sys.executable,
        "-m",
        "hatchling",
        "build",
        "-d",
        target,
        *(word for kind in kinds for word in ("-t", kind)),
    ]
    subprocess.run(command, cwd=source, check=True, capture_output=True)


def closure(requirements):
    """Distributions that some requirements bring, theirs included; extras and other platforms left out."""
    from packaging.requirements import Requirement

    found, waiting = {}, list(requirements)
    while waiting:
        wanted = Requirement(waiting.pop())
        if (wanted.marker is None or wanted.marker.evaluate({"extra": ""})) and wanted.name not in found:
            found[wanted.name] = distribution(wanted.name)
            waiting += found[wanted.name].requires or []
    return found.values()


@pytest.fixture(scope="session")
def built(tmp_path_factory):
    """Folder with the sdist, the wheel, and the wheel that is built from the sdist."""
    folder = tmp_path_factory.mktemp("built")
    build(ROOT, folder, "sdist", "wheel")
    with tarfile.open(next(folder.glob("*.tar.gz"))) as archive:
        archive.extractall(folder / "sdist", filter="data")
    build(next((folder / "sdist").iterdir()), folder / "again", "wheel")
    return folder


@pytest.fixture(scope="session")
def installed(built, tmp_path_factory):
    """A function that calls the installed command in an environment that holds what the core declares."""
    home = tmp_path_factory.mktemp("empty") / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", home], check=True)
    packages = home / "lib" / f"python3.{sys.version_info.minor}" / "site-packages"
    for one in closure(PROJECT["dependencies"]):
        for top in {
            Path(file).parts[0] for file in one.files or () if Path(file).parts[0] not in ("..", "__pycache__")
        }:
            if not (packages / top).exists():
                (packages / top).symlink_to(one.locate_file(top))
    pip = [sys.executable, "-m", "pip", "--python", home / "bin" / "python", "install", "--quiet", "--no-deps"]
    subprocess.run([*pip, "--no-index", next(built.glob("*.whl"))], check=True)
    outside = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PRUNE4REL", "COV"))}

    def call(*words, cwd, program="prune4rel"):
        command = [home / "bin" / program, *map(str, words)]
        return subprocess.run(command, cwd=cwd, check=False, capture_output=True, text=True, env=outside)

    return call


@pytest.fixture(scope="session")
def cleaned(installed, tmp_path_factory):
    home = tmp_path_factory.mktemp("cleaned")
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 300)
    np.save(home / "E.npy", (rng.normal(size=(3, 16))[labels] + 0.3 * rng.normal(size=(300, 16))).astype(np.float32))
    np.save(home / "y.npy", np.where(rng.random(300) < 0.2, (labels + 1) % 3, labels))
    done = installed("clean", "--embeddings", "E.npy", "--labels", "y.npy", "-o", "cleaned", cwd=home)
    assert done.returncode == 0, done.stderr
    return home


def test_the_sdist_holds_all_that_the_wheel_is_made_of(built):
    whole, again = (zipfile.ZipFile(next(folder.glob("*.whl"))).namelist() for folder in (built, built / "again"))
    assert sorted(whole) == sorted(again)
    in_src = {str(path.relative_to(ROOT / "src")) for path in (ROOT / "src" / "prune4rel").rglob("*") if path.is_file()}
    assert {name for name in in_src if "__pycache__" not in name} <= set(whole)
    [sdist] = (built / "sdist").iterdir()
    assert {"tests", "benchmarks", "examples", "docs", "Makefile", "constraints.txt", "SECURITY.md"} <= {
        path.name for path in sdist.iterdir()
    }


def test_metadata_are_whole(built):
    wheel = zipfile.ZipFile(next(built.glob("*.whl")))
    metadata = wheel.read(next(name for name in wheel.namelist() if name.endswith("/METADATA"))).decode()
    for line in (
        "Author:",
        "Project-URL: Paper",
        "License-Expression: Apache-2.0",
        "Programming Language :: Python :: 3.13",
    ):
        assert line in metadata


def test_nothing_but_the_core_is_there(installed, tmp_path):
    names = ("torch", "PIL", "pandas", "timm", "ray", "pytest")
    code = f"from importlib.util import find_spec; print(*filter(find_spec, {names}))"
    assert installed("-c", code, cwd=tmp_path, program="python").stdout == "\n"


def test_clean_judges_and_writes_a_page(cleaned):
    assert {"labels.parquet", "labels.csv", "report.html", "signals"} <= {
        path.name for path in (cleaned / "cleaned").iterdir()
    }


def test_select_picks(installed, cleaned):
    done = installed("select", "--signals", "cleaned/signals", "--ratio", 0.2, "-o", "subset.parquet", cwd=cleaned)
    assert done.returncode == 0, done.stderr
    assert "60 of 300 examples" in done.stdout


def test_texts_are_read_too(installed, tmp_path):
    rows = [f"{i},{'a good and lovely film' if i % 2 else 'dull and bad'} number {i},{i % 2}" for i in range(60)]
    (tmp_path / "texts.csv").write_text("\n".join(["id,text,label", *rows]))
    done = installed("clean", "texts.csv", "--encoder", "tfidf", "-o", "cleaned", cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def test_demo_shows_what_needs_no_pytorch(installed, tmp_path):
    done = installed("demo", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "pip install 'prune4rel[train]'" in done.stdout
    assert "wrong labels" in done.stdout
    assert (tmp_path / "prune4rel-demo" / "report.html").is_file()
    assert installed("demo", cwd=tmp_path).returncode == 0, "again, into the same folder"


@pytest.mark.parametrize("words", [["doctor"], ["methods"], ["datasets"], ["encoders"], ["-V"], ["--help"]])
def test_listings_need_nothing_more(installed, tmp_path, words):
    done = installed(*words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("words", "extra"),
    [
        (["run", "--dataset", "digits", "-o", "run"], "train"),
        (["train", "--dataset", "digits", "-o", "model"], "train"),
        (["warmup", "--dataset", "digits", "-o", "signals"], "train"),
        (["learners"], "train"),
        (["embed", "photos", "-o", "embeddings"], "vision"),
        (["embed", "photos", "--encoder", "onnx:model.onnx", "-o", "embeddings"], "onnx"),
        (["clean", "texts.csv", "-o", "found"], "text"),
        (["clean", "texts.csv", "--encoder", "sentence-transformers/any", "-o", "found"], "sentence-transformers"),
        (["review", "cleaned"], "review"),
        (["select", "--signals", "cleaned/signals", "--size", "9", "--engine", "ray", "-o", "s.parquet"], "ray"),
    ],
)
def test_what_is_missing_is_said_with_the_line_that_brings_it(installed, cleaned, words, extra):
    for folder in ("photos/a", "photos/b"):
        (cleaned / folder).mkdir(parents=True, exist_ok=True)
        (cleaned / folder / "1.png").write_bytes(b"no matter")
    (cleaned / "texts.csv").write_text("text,label\ngood film,1\nbad film,0\n")
    done = installed(*words, cwd=cleaned)
    assert done.returncode == 2, done.stderr
    assert f"pip install 'prune4rel[{extra}]'" in done.stderr
    assert "Traceback" not in done.stderr
    assert extra in PROJECT["optional-dependencies"]


def test_every_line_that_brings_an_extra_names_one():
    told = {
        extra
        for folder in ("src", "docs")
        for path in (ROOT / folder).rglob("*")
        if path.suffix in (".py", ".md")
        for extra in re.findall(r"prune4rel\[([\w-]+)\]", path.read_text(encoding="utf-8"))
    }
    assert told <= set(PROJECT["optional-dependencies"])
