import numpy as np
import pytest
from tests.instances import many, points_of

from prune4rel.engines.ray.gpu import edges_on_torch
from prune4rel.engines.ray.tiles import Block, find_edges
from prune4rel.neighbours.screen import choose_screen
from prune4rel.neighbours.similarity import Threshold


@pytest.mark.parametrize("screening", ["none", "projection"])
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("inside", [False, True])
def test_pytorch_finds_the_same_edges(screening, dtype, inside):
    rows = many(150, dim=64).rows.astype(dtype)
    points, threshold = points_of(rows), Threshold(0.95, "shifted-cosine")
    screen = choose_screen(points.unit(slice(None)), threshold.cosine, screening, check_cost=1.0, half=True)
    squares = points.squared_norms
    blocks = [Block(0, rows[:80], squares[:80], None), Block(80, rows[80:], squares[80:], None)]
    first, last = (blocks[0], blocks[0]) if inside else blocks
    wanted = find_edges(first, last, threshold, screen, "cpu")
    parts = edges_on_torch(blocks[:1] if inside else blocks, screen, threshold, "cpu")
    i, j, weight = (np.concatenate([part[k] for part in parts]) for k in range(3))
    order = np.lexsort((wanted.j, wanted.i))
    np.testing.assert_array_equal(i, wanted.i[order])
    np.testing.assert_array_equal(j, wanted.j[order])
    np.testing.assert_array_equal(weight, wanted.weight[order])
    assert i.size > 100
