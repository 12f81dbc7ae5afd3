import numpy as np
import pytest
import torch
from tests.loading.splits import feature_split, file_split, image_split, jitter, numbers, values

from prune4rel.errors import InputError
from prune4rel.loading import DeviceLoader
from prune4rel.progress import Progress


def test_images_stay_bytes_and_only_the_subset_is_held():
    loader = DeviceLoader(image_split(100), device="cpu", subset=[3, 50, 7])
    assert loader._inputs.dtype == torch.uint8
    assert loader._inputs.shape == (3, 3, 5, 4)


def test_the_array_is_free_to_go():
    split = image_split(6)
    loader = DeviceLoader(split, device="cpu", batch=6, shuffle=False)
    expected = split.images.transpose(0, 3, 1, 2).copy()
    split.images[:] = 0
    assert np.array_equal(next(iter(loader)).inputs.numpy(), expected)


def test_other_views_share_the_memory():
    loader = DeviceLoader(image_split(20), device="cpu")
    assert loader.over([1, 2])._inputs.data_ptr() == loader._inputs.data_ptr()


def test_examples_that_are_not_held_are_refused():
    loader = DeviceLoader(image_split(20), device="cpu", subset=[4, 9, 2])
    assert numbers(loader.over([9, 4], shuffle=False)) == [[9, 4]]
    with pytest.raises(InputError, match="subset: holds 5, which is not on the device"):
        loader.over([9, 5])


def test_files_are_decoded_once(tmp_path):
    split = file_split(image_split(6), tmp_path)
    loader = DeviceLoader(split, device="cpu", size=(5, 4), workers=0)
    for file in split.files:
        file.unlink()
    assert sorted(np.concatenate(numbers(loader))) == list(range(6))


def test_reading_tells_how_far_it_is():
    class Listener(Progress):
        done = 0

        def task(self, name, total):
            assert (name, total) == ("reading", 10)
            return self

        def __enter__(self):
            return self.advance

        def __exit__(self, *_error):
            pass

        def advance(self, amount):
            self.done += amount

    listener = Listener()
    DeviceLoader(feature_split(10), device="cpu", progress=listener)
    assert listener.done == 10


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_on_a_gpu(tmp_path):
    from prune4rel.loading import StreamLoader

    split = image_split(50)
    files = file_split(split, tmp_path)
    options = {"device": "cuda", "batch": 8, "chunk": 3, "size": (5, 4), "workers": 2, "transform": jitter}
    expected = values(DeviceLoader(split, **options))
    assert values(StreamLoader(files, **options)) == expected
    assert values(DeviceLoader(files, **options)) == expected
    batch = next(iter(DeviceLoader(split, **options)))
    assert all(tensor.is_cuda for tensor in (batch.indices, batch.labels, *batch.views))
    assert expected == values(DeviceLoader(split, **(options | {"device": "cpu"})))
