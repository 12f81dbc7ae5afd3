import errno
import hashlib
import pickle
import tempfile
import warnings
import zipfile
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import save_file

from prune4rel.errors import InputError
from prune4rel.storage import (
    PARTS,
    check_writable,
    read_array,
    read_arrays,
    to_table,
    write_arrays,
    write_json,
    write_whole,
)

FORMATS = ("folder", "a.npz", "a.safetensors", "a.parquet")
REFUSED = "holds pickled Python objects, which can run code when loaded and are refused"


class Payload:
    """Unpickling it would leave a file behind."""

    def __init__(self, marker):
        self.marker = marker

    def __reduce__(self):
        return (Path.touch, (self.marker,))


@pytest.fixture
def marker(tmp_path):
    path = tmp_path / "code-was-run"
    yield path
    assert not path.exists()


@contextmanager
def full_disk():
    """Let every file end after 20 kB; only while writing, since pytest's own output may go to a file too."""
    resource = pytest.importorskip("resource", reason="limits on file sizes need a Unix")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_payload_would_indeed_run_code(tmp_path):
    pickle.loads(pickle.dumps(Payload(tmp_path / "ran")))  # noqa: S301 - the test of the tests below
    assert (tmp_path / "ran").exists()


def test_pickled_npy_is_refused_and_never_unpickled(marker, tmp_path):
    np.save(tmp_path / "labels.npy", np.array([Payload(marker)], dtype=object), allow_pickle=True)
    for path in (tmp_path / "labels.npy", tmp_path):
        with pytest.raises(InputError, match=f"labels.npy: {REFUSED}; save a plain numeric or string array"):
            read_arrays(path)


def test_plain_pickle_named_npy_is_refused_and_never_unpickled(marker, tmp_path):
    (tmp_path / "a.npy").write_bytes(pickle.dumps(Payload(marker)))
    with pytest.raises(InputError, match=f"a.npy: {REFUSED}"):
        read_arrays(tmp_path / "a.npy")


def test_npz_with_objects_is_refused_and_never_unpickled(marker, tmp_path):
    np.savez(tmp_path / "a.npz", good=np.ones(2), bad=np.array([Payload(marker)], dtype=object))
    with pytest.raises(InputError, match=f"a.npz: {REFUSED}"):
        read_arrays(tmp_path / "a.npz")


@pytest.mark.parametrize(("kept", "message"), [(-1, "truncated"), (200, "truncated"), (50, "header"), (8, "header")])
def test_truncated_npy_is_refused(tmp_path, kept, message):
    np.save(tmp_path / "a.npy", np.ones((50, 4)))
    (tmp_path / "a.npy").write_bytes((tmp_path / "a.npy").read_bytes()[:kept])
    with pytest.raises(InputError, match=rf"a.npy: .*{message}"):
        read_arrays(tmp_path / "a.npy")


@pytest.mark.parametrize("name", ["a.npy", "a.npz"])
def test_empty_files_are_refused(tmp_path, name):
    (tmp_path / name).touch()
    with pytest.raises(InputError, match=rf"{name}: the file is empty"):
        read_arrays(tmp_path / name)


@pytest.mark.parametrize(("name", "start"), [("a.npy", b"\x93NUM"), ("a.npz", b"P")])
def test_the_first_bytes_alone_are_truncated(tmp_path, name, start):
    (tmp_path / name).write_bytes(start)
    with pytest.raises(InputError, match=rf"{name}: the file is truncated: only {len(start)} bytes are there"):
        read_arrays(tmp_path / name)


@pytest.mark.parametrize("name", ["a.npy", "a.npz"])
@pytest.mark.parametrize("content", [b"nonsense", b"\xff" * 200, b"1,2\n3,4\n", b"\x80\x99", b"object"])
def test_nonsense_is_not_called_a_pickle(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=rf"{name}: not a readable .np[yz] file: it is not in NumPy's format"):
        read_arrays(tmp_path / name)


def test_a_pickle_by_any_name_is_called_one_and_never_unpickled(marker, tmp_path):
    (tmp_path / "a.npz").write_bytes(pickle.dumps(Payload(marker)))
    with pytest.raises(InputError, match=f"a.npz: {REFUSED}"):
        read_arrays(tmp_path / "a.npz")


def test_numpy_files_under_each_others_names_are_refused_with_the_right_one(tmp_path):
    np.save(tmp_path / "a.npy", np.arange(3))
    (tmp_path / "a.npy").rename(tmp_path / "one.npz")
    with pytest.raises(InputError, match=r"one.npz: is a .npy file by what it holds; rename it to one.npy"):
        read_arrays(tmp_path / "one.npz")
    np.savez(tmp_path / "b.npz", labels=np.arange(3))
    (tmp_path / "b.npz").rename(tmp_path / "two.npy")
    with pytest.raises(InputError, match=r"two.npy: is a .npz file by what it holds; rename it to two.npz"):
        read_arrays(tmp_path / "two.npy")


def test_other_archives_are_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("notes.txt", "no array")
    with pytest.raises(InputError, match=r"a.npz: 'notes.txt' in it is not in NumPy's format; save arrays with np.sa"):
        read_arrays(tmp_path / "a.npz")


@given(st.data())
def test_damaged_files_give_arrays_or_words(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("damaged")
    kind = data.draw(st.sampled_from([".npy", ".npz"]))
    path = folder / f"a{kind}"
    if kind == ".npy":
        np.save(path, np.arange(12.0).reshape(3, 4))
    else:
        np.savez_compressed(path, labels=np.arange(40), ids=np.array(["a", "bb"]))
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(content[: data.draw(st.integers(0, len(content)) | st.just(len(content)))])
    with warnings.catch_warnings(), suppress(InputError):
        warnings.simplefilter("ignore")
        assert all(isinstance(array, np.ndarray) for array in read_arrays(path).values())


@pytest.mark.parametrize("kept", [2, 500])
def test_truncated_npz_is_refused(tmp_path, kept):
    np.savez(tmp_path / "a.npz", labels=np.arange(100))
    (tmp_path / "a.npz").write_bytes((tmp_path / "a.npz").read_bytes()[:kept])
    with pytest.raises(InputError, match=r"a.npz: not a readable .npz file, perhaps truncated"):
        read_arrays(tmp_path / "a.npz")


@pytest.mark.parametrize("name", ["a.safetensors", "a.parquet"])
@pytest.mark.parametrize("content", [b"", b"nonsense", b"\xff" * 200, "half"], ids=["empty", "short", "long", "half"])
def test_corrupt_files_are_refused(tmp_path, name, content):
    if content == "half":
        write_arrays(tmp_path / name, {"labels": np.arange(1000)})
        whole = (tmp_path / name).read_bytes()
        content = whole[: len(whole) // 2]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=rf"{name}: not a readable"):
        read_arrays(tmp_path / name)


def test_unknown_suffix_is_refused_with_the_known_ones(tmp_path):
    (tmp_path / "a.csv").touch()
    with pytest.raises(InputError, match=r"a.csv: unknown format '.csv'; use .npy, .npz, .safetensors, .parquet or a"):
        read_arrays(tmp_path / "a.csv")
    with pytest.raises(InputError, match=r"a.csv: unknown format '.csv'"):
        write_arrays(tmp_path / "a.csv", {"a": np.ones(1)}, force=True)


def test_missing_file_and_empty_folder_are_refused(tmp_path):
    with pytest.raises(InputError, match=r"nowhere.npy: no such file or folder"):
        read_arrays(tmp_path / "nowhere.npy")
    with pytest.raises(InputError, match=r"no .npy file in this folder; expected labels.npy, embeddings.npy"):
        read_arrays(tmp_path)


@pytest.mark.parametrize("name", FORMATS)
def test_arrays_come_back_as_they_were(tmp_path, name, rng):
    arrays = {
        "labels": np.arange(5),
        "embeddings": rng.normal(size=(5, 3)).astype(np.float16),
        "probabilities": np.asfortranarray(rng.normal(size=(5, 2))),
        "ids": np.array(["a", "bb", "ccc", "é", ""]),
        "names": np.array(["one", "two"]),
    }
    write_arrays(tmp_path / name, arrays)
    found = read_arrays(tmp_path / name)
    assert found.keys() == arrays.keys()
    for key, array in arrays.items():
        np.testing.assert_array_equal(found[key], array)
        assert found[key].dtype.kind == array.dtype.kind
        assert found[key].dtype.itemsize == array.dtype.itemsize


def test_lone_arrays_are_memory_mapped(tmp_path):
    np.save(tmp_path / "a.npy", np.ones((3, 2)))
    assert isinstance(read_arrays(tmp_path / "a.npy")[""], np.memmap)


def test_one_array_is_found_alone_or_by_name(tmp_path):
    np.save(tmp_path / "a.npy", np.arange(3))
    np.savez(tmp_path / "one.npz", whatever=np.arange(3))
    np.savez(tmp_path / "two.npz", labels=np.arange(3), other=np.arange(4))
    for name in ("a.npy", "one.npz", "two.npz"):
        assert read_array(tmp_path / name, "labels").tolist() == [0, 1, 2]
    with pytest.raises(InputError, match=r"two.npz: holds labels, other, none of them named 'embeddings'"):
        read_array(tmp_path / "two.npz", "embeddings")


def test_tables_in_several_chunks_are_put_together(tmp_path):
    table = to_table({"labels": np.arange(7), "rows": np.arange(14.0).reshape(7, 2)})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=2)
    np.testing.assert_array_equal(read_arrays(tmp_path / "a.parquet")["rows"], np.arange(14.0).reshape(7, 2))


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (pa.array([1, None, 3]), r"column 'x' has a missing value in row 1; fill or drop it"),
        (pa.array([[1.0], [2.0, 3.0], []]), r"column 'x' is a list of varying length; write it as a fixed-size list"),
    ],
)
def test_tables_with_holes_or_ragged_lists_are_refused(tmp_path, column, message):
    pq.write_table(pa.table({"x": column}), tmp_path / "a.parquet")
    with pytest.raises(InputError, match=message):
        read_arrays(tmp_path / "a.parquet")


def test_files_written_by_others_are_read(tmp_path):
    save_file({"labels": np.arange(3)}, tmp_path / "a.safetensors")
    pq.write_table(pa.table({"labels": [0, 1], "ids": pa.array(["a", "b"], pa.large_string())}), tmp_path / "a.parquet")
    assert read_arrays(tmp_path / "a.safetensors")["labels"].tolist() == [0, 1, 2]
    assert read_arrays(tmp_path / "a.parquet")["ids"].tolist() == ["a", "b"]


@pytest.mark.parametrize("name", ["folder", "a.npz", "a.safetensors", "a.parquet"])
def test_full_disk_leaves_nothing_behind_and_what_was_there_as_it_was(tmp_path, name, rng):
    write_arrays(tmp_path / name, {"labels": np.arange(3)})
    refused = pytest.raises(InputError, match=rf"{name}: writing failed \(.*\); nothing was left behind")
    with refused, full_disk():
        write_arrays(tmp_path / name, {"labels": rng.random(10_000)}, force=True)
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert read_arrays(tmp_path / name)["labels"].tolist() == [0, 1, 2]


def test_failure_to_rename_leaves_nothing_behind(tmp_path, monkeypatch):
    def no_space(self, target):
        raise OSError(errno.ENOSPC, "No space left on device", str(self), None, str(target))

    monkeypatch.setattr(Path, "replace", no_space)
    with pytest.raises(InputError, match=r"a.json: writing failed \(No space left on device\)"):
        write_json(tmp_path / "a.json", {"a": 1})
    assert not list(tmp_path.iterdir())


def test_interrupted_writing_leaves_nothing_behind(tmp_path):
    def interrupted(part):
        part.mkdir()
        (part / "some.npy").touch()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_whole(tmp_path / "folder", interrupted)
    assert not list(tmp_path.iterdir())


def test_unwritable_folder_is_told_before_the_work(tmp_path, monkeypatch):
    def denied(**_):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(tempfile, "TemporaryFile", denied)
    with pytest.raises(InputError, match=r"a.npz: cannot write into .* \(Permission denied\)"):
        check_writable(tmp_path / "a.npz")


def test_missing_folder_and_existing_file_are_told_before_the_work(tmp_path):
    with pytest.raises(InputError, match=r"a.npz: the folder .*missing does not exist; make it first"):
        check_writable(tmp_path / "missing" / "a.npz")
    (tmp_path / "a.npz").touch()
    with pytest.raises(InputError, match=r"exists already; choose another name or pass --force \(force=True\)"):
        check_writable(tmp_path / "a.npz")
    check_writable(tmp_path / "a.npz", force=True)


def test_what_is_to_be_kept_is_not_writable(tmp_path, monkeypatch):
    (tmp_path / "a.npz").touch()
    (tmp_path / "b.npz").symlink_to(tmp_path / "a.npz")
    monkeypatch.chdir(tmp_path)
    for name in ("a.npz", tmp_path / "a.npz", "b.npz"):
        with pytest.raises(InputError, match=r"a.npz: is read here, so it cannot be written, too"):
            check_writable(tmp_path / "a.npz", force=True, keep=[None, "missing.npz", name])
    check_writable(tmp_path / "a.npz", force=True, keep=[None, "missing.npz", tmp_path])


def test_json_is_for_people_too(tmp_path):
    write_json(tmp_path / "a.json", {"name": "Käse"})
    assert (tmp_path / "a.json").read_text(encoding="utf-8") == '{\n  "name": "Käse"\n}\n'


def test_signals_in_parts_are_put_together(tmp_path):
    for number, rows in enumerate((range(3), range(3, 5))):
        pq.write_table(to_table({"labels": np.array(rows)}), tmp_path / f"part-{number}.parquet")
    names = [
        {"name": path.name, "rows": rows, "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}
        for path, rows in zip(sorted(tmp_path.glob("part-*")), (3, 2), strict=True)
    ]
    write_json(tmp_path / PARTS, {"n": 5, "parts": names, "class_names": ["a", "b", "c", "d", "e"]})
    found = read_arrays(tmp_path)
    assert found["labels"].tolist() == [0, 1, 2, 3, 4]
    assert found["class_names"].tolist() == ["a", "b", "c", "d", "e"]
    (tmp_path / "part-1.parquet").unlink()
    with pytest.raises(InputError, match=r"part-1.parquet: no such file, but _signals.json lists it"):
        read_arrays(tmp_path)
    write_json(tmp_path / PARTS, {"part": names}, force=True)
    with pytest.raises(InputError, match=r"_signals.json: n is missing"):
        read_arrays(tmp_path)
