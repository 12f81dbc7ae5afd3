import pytest

from prune4rel import InputError
from prune4rel.data import load_dataset


@pytest.fixture
def folders(tmp_path, write_image):
    """Two classes in train and test, with a few files that are no images."""
    for name in ("train/cat/1.png", "train/cat/deep/2.jpg", "train/dog/3.JPG", "test/cat/4.png", "test/dog/5.png"):
        write_image(tmp_path / name)
    (tmp_path / "train/cat/notes.txt").write_text("x")
    (tmp_path / "train/cat/.hidden.png").write_text("x")
    (tmp_path / "train/.cache").mkdir()
    return tmp_path


def test_one_folder_a_class(folders):
    data = load_dataset("folder", folders)
    assert data.class_names == ("cat", "dog")
    assert data.train.ids.tolist() == ["train/cat/1.png", "train/cat/deep/2.jpg", "train/dog/3.JPG"]
    assert data.train.labels.tolist() == [0, 0, 1]
    assert data.test.labels.tolist() == [0, 1]
    assert data.image_size == 224
    assert load_dataset("folder", folders, image_size=64).image_size == 64


def test_test_may_be_called_val_or_be_held_out(folders):
    (folders / "test").rename(folders / "val")
    assert len(load_dataset("folder", folders).test) == 2
    alone = load_dataset("folder", folders / "train", test_share=0.34)
    assert (len(alone.train), len(alone.test), alone.class_names) == (2, 1, ("cat", "dog"))
    assert load_dataset("folder", folders / "train").test is None
    with pytest.raises(InputError, match="has a test split already"):
        load_dataset("folder", folders, test_share=0.5)


def test_class_folders_that_differ_or_are_empty(folders):
    (folders / "train/emu").mkdir()
    with pytest.raises(InputError, match=r"emu: no image in this folder"):
        load_dataset("folder", folders / "train")
    with pytest.raises(InputError, match=r"emu: no image in this folder|has the class folder 'emu'"):
        load_dataset("folder", folders)
    (folders / "train/emu").rmdir()
    (folders / "test/cat").rename(folders / "test/cats")
    with pytest.raises(InputError, match=r"train: has the class folder 'cat', which .*test has not"):
        load_dataset("folder", folders)


def test_nothing_there(tmp_path, write_image):
    with pytest.raises(InputError, match="no folder in it"):
        load_dataset("folder", tmp_path)
    write_image(tmp_path / "a.png")
    with pytest.raises(InputError, match="the images lie here directly"):
        load_dataset("folder", tmp_path)


@pytest.fixture
def table(tmp_path, write_image):
    for name in "abcd":
        write_image(tmp_path / "img" / f"{name}.png")
    (tmp_path / "labels.csv").write_text(
        "path,label,clean_label,split\n"
        "img/a.png,dog,cat,train\nimg/b.png,cat,cat,train\nimg/c.png,dog,dog,test\nimg/d.png,dog,dog,validation\n"
    )
    return tmp_path


def test_a_table_of_paths_and_labels(table):
    data = load_dataset("folder", table)
    assert data.class_names == ("cat", "dog")
    assert data.train.labels.tolist() == [1, 0]
    assert data.train.noise_rate == 0.5
    assert data.train.ids.tolist() == ["img/a.png", "img/b.png"]
    assert [file.name for file in data.test.files] == ["c.png"]


def test_which_table(table):
    (table / "labels.csv").rename(table / "mine.csv")
    assert len(load_dataset("folder", table).train) == 2
    assert len(load_dataset("folder", table / "mine.csv").train) == 2
    (table / "other.csv").write_text("path,label\nimg/a.png,1\n")
    with pytest.raises(InputError, match=r"which of mine.csv, other.csv lists the images"):
        load_dataset("folder", table)
    assert len(load_dataset("folder", table, table="other.csv").train) == 1
    with pytest.raises(InputError, match=r"none.csv: no such file"):
        load_dataset("folder", table, table="none.csv")
    with pytest.raises(InputError, match=r"is a .csv or .parquet file"):
        load_dataset("folder", table, table="img/a.png")
    with pytest.raises(InputError, match="leave table out"):
        load_dataset("folder", table / "mine.csv", table="other.csv")
