import pickle
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.loading.splits import Split, feature_split, file_split, image_split

from prune4rel.errors import InputError
from prune4rel.loading.source import MOST_WORKERS, ArraySource, FileSource, source_of, stream

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork.*:DeprecationWarning")


def source(split, size=(5, 4), workers=0):
    return source_of(split, size=size, fit="crop", workers=workers)


def test_images_come_channels_first():
    split = image_split(7)
    piece = source(split)[np.array([3, 0])]
    assert piece.inputs.shape == (2, 3, 5, 4)
    assert piece.inputs.dtype == torch.uint8
    assert np.array_equal(piece.inputs.numpy(), split.images[[3, 0]].transpose(0, 3, 1, 2))
    assert piece.kept.all()


def test_features_come_as_they_are():
    split = feature_split(7)
    piece = source(split)[np.array([3, 0])]
    assert np.array_equal(piece.inputs.numpy(), split.features[[3, 0]])
    assert source(split).bytes_of_one == 6 * 4


def test_memory_maps_that_cannot_be_written_to(tmp_path):
    split = image_split(7)
    np.save(tmp_path / "images.npy", split.images)
    mapped = ArraySource(np.load(tmp_path / "images.npy", mmap_mode="r"))
    assert torch.equal(mapped[np.arange(7)].inputs, source(split)[np.arange(7)].inputs)


def test_files_give_what_the_array_gives(tmp_path):
    split = image_split(7)
    files = source(file_split(split, tmp_path))
    assert files.shape == source(split).shape
    assert torch.equal(files[np.array([6, 2, 3])].inputs, source(split)[np.array([6, 2, 3])].inputs)


def test_paths_survive_packing_and_pickling():
    pytest.importorskip("PIL")
    files = [Path("a.jpg"), Path("some folder/ä ö.png"), Path("x"), Path("b" * 300)]
    packed = pickle.loads(pickle.dumps(FileSource(files, (8, 8), "crop", None)))  # noqa: S301 - our own
    assert [packed.file(index) for index in range(4)] == [str(file) for file in files]


def test_broken_files_are_left_out_with_the_reason(tmp_path):
    split = file_split(image_split(5), tmp_path)
    split.files[3].write_bytes(b"nonsense")
    piece = source(split)[np.array([4, 3, 0])]
    assert piece.inputs.shape == (2, 3, 5, 4)
    assert piece.kept.tolist() == [True, False, True]
    assert [str(split.files[3]) in reason for reason in piece.reasons] == [True]


@pytest.mark.parametrize("workers", [0, 1, 2])
def test_streaming_keeps_the_order(tmp_path, workers):
    split = image_split(9)
    batches = [np.array([8, 1]), np.array([0]), np.array([5, 4, 3]), np.array([2, 6, 7])]
    pieces = list(stream(source(file_split(split, tmp_path), workers=workers), batches, ahead=3))
    assert [len(piece.inputs) for piece in pieces] == [2, 1, 3, 3]
    expected = split.images[np.concatenate(batches)].transpose(0, 3, 1, 2)
    assert np.array_equal(torch.cat([piece.inputs for piece in pieces]).numpy(), expected)


@pytest.mark.parametrize("workers", [0, 2])
def test_streaming_leaves_the_global_random_numbers_alone(tmp_path, workers):
    before = torch.get_rng_state()
    list(stream(source(file_split(image_split(3), tmp_path), workers=workers), [np.arange(3)]))
    assert torch.equal(torch.get_rng_state(), before)


def test_workers_are_as_many_as_there_are_threads(monkeypatch, tmp_path):
    split = file_split(image_split(1), tmp_path)
    monkeypatch.setenv("PRUNE4REL_THREADS", "3")
    assert source(split, workers=None).workers == 3
    monkeypatch.setenv("PRUNE4REL_THREADS", "300")
    assert source(split, workers=None).workers == MOST_WORKERS
    assert source(split, workers=5).workers == 5


@pytest.mark.parametrize(
    ("split", "options", "words"),
    [
        (Split(np.zeros(3)), {}, "neither images nor files nor features"),
        (Split(np.zeros(3), features=np.zeros((2, 1), np.float32)), {}, "has 2 inputs, but 3 labels"),
        (Split(np.zeros(1), files=(Path("a"),)), {"size": 0}, "size must be 1 or more"),
        (Split(np.zeros(1), files=(Path("a"),)), {"fit": "squeeze"}, "fit 'crop' or 'stretch', not .* and 'squeeze'"),
        (Split(np.zeros(1), files=(Path("a"),)), {"workers": -1}, "workers must be 0 or more"),
    ],
)
def test_impossible_sources_are_refused(split, options, words):
    with pytest.raises(InputError, match=words):
        source_of(split, **({"size": 8, "fit": "crop", "workers": 0} | options))


def test_files_without_pillow_are_refused_before_any_is_read(monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(InputError, match=r"reading image files needs Pillow, .* pip install 'prune4rel\[vision\]'"):
        source(Split(np.zeros(1, dtype=np.int64), files=(Path("a.png"),)))
