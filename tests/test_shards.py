import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prune4rel.errors import InputError
from prune4rel.shards import FileShard, Shards, open_shards
from prune4rel.storage import to_table


def write(folder, arrays, suffix):
    folder.mkdir(exist_ok=True)
    for number, array in enumerate(arrays):
        if suffix == ".npy":
            np.save(folder / f"part-{number:02d}.npy", array)
        else:
            pq.write_table(to_table({"x": array}), folder / f"part-{number:02d}.parquet", row_group_size=3)
    return folder


@pytest.mark.parametrize("suffix", [".npy", ".parquet"])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.int64])
def test_any_range_of_rows(tmp_path, rng, suffix, dtype):
    whole = (rng.normal(size=(23, 5)) * 10).astype(dtype)
    shards = open_shards(write(tmp_path / "x", np.split(whole, [4, 5, 15]), suffix), "x")
    assert shards.shape == (23, 5)
    assert shards.dtype == dtype
    assert shards.nbytes == whole.nbytes
    for start in range(23):
        for stop in range(start + 1, 24):
            np.testing.assert_array_equal(shards.read(start, stop), whole[start:stop], strict=True)


@given(st.lists(st.integers(1, 5), min_size=1, max_size=6), st.data())
def test_ranges_over_parts(sizes, data):
    class Part:
        def __init__(self, first, rows):
            self.first, self.rows = first, rows

        def read(self, start, stop):
            assert 0 <= start < stop <= self.rows
            return np.arange(self.first + start, self.first + stop)

    parts = tuple(Part(sum(sizes[:k]), size) for k, size in enumerate(sizes))
    shards = Shards("x", parts, (), np.dtype(np.int64))
    start = data.draw(st.integers(0, len(shards) - 1))
    stop = data.draw(st.integers(start + 1, len(shards)))
    assert shards.read(start, stop).tolist() == list(range(start, stop))


def test_one_file_words_and_urls(tmp_path):
    np.save(tmp_path / "y.npy", np.array(["cat", "dog"]))
    for source in (tmp_path / "y.npy", f"file://{tmp_path}/y.npy", f"local://{tmp_path}/y.npy"):
        assert open_shards(source, "labels").read().tolist() == ["cat", "dog"]
    pq.write_table(pa.table({"labels": ["a", "b"], "other": [1, 2]}), tmp_path / "y.parquet")
    assert open_shards(tmp_path / "y.parquet", "labels").read().tolist() == ["a", "b"]


def test_hidden_files_are_passed_over(tmp_path):
    folder = write(tmp_path / "x", [np.zeros((2, 2))], ".npy")
    (folder / "_SUCCESS").touch()
    (folder / ".part.npy").touch()
    assert len(open_shards(folder, "x")) == 2


def test_what_is_wrong_with_a_folder_is_told(tmp_path):
    with pytest.raises(InputError, match="no such file or folder"):
        open_shards(tmp_path / "nothing", "x")
    with pytest.raises(InputError, match=r"no \.npy or \.parquet file"):
        open_shards(tmp_path, "x")
    folder = write(tmp_path / "x", [np.zeros((2, 2)), np.zeros((2, 3))], ".npy")
    with pytest.raises(InputError, match=r"part-01\.npy: a row of x has shape \(3,\), but \(2,\)"):
        open_shards(folder, "x")
    write(folder, [np.zeros((2, 2)), np.zeros((2, 2), np.float32)], ".npy")
    with pytest.raises(InputError, match=r"part-01\.npy: x is float32, but float64"):
        open_shards(folder, "x")
    pq.write_table(to_table({"x": np.zeros((2, 2))}), folder / "part-02.parquet")
    with pytest.raises(InputError, match=r"both \.npy and \.parquet"):
        open_shards(folder, "x")
    with pytest.raises(InputError, match="neither pyarrow nor fsspec can read it"):
        open_shards("nosuch://host/file.npy", "x")


def test_what_is_wrong_with_a_file_is_told(tmp_path):
    file = tmp_path / "x.npy"
    np.save(file, np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(InputError, match="pickled Python objects"):
        open_shards(file, "x")
    np.save(file, np.asfortranarray(np.ones((2, 3))))
    with pytest.raises(InputError, match="column by column"):
        open_shards(file, "x")
    file.write_bytes(b"no array")
    with pytest.raises(InputError, match=r"x\.npy: not a readable shard"):
        open_shards(file, "x")
    (tmp_path / "x.txt").touch()
    with pytest.raises(InputError, match="unknown format"):
        open_shards(tmp_path / "x.txt", "x")
    pq.write_table(pa.table({"x": [[1.0], [1.0, 2.0]]}), tmp_path / "x.parquet")
    with pytest.raises(InputError, match="list of varying length"):
        open_shards(tmp_path / "x.parquet", "x")
    pq.write_table(pa.table({"a": [1], "b": [2]}), tmp_path / "x.parquet")
    with pytest.raises(InputError, match="holds the columns a, b, none of them named 'x'"):
        open_shards(tmp_path / "x.parquet", "x")


def test_a_file_that_changes_is_refused(tmp_path):
    np.save(tmp_path / "x.npy", np.zeros((4, 2)))
    shards = open_shards(tmp_path / "x.npy", "x")
    np.save(tmp_path / "x.npy", np.zeros((5, 2)))
    with pytest.raises(InputError, match=r"has 208 bytes, but had 192"):
        shards.read(0, 2)
    (tmp_path / "x.npy").unlink()
    with pytest.raises(InputError, match="the shard is not there"):
        shards.read(0, 2)


def test_damage_inside_a_parquet_file_is_found(tmp_path):
    file = tmp_path / "x.parquet"
    table = to_table({"x": np.random.default_rng(0).normal(size=(100, 8))})
    pq.write_table(table, file, write_page_checksum=True, compression="none", use_dictionary=False)
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    with pytest.raises(InputError, match="not a readable Parquet file"):
        FileShard(str(file), 100, len(content), "x").read(0, 100)
