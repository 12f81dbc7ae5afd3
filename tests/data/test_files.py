import hashlib

import pytest

from prune4rel import InputError
from prune4rel.data import files


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
