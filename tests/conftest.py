import os
from pathlib import Path

# What NumPy and PyTorch read when they are loaded, here and in processes that tests start. Several test processes share
# the cores: threads that wait for each other by spinning would keep the others from working.
os.environ |= {"OPENBLAS_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive"}

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "here", deadline=None, print_blob=True, max_examples=40, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("ci", settings.get_profile("here"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "here")


@pytest.fixture(autouse=True)
def _environment():
    """Commands that are called in this process leave no word behind for the processes of later tests."""
    before = os.environ.get("PYTHONSAFEPATH")
    yield
    if before is None:
        os.environ.pop("PYTHONSAFEPATH", None)


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
def public_data():
    """Folder with data as they were published; CONTRIBUTING.md says what may lie in it."""
    if not (named := os.environ.get("PRUNE4REL_TEST_DATA")):
        pytest.skip("PRUNE4REL_TEST_DATA names no folder with public data")
    return Path(named)


@pytest.fixture(scope="session")
def real_cifar(public_data):
    """Folder with CIFAR-10, CIFAR-100 and their human labels as they were published."""
    if not (public_data / "cifar-10-batches-py").is_dir():
        pytest.skip(f"{public_data} holds no CIFAR")
    return public_data
