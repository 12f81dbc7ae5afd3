"""What both loaders promise."""

import json
from itertools import chain

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.loading.splits import feature_split, file_split, image_split, jitter, numbers, values

from prune4rel.errors import InputError
from prune4rel.loading import DeviceLoader, StreamLoader
from prune4rel.loading.schedule import Schedule

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork.*:DeprecationWarning")
BOTH = pytest.mark.parametrize("kind", [DeviceLoader, StreamLoader])


def load(kind, split, **options):
    return kind(split, **({"device": "cpu", "batch": 4, "size": (5, 4), "workers": 0} | options))


@BOTH
def test_a_batch_holds_the_examples_it_names(kind):
    split = image_split(10)
    for batch in load(kind, split):
        rows = batch.indices.numpy()
        assert batch.inputs.dtype == torch.uint8
        assert batch.inputs.is_contiguous()
        assert np.array_equal(batch.inputs.numpy(), split.images[rows].transpose(0, 3, 1, 2))
        assert np.array_equal(batch.labels.numpy(), split.labels[rows])
        assert batch.indices.dtype == batch.labels.dtype == torch.int64


@BOTH
def test_features(kind):
    split = feature_split(10)
    loader = load(kind, split)
    assert loader.shape == (6,)
    for batch in loader:
        assert batch.inputs.dtype == torch.float32
        assert np.array_equal(batch.inputs.numpy(), split.features[batch.indices.numpy()])


@BOTH
def test_the_order_is_the_schedule(kind):
    loader = load(kind, image_split(10), seed=3)
    schedule = Schedule(np.arange(10), 4, 3)
    for epoch in range(3):
        assert loader.epoch == epoch
        assert numbers(loader) == [batch.tolist() for batch in schedule.batches(epoch)]


@BOTH
@given(
    n=st.integers(1, 20),
    batch=st.integers(1, 25),
    chunk=st.integers(1, 6) | st.none(),
    seed=st.integers(0, 3),
    shuffle=st.booleans(),
    drop_last=st.booleans(),
    data=st.data(),
)
def test_every_example_once_an_epoch(kind, n, batch, chunk, seed, shuffle, drop_last, data):
    drop_last = drop_last and batch <= n
    subset = data.draw(st.none() | st.lists(st.integers(0, 29), min_size=n, max_size=n, unique=True))
    split = feature_split(30)
    options = {"batch": batch, "chunk": chunk, "seed": seed, "shuffle": shuffle, "drop_last": drop_last}
    loader = load(kind, split, subset=range(n) if subset is None else subset, **options)
    wanted = sorted(range(n) if subset is None else subset)
    for _ in range(2):
        batches = list(loader)
        seen = sorted(np.concatenate(numbers(batches)).tolist())
        assert len(batches) == len(loader)
        assert set(seen) <= set(wanted) if drop_last else seen == wanted
        assert len(seen) == len(set(seen))
        for part in batches:
            assert np.array_equal(part.inputs.numpy(), split.features[part.indices.numpy()])


@BOTH
@given(
    n=st.integers(1, 14),
    batch=st.integers(1, 16),
    chunk=st.integers(1, 5),
    stop=st.integers(0, 60),
    drop_last=st.booleans(),
    shuffle=st.booleans(),
)
def test_going_on_anywhere_equals_never_having_stopped(kind, n, batch, chunk, stop, drop_last, shuffle):
    def make():
        options = {"chunk": chunk, "drop_last": drop_last and batch <= n, "shuffle": shuffle, "transform": jitter}
        return load(kind, feature_split(n, d=2), batch=batch, seed=5, **options)

    undisturbed = make()
    everything = [values(undisturbed) for _ in range(4)]
    flat = [batch for epoch in everything for batch in epoch]
    stop = min(stop, len(flat) - 1)

    first = make()
    seen = []
    while len(seen) < stop:
        for part in first:
            seen += values([part])
            if len(seen) == stop:
                break
    told = json.loads(json.dumps(first.state()))
    second = make()
    second.restore(told)
    while second.epoch < 4:
        seen += values(second)
    assert seen == flat


@BOTH
def test_a_state_after_the_last_batch_leaves_nothing_of_the_epoch(kind):
    loader = load(kind, image_split(8))
    for _ in loader:
        state = loader.state()
    assert (state["epoch"], state["done"]) == (0, 2)
    assert (loader.epoch, loader.state()["done"]) == (1, 0)
    loader.restore(state)
    assert list(loader) == []
    assert loader.epoch == 1


@BOTH
def test_an_iteration_that_was_left_goes_on(kind):
    whole, broken_off = load(kind, image_split(10)), load(kind, image_split(10))
    seen = [next(iter(broken_off)) for _ in range(2)]
    assert numbers([*seen, *broken_off]) == numbers(whole)


@BOTH
@pytest.mark.parametrize(
    "change",
    [
        {"batch": 3},
        {"seed": 1},
        {"chunk": 2},
        {"shuffle": False},
        {"drop_last": True},
        {"subset": range(9)},
        {"subset": range(9, -1, -1)},
    ],
)
def test_a_state_of_another_loader_is_refused(kind, change):
    state = load(kind, image_split(10)).state()
    with pytest.raises(InputError, match=r"the state is of a loader whose \w+ is .*, but here it is"):
        load(kind, image_split(10), **change).restore(state)


@BOTH
def test_moving_during_an_iteration_is_refused(kind):
    loader = load(kind, image_split(10))
    iteration = iter(loader)
    next(iteration)
    loader.seek(2)
    with pytest.raises(RuntimeError, match="moved while it was iterated over"):
        next(iteration)


@BOTH
def test_seeking(kind):
    loader = load(kind, image_split(10))
    epochs = [numbers(loader) for _ in range(3)]
    loader.seek(1, 2)
    assert numbers(loader) == epochs[1][2:]
    assert numbers(loader) == epochs[2]
    for place in [(-1, 0), (0, -1), (0, 4)]:
        with pytest.raises(InputError, match="an epoch has 3 batches"):
            loader.seek(*place)


@BOTH
def test_a_chunk_is_transformed_at_once_and_handed_out_by_batches(kind):
    calls = []

    def transform(inputs, generator):
        calls.append((len(inputs), generator.initial_seed()))
        return inputs.float() * 2

    split = feature_split(11)
    loader = load(kind, split, batch=2, chunk=3, transform=transform)
    for batch in loader:
        assert np.array_equal(batch.inputs.numpy(), 2 * split.features[batch.indices.numpy()])
    assert [rows for rows, _ in calls] == [6, 5]
    list(loader)
    assert len({seed for _, seed in calls}) == 4


@BOTH
def test_nothing_is_transformed_before_it_is_needed(kind):
    calls = []

    def transform(inputs, _generator):
        calls.append(len(inputs))
        return inputs

    iteration = iter(load(kind, feature_split(12), batch=2, chunk=2, transform=transform))
    counts = []
    for _ in range(6):
        next(iteration)
        counts.append(len(calls))
    assert counts == [1, 1, 2, 2, 3, 3]


@BOTH
def test_a_transform_that_loses_rows_is_refused(kind):
    with pytest.raises(ValueError, match="the transform made 3 rows of 8 inputs"):
        next(iter(load(kind, feature_split(8), transform=lambda inputs, _generator: inputs[:3])))


@BOTH
def test_a_subset_reports_numbers_of_the_split(kind):
    split = image_split(20)
    loader = load(kind, split, subset=[17, 3, 11], shuffle=False, batch=2)
    assert numbers(loader) == [[17, 3], [11]]
    assert loader.examples.tolist() == [17, 3, 11]


@BOTH
def test_a_batch_larger_than_the_set(kind):
    assert sorted(*numbers(load(kind, image_split(3), batch=100))) == [0, 1, 2]
    with pytest.raises(InputError, match="drop_last leaves nothing"):
        load(kind, image_split(3), batch=100, drop_last=True)


@BOTH
def test_one_example(kind):
    loader = load(kind, image_split(1), transform=jitter)
    assert numbers(loader) == numbers(loader) == [[0]]


@BOTH
def test_another_view_of_the_same_inputs(kind):
    split = image_split(12)
    loader = load(kind, split, seed=2, transform=jitter)
    list(loader)
    other = loader.over([8, 1, 5], batch=2, transform=None)
    assert other.epoch == 1
    assert values(other) == values(_from_epoch_one(kind, split, subset=[8, 1, 5], batch=2, seed=2))
    in_order = loader.over(shuffle=False, batch=12, transform=None)
    assert numbers(in_order) == [list(range(12))]
    assert (loader.epoch, len(loader)) == (1, 3)
    assert values(loader) == values(_from_epoch_one(kind, split, seed=2, transform=jitter))


def _from_epoch_one(kind, split, **options):
    loader = load(kind, split, **options)
    loader.seek(1)
    return loader


@BOTH
def test_global_random_numbers_are_left_alone(kind):
    before = torch.get_rng_state()
    list(load(kind, image_split(10), transform=jitter))
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("workers", [0, 2])
def test_all_ways_to_the_same_images_give_the_same_batches(tmp_path, workers):
    split = image_split(13)
    files = file_split(split, tmp_path)
    options = {"transform": jitter, "chunk": 2, "seed": 8, "subset": [0, 12, 3, 4, 7, 9, 10, 2, 1]}

    def two_epochs(kind, split):
        loader = load(kind, split, workers=workers, **options)
        return [values(loader) for _ in range(2)]

    expected = two_epochs(DeviceLoader, split)
    assert two_epochs(StreamLoader, split) == expected
    assert two_epochs(StreamLoader, files) == expected
    assert two_epochs(DeviceLoader, files) == expected


@BOTH
@pytest.mark.parametrize("workers", [0, 2])
def test_going_on_in_the_middle_of_a_chunk_of_files(tmp_path, kind, workers):
    split = file_split(image_split(12), tmp_path)
    undisturbed = load(kind, split, batch=2, chunk=4, transform=jitter, workers=workers)
    expected = values(undisturbed)
    loader = load(kind, split, batch=2, chunk=4, transform=jitter, workers=workers)
    loader.restore({**undisturbed.state(), "epoch": 0, "done": 3})
    assert values(loader) == expected[3:]


@BOTH
@pytest.mark.parametrize("workers", [0, 2])
def test_a_broken_file_is_named_with_its_number(tmp_path, kind, workers):
    split = file_split(image_split(10), tmp_path)
    split.files[6].write_bytes(split.files[6].read_bytes()[:60])
    with pytest.raises(InputError, match=r"example 6: .*6\.png: .*pass skip_broken=True \(--skip-broken\)"):
        list(load(kind, split, workers=workers))


def test_a_broken_file_stops_the_epoch_only_when_its_chunk_comes(tmp_path):
    split = file_split(image_split(8), tmp_path)
    split.files[6].unlink()
    iteration = iter(load(StreamLoader, split, batch=2, chunk=1, shuffle=False, workers=2))
    assert numbers([next(iteration) for _ in range(3)]) == [[0, 1], [2, 3], [4, 5]]
    with pytest.raises(InputError, match=r"example 6: .*6\.png: no such file"):
        next(iteration)


@BOTH
@pytest.mark.parametrize("workers", [0, 2])
def test_broken_files_are_left_out_of_their_batch_and_listed(tmp_path, kind, workers):
    whole = image_split(10)
    split = file_split(whole, tmp_path)
    for number in (6, 0, 1):
        split.files[number].write_bytes(b"nonsense")
    loader = load(kind, split, workers=workers, skip_broken=True, chunk=2, batch=2, shuffle=False)
    batches = list(loader)
    assert numbers(batches) == [[2, 3], [4, 5], [7], [8, 9]]
    assert sorted(loader.broken) == [0, 1, 6]
    assert all("not an image" in reason for reason in loader.broken.values())
    for batch in batches:
        rows = batch.indices.numpy()
        assert np.array_equal(batch.inputs.numpy(), whole.images[rows].transpose(0, 3, 1, 2))
        assert np.array_equal(batch.labels.numpy(), whole.labels[rows])
    assert numbers(loader) == numbers(batches)
    assert len(loader.broken) == 3


@given(broken=st.sets(st.integers(0, 8), max_size=8), batch=st.integers(1, 10), chunk=st.integers(1, 4))
def test_both_loaders_leave_out_the_same(tmp_path_factory, broken, batch, chunk):
    split = file_split(image_split(9), tmp_path_factory.mktemp("images"))
    for number in broken:
        split.files[number].unlink()
    options = {"batch": batch, "chunk": chunk, "skip_broken": True, "transform": jitter, "seed": 4}
    loaders = [load(kind, split, **options) for kind in (DeviceLoader, StreamLoader)]
    one, two = [values(loader) for loader in loaders]
    assert one == two
    assert sorted(chain.from_iterable(indices for indices, *_ in one)) == sorted(set(range(9)) - broken)
    assert loaders[0].broken == loaders[1].broken


@BOTH
def test_broken_files_survive_in_the_state(tmp_path, kind):
    split = file_split(image_split(6), tmp_path)
    split.files[1].unlink()
    loader = load(kind, split, batch=2, chunk=1, shuffle=False, skip_broken=True)
    next(iter(loader))
    state = json.loads(json.dumps(loader.state()))
    other = load(kind, split, batch=2, chunk=1, shuffle=False, skip_broken=True)
    other.restore(state)
    assert numbers(other) == [[2, 3], [4, 5]]
    assert list(other.broken) == [1]


@BOTH
def test_nothing_but_broken_files_is_an_error(tmp_path, kind):
    split = file_split(image_split(3), tmp_path)
    for file in split.files:
        file.unlink()
    with pytest.raises(InputError, match=r"none of the 3 examples could be read; example \d: .*no such file"):
        list(load(kind, split, skip_broken=True))
