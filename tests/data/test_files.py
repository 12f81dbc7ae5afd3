import hashlib
from pathlib import Path

import pytest

from prune4rel import InputError, load_dataset
from prune4rel.data import files
from prune4rel.data.files import check_same_classes, list_classes, read_class_folders
from prune4rel.data.imagenet_n import lies_flat


def test_links_are_followed_and_order_is_by_name(tmp_path):
    (tmp_path / "real").mkdir()
    for name in ("10.png", "9.png"):
        (tmp_path / "real" / name).touch()
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a").symlink_to(tmp_path / "real")
    split = read_class_folders(tmp_path / "data", list_classes(tmp_path / "data"), relative_to=tmp_path / "data")
    assert split.ids.tolist() == ["a/10.png", "a/9.png"]


def test_differences_are_told_from_either_side():
    check_same_classes(("a", "b"), ("a", "b"), Path("train"), Path("test"))
    with pytest.raises(InputError, match="train: has the class folder 'b' and 1 more, which test has not"):
        check_same_classes(("a", "b", "c"), ("a",), Path("train"), Path("test"))
    with pytest.raises(InputError, match="test: has the class folder 'b', which train has not"):
        check_same_classes(("a",), ("a", "b"), Path("train"), Path("test"))


def fill(root, classes="abc", images=4):
    for name in classes:
        (root / name).mkdir(parents=True)
        for number in range(images):
            (root / name / f"{name}{number}.png").touch()


def read(root):
    """(path, class name) of every image that is found."""
    names = list_classes(root)
    split = read_class_folders(root, names, relative_to=root)
    return [(str(name), names[label]) for name, label in zip(split.ids, split.labels, strict=True)]


def truth(classes="abc", images=4):
    return [(f"{name}/{name}{number}.png", name) for name in classes for number in range(images)]


LINKS = {
    "to the folder above": [("b/up", "..")],
    "to itself": [("a/again", ".")],
    "far above": [("a/up", "../../..")],
    "in every class": [(f"{name}/up", "..") for name in "abc"],
    "to another class": [("a/other", "../b"), ("c/other", "../b")],
    "in a circle": [("a/x", "../b/x"), ("b/x", "../a/x")],
    "to each other": [("a/to_b", "../b"), ("b/to_a", "../a")],
    "as a class": [("up", ".."), ("self", ".")],
    "to nowhere": [("a/gone", "nowhere"), ("lost", "nowhere")],
}


@pytest.mark.parametrize("links", LINKS.values(), ids=LINKS)
def test_a_link_back_adds_no_image_and_no_wrong_label(tmp_path, links):
    root = tmp_path / "deep" / "data"
    fill(root)
    for place, target in links:
        (root / place).symlink_to(target)
    assert read(root) == truth()


def test_a_folder_of_a_class_below_another_class_is_entered_where_it_lies(tmp_path):
    fill(tmp_path)
    (tmp_path / "b" / "deep").mkdir()
    (tmp_path / "b" / "deep" / "b9.png").touch()
    (tmp_path / "a" / "other").symlink_to("../b/deep")
    assert read(tmp_path) == sorted([*truth(), ("b/deep/b9.png", "b")], key=lambda pair: pair[1])


def test_what_lies_elsewhere_is_entered_once_through_whatever_links(tmp_path):
    root, elsewhere = tmp_path / "data", tmp_path / "elsewhere"
    fill(root, "ab", images=1)
    fill(elsewhere, ["more"], images=2)
    (elsewhere / "more" / "round").symlink_to("..")
    (root / "a" / "first").symlink_to(elsewhere)
    (root / "a" / "second").symlink_to(elsewhere / "more")
    (root / "b" / "third").symlink_to(elsewhere / "more")
    assert read(root) == [
        ("a/a0.png", "a"),
        ("a/second/more0.png", "a"),
        ("a/second/more1.png", "a"),
        ("b/b0.png", "b"),
    ]


@pytest.mark.parametrize("target", ["a", "b/deep"])
def test_two_classes_of_one_folder_are_refused(tmp_path, target):
    fill(tmp_path)
    (tmp_path / "b" / "deep").mkdir()
    (tmp_path / "alias").symlink_to(target)
    with pytest.raises(InputError, match=r"are one folder by two names; .* two labels"):
        read(tmp_path)


@pytest.mark.parametrize("reader", ["folder", "imagenet-n"])
def test_splits_do_not_reach_into_each_other(tmp_path, reader):
    test = "val"
    fill(tmp_path / "train")
    fill(tmp_path / test)
    for place in ("train", test):
        for name in "abc":
            (tmp_path / place / name / "up").symlink_to("../..")
            (tmp_path / place / name / "across").symlink_to(f"../../{test if place == 'train' else 'train'}")
            (tmp_path / place / name / "over").symlink_to(f"../../{test if place == 'train' else 'train'}/b")
    data = load_dataset(reader, tmp_path)
    for split, place in ((data.train, "train"), (data.test, test)):
        files = [str(file.relative_to(tmp_path)) for file in split.files]
        assert files == [f"{place}/{name}" for name, _ in truth()]
        clean = split.labels if split.clean_labels is None else split.clean_labels
        assert clean.tolist() == [number for number in range(3) for _ in range(4)]


def test_flat_images_are_flat_whatever_leads_back(tmp_path):
    (tmp_path / "val").mkdir()
    (tmp_path / "val" / "a.png").touch()
    (tmp_path / "val" / "up").symlink_to("..")
    (tmp_path / "val" / "self").symlink_to(".")
    assert lies_flat(tmp_path / "val")
    (tmp_path / "val" / "n01").mkdir()
    assert not lies_flat(tmp_path / "val")


def test_md5_names_file_expected_and_found(tmp_path):
    path = tmp_path / "data_batch_1"
    path.write_bytes(b"abc")
    found = hashlib.md5(b"abc", usedforsecurity=False).hexdigest()
    files.check_md5(path, found)
    with pytest.raises(InputError, match=f"data_batch_1: its md5 is {found}, but the public file's is 0123"):
        files.check_md5(path, "0123")


def test_missing_and_empty_files_are_told_apart(tmp_path):
    with pytest.raises(InputError, match="no such file; ask for it"):
        files.require_file(tmp_path / "a", "ask for it")
    (tmp_path / "b").touch()
    with pytest.raises(InputError, match="is empty"):
        files.require_file(tmp_path / "b")
    with pytest.raises(InputError, match="no such folder"):
        files.require_folder(tmp_path / "b")
    with pytest.raises(InputError, match=r"x: not found \(nor .*y\); look"):
        files.first_existing([tmp_path / "x", tmp_path / "y"], "look")


def test_missing_images_are_counted_and_the_first_is_named(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "1.png").touch()
    wanted = [tmp_path / "a" / "1.png", tmp_path / "a" / "2.png", tmp_path / "gone" / "3.png"]
    files.require_files(wanted[:1], tmp_path / "list")
    with pytest.raises(InputError, match=r"2.png: no such file; 2 of the 3 files in .*list are missing"):
        files.require_files(wanted, tmp_path / "list")


def test_lists_of_paths_and_labels(tmp_path):
    path = tmp_path / "list.txt"
    path.write_text("a/b c.jpg 3\nd.jpg 0\n\n")
    names, labels = files.read_labelled_paths(path, 4)
    assert (names, labels.tolist()) == (["a/b c.jpg", "d.jpg"], [3, 0])
    with pytest.raises(InputError, match="line 1 has the label 3; labels must be 0 to 2"):
        files.read_labelled_paths(path, 3)


@pytest.mark.parametrize("text", ["a.jpg", "a.jpg x", "a.jpg -1", "a.jpg 0\n\nb.jpg 1"])
def test_a_bad_line_is_named(tmp_path, text):
    path = tmp_path / "list.txt"
    path.write_text(text)
    with pytest.raises(InputError, match=r"list.txt: line \d"):
        files.read_labelled_paths(path, 10)


def test_text_that_is_none_is_refused(tmp_path):
    (tmp_path / "bytes").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="no UTF-8"):
        files.read_lines(tmp_path / "bytes")
    (tmp_path / "blank").write_text("\n \n")
    with pytest.raises(InputError, match="blank lines"):
        files.read_lines(tmp_path / "blank")


def test_looking_up_a_key_without_a_label(tmp_path):
    assert files.look_up(["a", "b"], {"a": 1, "b": 0}, tmp_path, tmp_path).tolist() == [1, 0]
    with pytest.raises(InputError, match="no label for 'c'"):
        files.look_up(["c"], {"a": 1}, tmp_path / "keys", tmp_path / "labels")
