"""Examples run, and do what they say."""

import re
import runpy
from pathlib import Path

import numpy as np
import pytest
import torch

import prune4rel as p4r

FOLDER = Path(__file__).parents[2] / "examples"
LOOPS = {"sop_plus_in_your_loop.py": 20, "elr_in_your_loop.py": 20, "trust_in_your_loop.py": 20}
"""Epochs that show what each is for."""


@pytest.fixture(scope="module")
def page():
    return runpy.run_path(str(FOLDER / "prune4rel_in_numpy.py"))


def test_every_example_is_here_and_short():
    lines = {path.name: len(path.read_text(encoding="utf-8").splitlines()) for path in FOLDER.glob("*.py")}
    assert lines.keys() >= {"prune4rel_in_numpy.py", *LOOPS}
    assert all(
        re.search(r"^    python examples/\w+\.py$", path.read_text(), re.MULTILINE) for path in FOLDER.glob("*.py")
    )
    assert lines["prune4rel_in_numpy.py"] <= 120
    assert all(lines[name] <= 65 for name in LOOPS)


@pytest.mark.parametrize("balanced", [False, True])
@pytest.mark.parametrize("tau", [0.0, 0.8, 0.95, 1.0])
@pytest.mark.parametrize("seed", range(3))
def test_the_page_of_numpy_picks_what_the_package_picks(page, seed, tau, balanced):
    rng = np.random.default_rng(seed)
    arrays = {
        "embeddings": rng.normal(size=(20, 4))[rng.integers(20, size=80)] + 0.1 * rng.normal(size=(80, 4)),
        "probabilities": rng.dirichlet(np.ones(3), size=80),
        "labels": rng.integers(0, 3, size=80),
    }
    picks, objective = page["prune4rel"](**arrays, size=40, tau=tau, balanced=balanced)
    chosen = p4r.select("prune4rel", **arrays, size=40, tau=tau, balanced=balanced, device="cpu")
    assert chosen.indices.tolist() == picks.tolist()
    assert objective == pytest.approx(chosen.objective)


def test_the_page_shows_what_it_can(page, capsys):
    page["main"]()
    said = capsys.readouterr().out
    assert "wrong labels: 0% here" in said
    assert "the package picks the same: True" in said


@pytest.mark.parametrize("name", LOOPS)
def test_a_loop_of_ones_own_learns_better_than_cross_entropy(name):
    torch.set_num_threads(1)
    loop = runpy.run_path(str(FOLDER / name))
    better, plain = (loop["train"](robust=robust, epochs=LOOPS[name]) for robust in (True, False))
    if isinstance(better, tuple):
        (better, labels), (plain, _) = better, plain
        assert labels.noise_rate == pytest.approx(0.4, abs=0.1)
    assert better > plain + 0.08
    assert better > 0.75
