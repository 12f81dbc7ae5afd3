"""With arrays alone, on a CPU, nothing imports PyTorch or Ray: tried where any attempt is an error."""

import subprocess
import sys

import pytest

REFUSE = """
import sys

class Refuse:
    def find_spec(self, name, *_):
        if name.partition(".")[0] in ("torch", "ray", "triton"):
            raise AssertionError(f"{name} is imported")

sys.meta_path.insert(0, Refuse())
"""
SELECT = """
import io
from pathlib import Path

import numpy as np
import prune4rel as p4r

rng = np.random.default_rng(0)
n = 40
E, P, y = rng.normal(size=(n, 5)), rng.dirichlet(np.ones(3), n), np.arange(n) % 3
names = ("losses", "grad_norms", "el2n", "aum", "scores", "forgetting")
signals = p4r.Signals(
    labels=y, embeddings=E, probabilities=P, ssl_embeddings=E, **{name: rng.random(n).round() for name in names}
)
signals.save("signals")
for name in p4r.list_methods():
    p4r.select(name, signals, size=9, device="cpu").save(f"{name}.parquet")
    assert len(p4r.Selection.load(f"{name}.parquet")) == 9
for options in ({"gain": "paper"}, {"gain": "coverage"}, {"initial": [1, 2]}, {"preset": "official"}):
    p4r.select(signals=Path("signals"), ratio=0.3, balanced=True, device="cpu", **options)
"""
REPORT = """
import numpy as np
from prune4rel.report import Cell, Story, map_of, write_figures, write_report

n = 40
rng = np.random.default_rng(0)
cell = Cell(
    method="uniform", label="uniform", learner="sop+", ratio=0.5, seed=0, size=20, indices=np.arange(20),
    test_accuracy=0.5, curve=({"epoch": 1.0, "test_accuracy": 0.5},),
)
story = Story(
    title="tiny", dataset="two", n=n, class_names=("a", "b"), labels=np.arange(n) % 2, class_counts=(20, 20),
    cells=(cell,), spotlight=cell, clean_labels=np.arange(n) // 20, corrected=np.arange(n) // 20,
    confidence=rng.random(n), neighbourhood=rng.random(n), map_xy=map_of(rng.normal(size=(n, 5)), kind="pca"),
)
write_report([story], "report.html")
write_figures([story], "figures")
"""
COMMAND_LINE = """
import numpy as np
from prune4rel.cli import VERBS, main

np.save("P.npy", np.full((6, 2), 0.5))
np.save("E.npy", np.eye(6))
np.save("y.npy", np.zeros(6, dtype=int))
ARRAYS = ("--embeddings", "E.npy", "--probabilities", "P.npy", "--labels", "y.npy", "--device", "cpu")
for words in (
    ("methods",), ("methods", "prune4rel"), ("select", *ARRAYS, "--size", "3", "--dry-run"),
    ("select", *ARRAYS, "--size", "3", "-o", "s.parquet"),
    *((verb, "--help") for verb in VERBS),
):
    sys.argv = ["prune4rel", *words]
    try:
        main()
    except SystemExit as end:
        assert end.code == 0, words
assert len(VERBS) > 10
"""


def run(script, folder):
    command = [sys.executable, "-c", REFUSE + script]
    return subprocess.run(command, check=False, cwd=folder, capture_output=True, text=True)


@pytest.mark.parametrize("script", [SELECT, REPORT, COMMAND_LINE], ids=["select", "report", "command line"])
def test_arrays_need_no_pytorch(script, tmp_path):
    done = run(script, tmp_path)
    assert done.returncode == 0, done.stderr


def test_an_attempt_would_be_seen(tmp_path):
    done = run("import prune4rel\nprune4rel.load_model('model')", tmp_path)
    assert done.returncode == 1
    assert "torch is imported" in done.stderr
