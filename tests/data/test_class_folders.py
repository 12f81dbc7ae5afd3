from pathlib import Path

import pytest

from prune4rel import InputError, load_dataset
from prune4rel.data.class_folders import check_same_classes, list_classes, read_class_folders
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
