import numpy as np
import pytest

from prune4rel import InputError, Signals
from prune4rel.data import load_dataset


@pytest.fixture
def save(tmp_path):
    def write(**arrays):
        np.savez(tmp_path / "data.npz", **{name: np.asarray(value) for name, value in arrays.items()})
        return tmp_path / "data.npz"

    return write


PICTURES = np.random.default_rng(0).integers(0, 256, (4, 6, 5, 3), dtype=np.uint8)


def test_features_need_nothing_of_images(save):
    data = load_dataset("arrays", save(features=np.eye(4), labels=[0, 1, 2, 1], clean_labels=[0, 1, 1, 1]))
    assert (data.kind, data.n_classes, data.mean, data.image_size) == ("features", 3, None, None)
    assert data.train.noise_rate == 0.25
    assert data.test is None


def test_images_with_tests_names_and_ids(save):
    data = load_dataset(
        "arrays",
        save(
            images=PICTURES,
            labels=["dog", "cat", "cat", "dog"],
            ids=[7, 8, 9, 10],
            test_images=PICTURES[:2],
            test_labels=["cat", "emu"],
        ),
    )
    assert data.class_names == ("cat", "dog", "emu")
    assert data.train.labels.tolist() == [1, 0, 0, 1]
    assert data.test.labels.tolist() == [0, 2]
    assert data.train.ids.tolist() == [7, 8, 9, 10]
    assert data.image_size == 5
    np.testing.assert_allclose(data.mean, PICTURES.reshape(-1, 3).mean(axis=0) / 255, atol=1e-4)


def test_a_folder_of_npy_is_memory_mapped(tmp_path):
    np.save(tmp_path / "images.npy", PICTURES)
    np.save(tmp_path / "labels.npy", np.array([0, 1, 0, 1]))
    data = load_dataset("arrays", tmp_path, test_share=0.25)
    assert (len(data.train), len(data.test)) == (3, 1)
    assert isinstance(load_dataset("arrays", tmp_path).train.images, np.memmap)


def test_grey_images_and_given_colours(save):
    data = load_dataset("arrays", save(images=PICTURES[..., 0], labels=[0, 0, 1, 1], mean=[0.1] * 3, std=[0.2] * 3))
    assert data.train.images.shape == (4, 6, 5, 3)
    assert (data.mean, data.std) == ((0.1, 0.1, 0.1), (0.2, 0.2, 0.2))


BAD = [
    ({"features": np.eye(3)}, "has no array 'labels'"),
    ({"labels": [0, 1]}, "exactly one of images, files, features and texts"),
    ({"labels": [0, 1], "feature": np.eye(2)}, "unknown array 'feature'; did you mean 'features'"),
    ({"labels": [0, 1, 0], "features": np.eye(2)}, "features: has 2 rows, but labels has 3"),
    ({"labels": [0, 1], "features": np.eye(2), "test_features": np.eye(2)}, "has no array test_labels"),
    ({"labels": [0, 1], "features": np.eye(2), "clean_labels": ["a", "b"]}, "hold numbers and some hold names"),
    ({"labels": [[0], [1]], "features": np.eye(2)}, r"labels has shape \(2, 1\)"),
    ({"labels": [0.5, 1], "features": np.eye(2)}, "expected .* integers or strings"),
    ({"labels": [0, 5], "features": np.eye(2), "class_names": ["a", "b"]}, "row 1 is 5; labels must be 0 to 1"),
    ({"labels": [0, 1], "features": np.eye(2), "mean": [1, 2, 3]}, "mean is for images"),
    ({"labels": [0] * 4, "images": PICTURES / 255.0}, r"data.npz: images: have type float64"),
    ({"labels": [0] * 4, "images": PICTURES.transpose(0, 3, 1, 2)}, "the channels come last"),
]


@pytest.mark.parametrize(("arrays", "message"), BAD)
def test_bad_arrays_are_refused(save, arrays, message):
    with pytest.raises(InputError, match=message):
        load_dataset("arrays", save(**arrays))


def test_options_that_do_not_fit(save):
    path = save(labels=[0, 1], features=np.eye(2), test_features=np.eye(2), test_labels=[0, 1])
    with pytest.raises(InputError, match="has a test split already"):
        load_dataset("arrays", path, test_share=0.5)
    with pytest.raises(InputError, match="image_size is for images"):
        load_dataset("arrays", path, image_size=8)


def test_truncated_pickled_and_lone_files(save, tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    np.save(folder / "labels.npy", np.array([0, 1]))
    np.save(folder / "features.npy", np.eye(2))
    (folder / "features.npy").write_bytes((folder / "features.npy").read_bytes()[:-9])
    with pytest.raises(InputError, match=r"features.npy: the file is truncated"):
        load_dataset("arrays", folder)
    with pytest.raises(InputError, match="refused"):
        load_dataset("arrays", save(labels=np.array([{}, {}], dtype=object)))
    np.save(tmp_path / "y.npy", np.arange(3))
    with pytest.raises(InputError, match="without a name"):
        load_dataset("arrays", tmp_path / "y.npy")


def test_saved_signals_are_features(tmp_path):
    signals = Signals(
        labels=[0, 1, 1],
        probabilities=np.full((3, 2), 0.5),
        embeddings=np.arange(6.0).reshape(3, 2),
        known=[True, False, True],
        class_names=("cat", "dog"),
    )
    signals.save(tmp_path / "signals")
    data = load_dataset("arrays", tmp_path / "signals")
    assert data.class_names == ("cat", "dog")
    assert data.train.labels.tolist() == [0, 1]
    assert data.train.features.tolist() == [[0.0, 1.0], [4.0, 5.0]]
    assert data.train.ids.tolist() == [0, 2]
