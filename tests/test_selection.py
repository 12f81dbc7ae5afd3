import errno
import json
import math
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from torch.utils.data import DataLoader, Dataset, TensorDataset

from prune4rel.errors import InputError
from prune4rel.selection import METADATA_KEY, Selection
from prune4rel.storage import read_array

ARRAYS = ("indices", "gains", "labels", "confidence", "ids", "scores", "weights")


@pytest.fixture
def selection():
    return Selection(
        indices=np.array([4, 0, 2]),
        gains=np.array([1.5, 0.5, 1e-300]),
        objective=2.0,
        n=5,
        method="prune4rel",
        options={"tau": 0.975, "gain": "paper", "max_degree": None},
        stats={"mean_degree": 3.5, "class_counts": [2, 1]},
        provenance={"versions": {"numpy": "2"}},
        labels=np.array([0, 1, 0]),
        confidence=np.array([0.9, 0.8, 0.7]),
        ids=np.array(["a", "b", "cc"]),
        scores=np.array([5.0, 4.0, 3.0, np.inf, 1.0]),
        notes=("Look here.",),
        weights=np.array([3.0, 0.0, 1.5]),
    )


def without(selection, **changes):
    return Selection(**{name: getattr(selection, name) for name in selection.__dataclass_fields__} | changes)


def assert_same_selection(one, other):
    for name in ARRAYS:
        left, right = getattr(one, name), getattr(other, name)
        assert (left is None) == (right is None), name
        if left is not None:
            np.testing.assert_array_equal(left, right)
            assert left.dtype.kind == right.dtype.kind
    assert one.manifest() == other.manifest()
    assert one.notes == other.notes


def test_everything_comes_back(selection, tmp_path):
    selection.save(tmp_path / "subset.parquet")
    assert_same_selection(Selection.load(tmp_path / "subset.parquet"), selection)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "subset.json",
        "subset.parquet",
        "subset.scores.parquet",
    ]


def test_the_least_comes_back(selection, tmp_path):
    bare = Selection(indices=selection.indices, gains=selection.gains, objective=math.nan, n=5, method="uniform")
    bare.save(tmp_path / "subset.parquet")
    loaded = Selection.load(tmp_path / "subset.parquet")
    assert_same_selection(loaded, bare)
    assert math.isnan(loaded.objective)
    assert not loaded.approximate


def test_integer_ids_come_back(selection, tmp_path):
    without(selection, ids=np.array([70, 80, 90])).save(tmp_path / "subset.parquet")
    assert Selection.load(tmp_path / "subset.parquet").ids.tolist() == [70, 80, 90]


def test_parquet_is_one_row_a_pick_for_anyone_to_read(selection, tmp_path):
    selection.save(tmp_path / "subset.parquet")
    table = pq.read_table(tmp_path / "subset.parquet").to_pydict()
    assert list(table) == ["rank", "index", "id", "gain", "label", "confidence", "weight"]
    assert table["rank"] == [0, 1, 2]
    assert table["index"] == [4, 0, 2]
    assert table["weight"] == [3.0, 0.0, 1.5]


def test_a_file_from_before_there_were_weights_loads(selection, tmp_path):
    without(selection, weights=None).save(tmp_path / "subset.parquet")
    assert "weight" not in pq.read_table(tmp_path / "subset.parquet").column_names
    assert Selection.load(tmp_path / "subset.parquet").weights is None


def test_json_beside_it_says_how_it_was_made(selection, tmp_path):
    selection.save(tmp_path / "subset.parquet")
    manifest = json.loads((tmp_path / "subset.json").read_text())
    assert manifest == selection.manifest()
    assert manifest["size"] == 3
    assert manifest["options"]["tau"] == 0.975


def test_parquet_alone_is_enough(selection, tmp_path):
    selection.save(tmp_path / "subset.parquet")
    (tmp_path / "subset.json").unlink()
    assert Selection.load(tmp_path / "subset.parquet").options == selection.options


def test_indices_alone_go_into_npy(selection, tmp_path):
    selection.save(tmp_path / "subset.npy")
    indices = np.load(tmp_path / "subset.npy", allow_pickle=False)
    assert indices.tolist() == [4, 0, 2]
    assert indices.dtype == np.int64
    assert [path.name for path in tmp_path.iterdir()] == ["subset.npy"]


def test_other_suffixes_are_refused(selection, tmp_path):
    with pytest.raises(InputError, match=r"subset.json: a selection is saved as .parquet, .csv, .txt or .npy"):
        selection.save(tmp_path / "subset.json")


def test_rows_for_spreadsheets_and_names_for_scripts(selection, tmp_path):
    risky = without(selection, ids=np.array(["a/1.png", "=b", "c d.png"]))
    risky.save(tmp_path / "picks.csv")
    assert (tmp_path / "picks.csv").read_text().splitlines()[:3] == [
        "rank,index,id,gain,label,confidence,weight",
        "0,4,a/1.png,1.5,0,0.9,3.0",
        "1,0,'=b,0.5,1,0.8,0.0",
    ]
    risky.save(tmp_path / "picks.txt")
    assert (tmp_path / "picks.txt").read_text() == "a/1.png\n=b\nc d.png\n"
    without(selection, ids=None).save(tmp_path / "rows.txt")
    assert (tmp_path / "rows.txt").read_text() == "4\n0\n2\n"
    assert read_array(tmp_path / "rows.txt", "subset").tolist() == [4, 0, 2]
    assert read_array(tmp_path / "picks.csv", "subset").tolist() == [4, 0, 2]
    with pytest.raises(InputError, match="longer than a line"):
        without(selection, ids=np.array(["a", "b\nc", "d"])).save(tmp_path / "never.txt")
    assert not (tmp_path / "never.txt").exists()


def test_picks_as_mask_and_frame(selection):
    assert selection.mask.tolist() == [True, False, True, False, True]
    frame = selection.to_pandas()
    assert frame["id"].tolist() == ["a", "b", "cc"]
    assert frame["index"].tolist() == [4, 0, 2]


def test_a_sampler_draws_picks_by_their_weights(selection):
    whole = TensorDataset(torch.arange(5))
    drawn = [int(row) for _ in range(200) for row in selection.sampler(seed=_)]
    assert len(drawn) == 600
    assert set(drawn) == {4, 2}, "a weight of 0 is never drawn"
    assert 0.6 < drawn.count(4) / 600 < 0.73, "twice as often as the other"
    assert [batch[0].tolist() for batch in DataLoader(whole, sampler=selection.sampler())]
    plain = without(selection, weights=None)
    assert sorted(plain.sampler(seed=3)) == [0, 2, 4]
    assert list(plain.sampler(seed=3)) == list(plain.sampler(seed=3))
    with pytest.raises(InputError, match="all weights of the picks are 0"):
        without(selection, weights=np.zeros(3)).sampler()


def test_the_library_datasets_takes_the_picks(selection):
    datasets = pytest.importorskip("datasets")
    rows = datasets.Dataset.from_dict({"x": list(range(5))})
    assert rows.select(selection.indices)["x"][:] == [4, 0, 2]


@pytest.mark.parametrize("name", ["subset.parquet", "subset.json", "subset.scores.parquet"])
def test_existing_files_are_kept_unless_forced(selection, tmp_path, name):
    (tmp_path / name).write_text("precious")
    with pytest.raises(InputError, match=rf"{name}: exists already; .* --force \(force=True\)"):
        selection.save(tmp_path / "subset.parquet")
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_text() == "precious"
    selection.save(tmp_path / "subset.parquet", force=True)
    assert_same_selection(Selection.load(tmp_path / "subset.parquet"), selection)


def test_missing_folder_is_refused(selection, tmp_path):
    with pytest.raises(InputError, match=r"the folder .*missing does not exist; make it first"):
        selection.save(tmp_path / "missing" / "subset.parquet")


@pytest.mark.parametrize("name", ["subset.parquet", "subset.npy"])
def test_full_disk_leaves_nothing_behind(selection, tmp_path, monkeypatch, name):
    def no_space(self, _target):
        raise OSError(errno.ENOSPC, "No space left on device", str(self))

    monkeypatch.setattr(Path, "replace", no_space)
    with pytest.raises(
        InputError, match=rf"{name}: writing failed \(No space left on device\); nothing was left behind"
    ):
        selection.save(tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_loading_what_is_no_selection_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"none.parquet: no such file"):
        Selection.load(tmp_path / "none.parquet")
    (tmp_path / "bad.parquet").write_bytes(b"nonsense")
    with pytest.raises(InputError, match=r"bad.parquet: not a readable Parquet file"):
        Selection.load(tmp_path / "bad.parquet")
    pq.write_table(pa.table({"index": [1]}), tmp_path / "other.parquet")
    with pytest.raises(InputError, match=r"other.parquet: not a selection; it was not written by Selection.save"):
        Selection.load(tmp_path / "other.parquet")


def test_loading_a_newer_format_is_refused(tmp_path):
    table = pa.table({"index": [1]}).replace_schema_metadata({METADATA_KEY: json.dumps({"format": 99})})
    pq.write_table(table, tmp_path / "new.parquet")
    with pytest.raises(InputError, match=r"new.parquet: written by a newer prune4rel \(format 99\); update to read it"):
        Selection.load(tmp_path / "new.parquet")


def test_subset_of_a_torch_dataset_is_in_pick_order(selection):
    dataset = TensorDataset(torch.arange(50, 55), torch.arange(5))
    subset = selection.subset(dataset)
    assert len(subset) == 3
    [[values, numbers]] = list(DataLoader(subset, batch_size=3))
    assert values.tolist() == [54, 50, 52]
    assert numbers.tolist() == [4, 0, 2]


def test_subset_of_another_dataset_is_refused(selection):
    with pytest.raises(InputError, match=r"the data set has 6 examples, but the selection was made from 5"):
        selection.subset(TensorDataset(torch.arange(6)))


def test_subset_of_a_dataset_that_does_not_know_its_length_is_tried(selection):
    class Unsized(Dataset):
        def __getitem__(self, index):
            return 10 * index

    assert selection.subset(Unsized())[0] == 40


def test_selection_introduces_itself(selection):
    assert repr(selection) == "Selection('prune4rel', 3 of 5, objective=2)"
    assert len(selection) == 3
    assert without(selection, stats={"approximate": True}).approximate


def test_no_moment_of_replacing_shows_a_mixed_selection(selection, tmp_path, monkeypatch):
    path = tmp_path / "subset.parquet"
    other = without(selection, indices=selection.indices[::-1].copy(), scores=np.arange(5.0) ** 2, method="other")

    class Killed(BaseException):
        pass

    def steps(die_at):
        """Make the step of that number the last that is done."""
        count = 0

        def step(real):
            def counted(*arguments, **options):
                nonlocal count
                count += 1
                if count > die_at:
                    raise Killed
                return real(*arguments, **options)

            return counted

        return step

    for die_at in range(30):
        for left in tmp_path.iterdir():
            left.unlink()
        selection.save(path)
        with monkeypatch.context() as patched:
            for name in ("replace", "unlink"):
                patched.setattr(Path, name, steps(die_at)(getattr(Path, name)))
            with suppress(Killed):
                other.save(path, force=True)
        try:
            found = Selection.load(path)
        except InputError:
            assert not path.exists()
            continue
        assert_same_selection(found, selection if found.method == selection.method else other)
        assert json.loads((tmp_path / "subset.json").read_text())["method"] == found.method


@pytest.mark.parametrize("change", ["swapped", "absent", "another"])
def test_scores_of_another_selection_are_refused(selection, tmp_path, change):
    selection.save(tmp_path / "a.parquet")
    without(selection, scores=np.arange(5.0)).save(tmp_path / "b.parquet")
    without(selection, scores=None).save(tmp_path / "c.parquet")
    if change == "swapped":
        (tmp_path / "b.scores.parquet").replace(tmp_path / "a.scores.parquet")
    elif change == "absent":
        (tmp_path / "a.scores.parquet").unlink()
    else:
        (tmp_path / "a.scores.parquet").replace(tmp_path / "c.scores.parquet")
    with pytest.raises(InputError, match="select again"):
        Selection.load(tmp_path / ("c.parquet" if change == "another" else "a.parquet"))


def test_what_killed_processes_left_goes_with_the_next_save(selection, tmp_path):
    child = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True)
    (tmp_path / f".subset.parquet.{int(child.stdout)}.part").write_bytes(b"half")
    (tmp_path / f".of_the_living.parquet.{os.getpid()}.part").write_bytes(b"half")
    (tmp_path / ".of_another_machine.parquet.1@elsewhere.part").write_bytes(b"half")
    selection.save(tmp_path / "subset.parquet")
    left = sorted(path.name for path in tmp_path.glob(".*"))
    assert left == [".of_another_machine.parquet.1@elsewhere.part", f".of_the_living.parquet.{os.getpid()}.part"]
