import pytest

from prune4rel import InputError
from prune4rel.data import load_dataset

NOISY = {"images/0/00/a.jpg": 3, "images/9/99/b.jpg": 13, "images/0/01/c.jpg": 0}
CLEAN = {"images/1/10/d.jpg": 2, "images/1/11/e.jpg": 5, "images/0/00/f.jpg": 7}


@pytest.fixture
def clothing(tmp_path, write_image):
    """Three noisy training images, two test images and one validation image, as Clothing-1M lies on disk."""
    for key in [*NOISY, *CLEAN]:
        write_image(tmp_path / key)
    write = {
        "noisy_train_key_list.txt": list(NOISY),
        "clean_train_key_list.txt": [],
        "clean_val_key_list.txt": ["images/0/00/f.jpg"],
        "clean_test_key_list.txt": ["images/1/11/e.jpg", "images/1/10/d.jpg"],
        "noisy_label_kv.txt": [f"{key} {label}" for key, label in [*NOISY.items(), ("images/1/10/d.jpg", 9)]],
        "clean_label_kv.txt": [f"{key} {label}" for key, label in CLEAN.items()],
    }
    for name, lines in write.items():
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines))
    return tmp_path


def test_keys_get_their_labels_in_the_order_of_the_key_lists(clothing):
    data = load_dataset("clothing1m", clothing)
    assert data.n_classes == 14
    assert data.train.labels.tolist() == [3, 13, 0]
    assert data.train.files[1] == clothing / "images/9/99/b.jpg"
    assert data.train.noise_rate is None
    assert data.test.labels.tolist() == [5, 2]
    assert data.test.noise_rate == 0
    assert load_dataset("clothing1m", clothing, test="val").test.labels.tolist() == [7]


def test_lists_may_lie_in_annotations(clothing):
    (clothing / "annotations").mkdir()
    for path in clothing.glob("*.txt"):
        path.rename(clothing / "annotations" / path.name)
    assert len(load_dataset("clothing1m", clothing).train) == 3


def append(path, text):
    path.write_text(path.read_text() + text)


def test_what_is_missing_or_broken_is_named(clothing):
    with pytest.raises(InputError, match="test must be"):
        load_dataset("clothing1m", clothing, test="train")
    append(clothing / "noisy_train_key_list.txt", "images/0/00/unknown.jpg\n")
    with pytest.raises(
        InputError, match=r"noisy_label_kv.txt: no label for 'images/0/00/unknown.jpg', which .*key_list"
    ):
        load_dataset("clothing1m", clothing)
    append(clothing / "noisy_train_key_list.txt", "images/0/00/a.jpg\n")
    with pytest.raises(InputError, match="lists an image twice"):
        load_dataset("clothing1m", clothing)
    append(clothing / "noisy_label_kv.txt", "images/0/00/unknown.jpg 14\n")
    (clothing / "noisy_train_key_list.txt").write_text("images/0/00/a.jpg\n")
    with pytest.raises(InputError, match=r"noisy_label_kv.txt: line 5 has the label 14; labels must be 0 to 13"):
        load_dataset("clothing1m", clothing)


def test_missing_images_and_lists(clothing):
    (clothing / "images/1/10/d.jpg").unlink()
    with pytest.raises(InputError, match=r"d.jpg: no such file; 1 of the 2 files in .*clean_test_key_list.txt"):
        load_dataset("clothing1m", clothing)
    (clothing / "noisy_train_key_list.txt").unlink()
    with pytest.raises(InputError, match=r"noisy_train_key_list.txt: no such file; ask for the data"):
        load_dataset("clothing1m", clothing)
