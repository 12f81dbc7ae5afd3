from dataclasses import asdict

import numpy as np
import pytest
from tests.instances import points_of

from prune4rel.engines.ray.backend import RayBackend, survey
from prune4rel.engines.ray.cluster import Cluster
from prune4rel.engines.ray.store import shards_of
from prune4rel.engines.ray.tiles import Layout
from prune4rel.errors import InputError
from prune4rel.neighbours import neighbourhood
from prune4rel.neighbours.build import neighbourhood_of
from prune4rel.progress import Progress

TIMES = {"seconds": 0, "approximate_seconds": 0}


@pytest.mark.parametrize("tau", ["auto", 0.9])
@pytest.mark.parametrize("n", [1, 2, 700, 3000])
def test_everything_is_settled_as_on_one_machine(here, n, tau):
    rng = np.random.default_rng(n)
    rows = (rng.normal(size=(30, 48))[rng.integers(30, size=n)] + 0.3 * rng.normal(size=(n, 48))).astype(np.float32)
    cluster = Cluster(here)
    surveyed = survey(cluster, shards_of(rows, "embeddings"), Layout(n, 400), Progress(), allow_zero=False, more=50)
    same = {"tau": tau, "similarity": "shifted-cosine", "strict": False, "target_degree": 9.0, "screening": "auto"}
    wanted = neighbourhood(points_of(rows), **same)
    found = neighbourhood_of(lambda: RayBackend(surveyed, "cpu"), **same)
    assert found.threshold == wanted.threshold
    assert asdict(found.estimate) | TIMES == asdict(wanted.estimate) | TIMES
    np.testing.assert_array_equal(surveyed.squares, points_of(rows).squared_norms)
    np.testing.assert_array_equal(surveyed.sample, rows[surveyed.sampled])
    with pytest.raises(InputError, match="screening must be one of"):
        neighbourhood_of(lambda: RayBackend(surveyed, "cpu"), **same | {"screening": "nothing"})
