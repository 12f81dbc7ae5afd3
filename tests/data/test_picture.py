import sys

import numpy as np
import pytest

from prune4rel import InputError
from prune4rel.data import Dataset, Split, load_dataset
from prune4rel.data.picture import choose_samples, write_contact_sheet

LOOK = {"mean": (0.5,) * 3, "std": (0.5,) * 3, "image_size": 8}


def test_samples_are_spread_over_the_classes_that_are_there():
    labels = np.repeat(np.arange(0, 100, 2), 20)
    samples = choose_samples(Split(labels=labels, features=np.zeros((1000, 1))))
    shown = [labels[rows[0]] for rows in samples]
    assert (len(samples), shown[0], shown[-1]) == (12, 0, 98)
    assert all(len(rows) == 8 and (labels[rows] == labels[rows[0]]).all() for rows in samples)


def test_the_sheet_shows_the_images_and_marks_wrong_labels(tmp_path):
    Image = pytest.importorskip("PIL.Image")
    images = np.zeros((2, 4, 4, 3), dtype=np.uint8)
    images[0, ..., 1] = 255
    train = Split(labels=[0, 1], clean_labels=[0, 0], images=images)
    data = Dataset(name="x", train=train, class_names=("green", "名前"), **LOOK)
    assert write_contact_sheet(data, tmp_path / "sheet.png") == 2
    with Image.open(tmp_path / "sheet.png") as file:
        pixels = np.asarray(file)
    assert (pixels[10, 10].tolist(), pixels[140, 10].tolist()) == ([0, 255, 0], [0, 0, 0])
    red = (pixels[..., 0] > 150) & (pixels[..., 1] < 80)
    assert red[230:].any()
    assert not red[:130].any()


def test_files_of_every_mode_and_size(tmp_path, write_image):
    Image = pytest.importorskip("PIL.Image")
    files = [write_image(tmp_path / f"{mode}.png", mode=mode, size=(300, 20)) for mode in ("RGB", "RGBA", "L")]
    Image.fromarray(np.full((9, 9), 65535, dtype=np.uint16)).save(tmp_path / "deep.png")
    files += [write_image(tmp_path / "x.jpg"), tmp_path / "deep.png"]
    train = Split(labels=[0, 0, 1, 1, 1], files=files)
    data = Dataset(name="x", train=train, class_names=("a", "b"), **LOOK)
    assert write_contact_sheet(data, tmp_path / "sheet.png") == 5


def test_a_broken_file_is_named_and_nothing_is_written(tmp_path):
    pytest.importorskip("PIL")
    (tmp_path / "broken.jpg").write_bytes(b"\xff\xd8\xff\xe0 no more")
    data = Dataset(name="x", train=Split(labels=[0], files=[tmp_path / "broken.jpg"]), class_names=("a",), **LOOK)
    with pytest.raises(InputError, match=r"broken.jpg: cannot be read as an image"):
        write_contact_sheet(data, tmp_path / "sheet.png")
    assert [path.name for path in tmp_path.iterdir()] == ["broken.jpg"]


def test_what_cannot_be_drawn_is_refused(tmp_path, monkeypatch):
    digits = load_dataset("digits")
    with pytest.raises(InputError, match=r"as .png"):
        write_contact_sheet(digits, tmp_path / "sheet.jpg")
    features = Dataset(name="x", train=Split(labels=[0], features=[[1.0]]), class_names=("a",))
    with pytest.raises(InputError, match="nothing to show"):
        write_contact_sheet(features, tmp_path / "sheet.png")
    (tmp_path / "old.png").touch()
    with pytest.raises(InputError, match="exists already"):
        write_contact_sheet(digits, tmp_path / "old.png")
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(InputError, match=r"pip install 'prune4rel\[vision\]'"):
        write_contact_sheet(digits, tmp_path / "sheet.png")
