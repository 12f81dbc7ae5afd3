import json
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.loading.splits import Jitter, feature_split, file_split, image_split, jitter, numbers

from prune4rel.augment import PlainView, StrongView, Views, WeakView
from prune4rel.errors import InputError
from prune4rel.loading import DeviceLoader, StreamLoader, make_loader
from prune4rel.loading.schedule import own_rows_of

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork.*:DeprecationWarning")
BOTH = pytest.mark.parametrize("kind", [DeviceLoader, StreamLoader])


def load(kind, split, **options):
    return kind(split, **({"device": "cpu", "batch": 4, "size": (5, 4), "workers": 0} | options))


def side_by_side(shards):
    """Batches put together from those of the ranks."""
    together = []
    for parts in zip(*shards, strict=True):
        views = [torch.cat(pieces) for pieces in zip(*(part.views for part in parts), strict=True)]
        together.append(
            (torch.cat([part.indices for part in parts]), torch.cat([part.labels for part in parts]), views)
        )
    return together


def assert_the_same(batches, together):
    for batch, (indices, labels, views) in zip(batches, together, strict=True):
        assert torch.equal(batch.indices, indices)
        assert torch.equal(batch.labels, labels)
        assert len(batch.views) == len(views)
        for view, other in zip(batch.views, views, strict=True):
            assert view.dtype == other.dtype
            assert torch.equal(view, other)


@given(lengths=st.lists(st.integers(1, 12), min_size=1, max_size=4), world=st.integers(1, 6))
def test_parts_are_rows_in_order_and_together_the_whole(lengths, world):
    ends = np.cumsum([0, *lengths])
    chunk = [np.arange(100 + start, 100 + stop) for start, stop in pairwise(ends)]
    parts = [own_rows_of(chunk, (rank, world)) for rank in range(world)]
    for number, batch in enumerate(chunk):
        slices = [part.batches[number] for part in parts]
        assert np.concatenate(slices).tolist() == batch.tolist()
        assert max(map(len, slices)) - min(map(len, slices)) <= 1
        size = len(batch)
        assert [len(piece) for piece in slices] == [size * (k + 1) // world - size * k // world for k in range(world)]
    for part in parts:
        assert part.whole == ends[-1]
        assert np.concatenate(chunk)[part.rows].tolist() == np.concatenate(part.batches).tolist()
    assert own_rows_of(chunk, None).rows.tolist() == list(range(ends[-1]))


@BOTH
@given(
    n=st.integers(1, 20),
    batch=st.integers(1, 9),
    chunk=st.integers(1, 4),
    world=st.integers(1, 5),
    drop_last=st.booleans(),
    plain=st.booleans(),
)
def test_ranks_side_by_side_are_the_batch_without_them(kind, n, batch, chunk, world, drop_last, plain):
    options = {"batch": batch, "chunk": chunk, "seed": 3, "drop_last": drop_last and batch <= n}
    options["transform"] = None if plain else Jitter()
    split = feature_split(n, d=2)
    whole = load(kind, split, **options)
    ranks = [load(kind, split, shard=(rank, world), **options) for rank in range(world)]
    for _ in range(2):
        assert all(len(rank) == len(whole) for rank in ranks)
        assert_the_same(list(whole), side_by_side(ranks))


@BOTH
@pytest.mark.parametrize("world", [2, 3, 5])
def test_weak_and_strong_views_of_images(kind, world):
    mean, std = (0.5, 0.4, 0.3), (0.2, 0.3, 0.4)
    views = Views((WeakView(mean, std), StrongView(mean, std), PlainView(mean, std)))
    split = image_split(23, height=12, width=10)
    options = {"batch": 4, "chunk": 3, "transform": views}
    ranks = [load(kind, split, shard=(rank, world), **options) for rank in range(world)]
    assert_the_same(list(load(kind, split, **options)), side_by_side(ranks))


@BOTH
def test_a_rank_without_rows_gets_empty_batches_of_the_right_kind(kind):
    mean, std = (0.5, 0.4, 0.3), (0.2, 0.3, 0.4)
    views = Views((WeakView(mean, std), StrongView(mean, std)))
    loader = load(kind, image_split(4, height=12, width=10), batch=2, transform=views, shard=(0, 5))
    batches = list(loader)
    assert numbers(batches) == [[], []]
    assert loader.epoch == 1
    for batch in batches:
        assert [tuple(view.shape) for view in batch.views] == [(0, 3, 12, 10)] * 2
        assert all(view.dtype == torch.float32 for view in batch.views)
        assert batch.indices.dtype == batch.labels.dtype == torch.int64


@pytest.mark.parametrize("workers", [0, 2])
def test_a_rank_decodes_only_its_own_files(tmp_path, workers):
    split = file_split(image_split(8), tmp_path)
    options = {"batch": 4, "chunk": 1, "shuffle": False, "workers": workers, "transform": Jitter()}
    expected = list(load(StreamLoader, split, **options))
    for number in (2, 3, 6, 7):
        split.files[number].unlink()
    ours = list(load(StreamLoader, split, shard=(0, 2), **options))
    assert numbers(ours) == [[0, 1], [4, 5]]
    assert_the_same(
        ours,
        [(batch.indices[:2], batch.labels[:2], [batch.inputs[:2]]) for batch in expected],
    )


@BOTH
@given(broken=st.sets(st.integers(0, 9), max_size=2), world=st.integers(1, 3))
def test_broken_files_leave_the_random_numbers_of_the_others_alone(tmp_path_factory, kind, broken, world):
    split = file_split(image_split(10), tmp_path_factory.mktemp("images"))
    options = {"batch": 3, "chunk": 2, "transform": Jitter(), "skip_broken": True, "seed": 1}
    undisturbed = {index: view for batch in load(kind, split, **options) for index, view in rows_of(batch)}
    for number in broken:
        split.files[number].unlink()
    seen = {}
    for rank in range(world):
        loader = load(kind, split, shard=(rank, world), **options)
        for batch in loader:
            seen |= dict(rows_of(batch))
    assert set(seen) == set(range(10)) - broken
    assert all(torch.equal(view, undisturbed[index]) for index, view in seen.items())
    whole = list(load(kind, split, **options))
    together = side_by_side([load(kind, split, shard=(rank, world), **options) for rank in range(world)])
    assert_the_same(whole, [batch for batch in together if len(batch[0])])


@BOTH
def test_a_rank_that_can_read_none_of_its_own_says_so(tmp_path, kind):
    split = file_split(image_split(6), tmp_path)
    for file in split.files[:3]:
        file.unlink()
    options = {"batch": 6, "shuffle": False, "skip_broken": True}
    assert numbers(load(kind, split, shard=(1, 2), **options)) == [[3, 4, 5]]
    with pytest.raises(InputError, match=r"none of the 3 examples could be read; example 0: .*no such file"):
        list(load(kind, split, shard=(0, 2), **options))


def rows_of(batch):
    return zip(batch.indices.tolist(), batch.inputs, strict=True)


@BOTH
def test_a_position_is_the_same_for_all_ranks(kind):
    split, options = feature_split(14), {"batch": 3, "chunk": 2, "transform": Jitter()}
    whole = load(kind, split, **options)
    iteration = iter(whole)
    for _ in range(3):
        next(iteration)
    state = json.loads(json.dumps(whole.state()))
    ranks = [load(kind, split, shard=(rank, 2), **options) for rank in range(2)]
    for rank in ranks:
        rank.restore(state)
    assert_the_same(list(iteration), side_by_side(ranks))


@BOTH
def test_a_rank_may_also_look_at_the_whole(kind):
    loader = load(kind, feature_split(10), shard=(1, 2))
    assert [len(batch.indices) for batch in loader.over(shard=None, batch=5)] == [5, 5]
    assert [len(batch.indices) for batch in loader] == [2, 2, 1]


def test_make_loader_passes_it_on():
    loader = make_loader(feature_split(10), "cpu", batch=5, shard=(0, 5))
    assert [len(batch.indices) for batch in loader] == [1, 1]


@pytest.mark.parametrize("shard", [(2, 2), (-1, 2), (0, 0), (0,), (0, 1, 2)])
def test_impossible_ranks_are_refused(shard):
    with pytest.raises(InputError, match=r"shard must be \(rank, number of ranks\)"):
        load(DeviceLoader, feature_split(4), shard=shard)


@BOTH
def test_a_transform_that_cannot_draw_apart_is_refused(kind):
    with pytest.raises(InputError, match="shard needs a transform with draw and apply"):
        load(kind, feature_split(4), shard=(0, 2), transform=jitter)
    loader = load(kind, feature_split(4), shard=(0, 2))
    with pytest.raises(InputError, match="shard needs a transform with draw and apply"):
        loader.over(transform=jitter)
