"""Ray on this machine, once for all tests that want it; and signals whose selection is worth comparing."""

import importlib.util

import numpy as np
import pytest

from prune4rel.engines.ray.cluster import QUIET, _loopback_only
from prune4rel.signals import Signals

STORE = 128 * 2**20


def start_ray(**options):
    import ray

    with _loopback_only(ray):
        ray.init(
            "local",
            num_cpus=2,
            include_dashboard=False,
            object_store_memory=STORE,
            log_to_driver=False,
            logging_level="error",
            **options,
        )
    return ray


@pytest.fixture(scope="session")
def _ray_ends():
    yield
    import ray

    ray.shutdown()


@pytest.fixture
def here(_ray_ends, monkeypatch):
    """Ray with two workers in this process; `select` uses it and leaves it alone."""
    if importlib.util.find_spec("ray") is None:
        pytest.skip("Ray is not installed")
    for name, value in QUIET.items():
        monkeypatch.setenv(name, value)
    import ray

    return ray if ray.is_initialized() else start_ray()


@pytest.fixture(scope="session")
def clusters():
    """Signals of 700 examples in 60 cliques, some of them exact duplicates, in three classes."""
    rng = np.random.default_rng(0)
    n = 700
    centres = rng.normal(size=(60, 24))
    spread = rng.choice([0.0, 0.15], size=(n, 1))
    rows = centres[rng.integers(60, size=n)] + spread * rng.normal(size=(n, 24))
    return Signals(
        labels=rng.integers(3, size=n),
        embeddings=rows.astype(np.float32),
        probabilities=rng.dirichlet(np.ones(3), n).astype(np.float32),
    )
