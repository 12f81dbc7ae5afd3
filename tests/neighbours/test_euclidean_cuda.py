import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.instances import instances, many, points_of
from tests.oracles import geometry as oracle

from prune4rel.neighbours import euclidean_cuda
from prune4rel.neighbours.euclidean import Space
from prune4rel.neighbours.euclidean_cuda import TorchSpace

CUDA = pytest.param(
    "cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="PyTorch sees no CUDA device here")
)
devices = pytest.mark.parametrize("device", ["cpu", CUDA])


@devices
@given(
    instance=instances(n=st.integers(1, 12)),
    some=st.lists(st.integers(0, 11), min_size=1, max_size=6),
    tile=st.integers(1, 60),
)
def test_nearest_is_that_of_exact_arithmetic(device, instance, some, tile):
    space = TorchSpace.on(Space.of(instance.points), device, tile_numbers=tile)
    some = np.array(some) % len(instance)
    nearest = np.full(len(instance), np.inf)
    for part in np.array_split(some, 2):
        if part.size:
            space.lower_nearest(part, nearest)
    rows = oracle.exact(instance.rows)
    expected = [float(min(oracle.squared(row, rows[x]) for x in some)) for row in rows]
    np.testing.assert_allclose(nearest, expected, rtol=1e-12)


@devices
@pytest.mark.parametrize("kind", [np.float16, np.float32])
@pytest.mark.parametrize("dim", [3, 100, 513])
@pytest.mark.parametrize("tile", [64, 2**27])
def test_nearest_is_that_of_the_cpu_bit_for_bit(device, kind, dim, tile):
    space = Space.of(points_of(many(600, dim=dim).rows.astype(kind)))
    other = TorchSpace.on(space, device, tile_numbers=tile)
    one, two = np.full(600, np.inf), np.full(600, np.inf)
    for begin in (0, 50, 130):
        some = np.arange(begin, begin + 40)
        space.lower_nearest(some, one)
        other.lower_nearest(some, two)
        np.testing.assert_array_equal(one, two)


@devices
@pytest.mark.parametrize("scale", [1e-42, 1e-20, 1e20, 1e37])
def test_tiny_and_huge_rows_are_no_trouble(device, scale):
    space = Space.of(points_of((np.sign(many(80, dim=5).rows) * scale).astype(np.float32)))
    one, two = np.full(80, np.inf), np.full(80, np.inf)
    space.lower_nearest(np.array([3, 5, 70]), one)
    TorchSpace.on(space, device).lower_nearest(np.array([3, 5, 70]), two)
    np.testing.assert_array_equal(one, two)


@devices
def test_products_are_those_of_the_cpu_up_to_rounding(device, rng):
    space = Space.of(points_of(rng.normal(size=(30, 12)).astype(np.float32)))
    some = np.array([4, 1, 29])
    np.testing.assert_allclose(TorchSpace.on(space, device).products(some), space.products(some), atol=1e-6)


def test_rows_that_do_not_fit_are_refused_in_words(monkeypatch):
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda _: (2**20, 2**30))
    with pytest.raises(ValueError, match=r"need 4\.0 GiB on cuda:0, where 0\.0 GiB are free; use device='cpu'"):
        euclidean_cuda._upload(points_of(np.ones((4, 4), dtype=np.float32)), "cuda:0")
