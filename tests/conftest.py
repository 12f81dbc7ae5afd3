import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "here", deadline=None, print_blob=True, max_examples=40, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("ci", settings.get_profile("here"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "here")

UNPACKER = Path(__file__).resolve().parents[1].parent / "shared" / "data" / "unpack_cifar.py"


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def small():
    """Arrays of 30 examples in three classes, as `select` takes them."""
    rng = np.random.default_rng(1)
    return {
        "embeddings": rng.normal(size=(30, 8)).astype(np.float32),
        "probabilities": rng.dirichlet(np.ones(3), size=30),
        "labels": np.arange(30) % 3,
    }


@pytest.fixture(scope="session")
def real_cifar(tmp_path_factory):
    """Folder with CIFAR-10, CIFAR-100 and their human labels as they were published."""
    if named := os.environ.get("PRUNE4REL_TEST_CIFAR"):
        return Path(named)
    if not UNPACKER.exists():
        pytest.skip("the public CIFAR files are not here; PRUNE4REL_TEST_CIFAR may name their folder")
    pytest.importorskip("PIL")
    folder = tmp_path_factory.mktemp("cifar")
    subprocess.run([sys.executable, UNPACKER, folder], check=True, capture_output=True)
    return folder
