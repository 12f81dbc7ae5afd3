from pathlib import Path

import pytest

from prune4rel import InputError
from prune4rel.data.class_folders import check_same_classes, list_classes, read_class_folders


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
