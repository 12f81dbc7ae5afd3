"""A run that is killed at any moment, and run again, comes out as if nothing had happened."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.pipeline.tiny import leavings

ROOT = Path(__file__).parents[2]
KILLS = {"epochs": 20, "equal-steps": 10}


@pytest.mark.parametrize("name", KILLS)
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_killed_at_random_moments(tmp_path, name):
    command = [sys.executable, "-m", "tests.pipeline.driver", str(tmp_path), str(KILLS[name]), "0", name]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"{KILLS[name]} kills"), done.stdout
    whole = leavings(tmp_path / "whole")
    assert {Path(name).name for name in whole} >= {
        "embeddings.npy",
        "selection.parquet",
        "model.safetensors",
        "corrected_labels.parquet",
        "metrics.jsonl",
        "result.json",
        "results.csv",
    }
    killed = sorted(tmp_path.glob("killed*"))
    assert killed
    for home in killed:
        assert leavings(home) == whole
        assert (home / "report.html").stat().st_size > 10_000
        assert not list(home.rglob(".*.part")) + list(home.rglob(".*.old"))
        assert not list(home.rglob("checkpoints"))
