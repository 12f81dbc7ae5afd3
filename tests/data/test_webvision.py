import pytest

from prune4rel import InputError
from prune4rel.data import load_dataset


@pytest.fixture
def webvision(tmp_path, write_image):
    """Three classes in the layout of WebVision 1.0: two of the first 50, and one beyond."""
    train = [
        ("google/q0001/a.jpg", 0),
        ("google/q0001/b.jpg", 0),
        ("google/q0002/c.jpg", 1),
        ("google/q0077/d.jpg", 60),
    ]
    val = [("val000001.jpg", 1), ("val000002.jpg", 0), ("val000003.jpg", 60)]
    for name, _ in train:
        write_image(tmp_path / name)
    for name, _ in val:
        write_image(tmp_path / "val_images_256" / name)
    (tmp_path / "info").mkdir()
    for file, rows in (("train_filelist_google.txt", train), ("val_filelist.txt", val)):
        (tmp_path / "info" / file).write_text("".join(f"{name} {label}\n" for name, label in rows))
    names = [f"n{number:08} thing {number}, also called so" for number in range(1000)]
    (tmp_path / "info" / "synsets.txt").write_text("\n".join(names))
    return tmp_path


def test_mini_keeps_the_first_fifty_classes_in_the_lists_order(webvision):
    data = load_dataset("webvision", webvision)
    assert data.kind == "files"
    assert data.n_classes == 50
    assert data.class_names[:2] == ("thing 0", "thing 1")
    assert data.train.labels.tolist() == [0, 0, 1]
    assert [file.relative_to(webvision).as_posix() for file in data.train.files] == [
        "google/q0001/a.jpg",
        "google/q0001/b.jpg",
        "google/q0002/c.jpg",
    ]
    assert data.train.noise_rate is None
    assert data.test.labels.tolist() == [1, 0]
    assert data.test.files[0] == webvision / "val_images_256" / "val000001.jpg"


def test_all_classes_other_folder_and_no_names(webvision):
    (webvision / "val_images_256").rename(webvision / "val_images")
    (webvision / "info" / "synsets.txt").unlink()
    data = load_dataset("webvision", webvision, classes=1000)
    assert (len(data.train), len(data.test), data.class_names[60]) == (4, 3, "60")


def test_what_is_missing_or_broken_is_named(webvision):
    with pytest.raises(InputError, match="classes must be"):
        load_dataset("webvision", webvision, classes=0)
    (webvision / "google/q0001/b.jpg").unlink()
    with pytest.raises(InputError, match=r"b.jpg: no such file; 1 of the 3 files in .*train_filelist_google.txt"):
        load_dataset("webvision", webvision)
    (webvision / "info/train_filelist_google.txt").write_text("google/q0001/a.jpg\n")
    with pytest.raises(InputError, match=r"train_filelist_google.txt: line 1 is"):
        load_dataset("webvision", webvision)
    (webvision / "info/train_filelist_google.txt").write_text("google/q0077/d.jpg 60\n")
    with pytest.raises(InputError, match="no image of the first 50 classes"):
        load_dataset("webvision", webvision)
    (webvision / "info/train_filelist_google.txt").unlink()
    with pytest.raises(InputError, match=r"train_filelist_google.txt: no such file; it is in WebVision's info.tar"):
        load_dataset("webvision", webvision)


def test_missing_validation_images_and_too_few_names(webvision):
    (webvision / "info/synsets.txt").write_text("n0 one\n")
    with pytest.raises(InputError, match="names 1 classes; expected at least 50"):
        load_dataset("webvision", webvision)
    (webvision / "val_images_256").rename(webvision / "elsewhere")
    with pytest.raises(InputError, match=r"val_images_256: not found \(nor .*val_images\)"):
        load_dataset("webvision", webvision)
