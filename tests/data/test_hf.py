import numpy as np
import pytest

from prune4rel import InputError
from prune4rel.data import load_dataset
from prune4rel.data.decode import open_rgb


@pytest.fixture
def library():
    return pytest.importorskip("datasets")


@pytest.fixture
def pictures():
    Image = pytest.importorskip("PIL.Image")
    rng = np.random.default_rng(0)
    return [Image.fromarray(rng.integers(0, 256, (6, 5, 3), dtype=np.uint8)) for _ in range(4)]


def test_images_with_class_labels_and_two_splits(library, pictures, tmp_path):
    features = library.Features(
        {"image": library.Image(), "label": library.ClassLabel(names=["cat", "dog"]), "true": library.Value("int64")}
    )
    rows = {"image": pictures, "label": [0, 1, 1, 0], "true": [0, 1, 0, 0]}
    train = library.Dataset.from_dict(rows, features=features)
    library.DatasetDict({"train": train, "test": train.select([0, 1])}).save_to_disk(tmp_path / "hf")
    data = load_dataset("hf", tmp_path / "hf", clean_label="true")
    assert data.class_names == ("cat", "dog")
    assert (data.train.images == np.stack([np.asarray(picture) for picture in pictures])).all()
    assert data.train.noise_rate == 0.25
    assert (len(data.test), data.image_size) == (2, 5)
    with pytest.raises(InputError, match="has no column 'labels'; did you mean 'label'"):
        load_dataset("hf", tmp_path / "hf", label="labels")
    with pytest.raises(InputError, match="expected images or vectors"):
        load_dataset("hf", tmp_path / "hf", column="true")


def test_images_of_different_sizes_are_read_when_they_are_used(library, pictures, tmp_path):
    features = library.Features({"image": library.Image(), "label": library.Value("int64")})
    pictures[2] = pictures[2].resize((9, 9))
    library.Dataset.from_dict({"image": pictures, "label": [0, 1, 1, 0]}, features=features).save_to_disk(
        tmp_path / "hf"
    )
    data = load_dataset("hf", tmp_path / "hf")  # read when they are used
    assert (data.kind, data.image_size) == ("files", 5)
    assert open_rgb(data.train.files[2].read_bytes(), "row 2").size == (9, 9)
    data = load_dataset("hf", tmp_path / "hf", image_size=8, test_share=0.25)
    assert (len(data.train), data.image_size) == (3, 8)


def test_vectors_with_names(library, tmp_path):
    rows = {"text": ["a", "b", "c"], "vector": np.eye(3).tolist(), "label": ["no", "yes", "no"]}
    library.Dataset.from_dict(rows).save_to_disk(tmp_path / "hf")
    data = load_dataset("hf", tmp_path / "hf")
    assert (data.kind, data.class_names, data.train.labels.tolist()) == ("features", ("no", "yes"), [0, 1, 0])
    assert data.train.features.tolist() == np.eye(3).tolist()


def test_what_is_no_such_folder_or_has_nothing_to_learn_from(library, tmp_path):
    with pytest.raises(InputError, match="not a folder that save_to_disk wrote"):
        load_dataset("hf", tmp_path)
    library.Dataset.from_dict({"count": [1.5], "label": [0]}).save_to_disk(tmp_path / "words")
    with pytest.raises(InputError, match="which column holds the examples"):
        load_dataset("hf", tmp_path / "words")
    part = library.Dataset.from_dict({"vector": [[1.0, 2.0], [1.0]], "label": [0, 1]})
    part.save_to_disk(tmp_path / "ragged")
    with pytest.raises(InputError, match="differ in length"):
        load_dataset("hf", tmp_path / "ragged")
    library.DatasetDict({"test": part}).save_to_disk(tmp_path / "test")
    with pytest.raises(InputError, match="has no split 'train'; it has test"):
        load_dataset("hf", tmp_path / "test")
