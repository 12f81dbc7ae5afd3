"""A user's own method: from a file beside them, and from an installed package."""

import subprocess
import sys

import numpy as np
import pytest

from prune4rel import Selection

METHOD = '''
import numpy as np
import prune4rel as p4r
from prune4rel.methods.ranking import keep_best


@p4r.register_method({name!r}, needs=("probabilities",), cost="one pass")
def surest(signals, request, *, power=1.0):
    """Keep the examples whose highest probability is highest."""
    return keep_best(signals.probabilities.max(axis=1) ** power, signals.labels, request, keep="highest")


def helper():
    """Not a method."""
'''

PROJECT = """
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "surest-method"
version = "1.0"

[project.entry-points."prune4rel.methods"]
surest = "surest_method"

[tool.hatch.build.targets.wheel]
include = ["surest_method.py"]
"""


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    np.save(tmp_path / "P.npy", rng.dirichlet(np.ones(3), size=30))
    np.save(tmp_path / "y.npy", np.arange(30) % 3)
    return tmp_path


def select(folder, method, *more, **environment):
    command = [
        sys.executable,
        "-m",
        "prune4rel",
        "select",
        "--method",
        method,
        "--probabilities",
        "P.npy",
        "--labels",
        "y.npy",
    ]
    command += ["--size", "5", "--output", "out.parquet", *more]
    import os

    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False, timeout=120, env=os.environ | environment
    )


def expected(folder):
    return np.argsort(-np.load(folder / "P.npy").max(axis=1), kind="stable")[:5].tolist()


def test_a_function_in_the_users_own_file(folder):
    (folder / "mine.py").write_text(METHOD.format(name="mine"))
    done = select(folder, "mine:surest", "--option", "power=2")
    assert done.returncode == 0, done.stderr
    assert Selection.load(folder / "out.parquet").indices.tolist() == expected(folder)


@pytest.mark.parametrize(
    ("method", "words"),
    [("nowhere:surest", "cannot import 'nowhere'"), ("mine:absent", "has no 'absent'"), ("mine:helper", "decorate")],
)
def test_what_is_wrong_with_a_users_method_is_said(folder, method, words):
    (folder / "mine.py").write_text(METHOD.format(name="mine"))
    done = select(folder, method)
    assert done.returncode == 2
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_an_installed_package_adds_its_method(folder, tmp_path_factory):
    source, target = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("target")
    (source / "pyproject.toml").write_text(PROJECT)
    (source / "surest_method.py").write_text(METHOD.format(name="surest"))
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*install, "--target", str(target), str(source)], check=True, capture_output=True, timeout=120)
    done = select(folder, "surest", PYTHONPATH=str(target))
    assert done.returncode == 0, done.stderr
    assert Selection.load(folder / "out.parquet").indices.tolist() == expected(folder)
    assert select(folder, "surest").returncode == 2
