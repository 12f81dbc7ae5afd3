import numpy as np
import pytest
from tests.loading.splits import file_split, image_split, numbers

from prune4rel.loading import StreamLoader, source

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork.*:DeprecationWarning")


def test_files_are_read_when_their_turn_comes(tmp_path):
    split = file_split(image_split(6), tmp_path)
    loader = StreamLoader(split, device="cpu", size=(5, 4), workers=0, batch=2, chunk=1, shuffle=False)
    iteration = iter(loader)
    next(iteration)
    split.files[5].write_bytes(split.files[0].read_bytes())
    last = list(iteration)[-1]
    assert np.array_equal(last.inputs[1].numpy(), image_split(6).images[0].transpose(2, 0, 1))


def test_only_what_is_left_of_an_epoch_is_read(tmp_path, monkeypatch):
    split = file_split(image_split(12), tmp_path)
    read = []

    def note(path, size, _fit):
        read.append(int(path.rpartition("/")[2].removesuffix(".png")))
        return np.zeros((*size, 3), dtype=np.uint8)

    monkeypatch.setattr(source, "read_image", note)
    loader = StreamLoader(split, device="cpu", size=8, workers=0, batch=2, chunk=2, shuffle=False)
    loader.seek(0, 3)
    assert numbers(loader) == [[6, 7], [8, 9], [10, 11]]
    assert read == [4, 5, 6, 7, 8, 9, 10, 11]
    loader = loader.over(range(10))
    loader.seek(0, 5)
    assert numbers(loader) == []
    assert len(read) == 8


def test_leaving_in_the_middle_ends_the_workers(tmp_path):
    split = file_split(image_split(40), tmp_path)
    loader = StreamLoader(split, device="cpu", size=(5, 4), workers=2, batch=1, chunk=1)
    for _ in range(3):
        next(iter(loader))
    assert loader.state()["done"] == 3


def test_more_workers_than_batches(tmp_path):
    split = file_split(image_split(3), tmp_path)
    assert len(numbers(StreamLoader(split, device="cpu", size=(5, 4), workers=2, batch=8))) == 1
