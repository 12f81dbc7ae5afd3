import json

import numpy as np
import pytest

from prune4rel.errors import InputError
from prune4rel.reading import seal
from prune4rel.signal_shards import check_file, finish_signals, open_signals, write_part, write_signals
from prune4rel.signals import Signals


def piece(rng, n):
    return Signals(
        labels=rng.integers(2, size=n),
        probabilities=rng.dirichlet(np.ones(3), n).astype(np.float32),
        embeddings=rng.normal(size=(n, 4)).astype(np.float16),
        losses=rng.random(n),
        ids=np.array([f"id {k}" for k in rng.integers(1000, size=n)]),
        known=rng.random(n) < 0.9,
        verified=rng.random(n) < 0.5,
        class_names=("a", "b", "c"),
    )


def test_parts_in_any_order_come_back_whole(tmp_path, rng):
    parts = [piece(rng, n) for n in (5, 1, 7)]
    folder = tmp_path / "signals"
    folder.mkdir()
    entries = [write_part(folder, number, parts[number]) for number in (2, 0, 1)]
    finish_signals(folder, entries)
    opened = open_signals(folder)
    assert len(opened) == 13
    assert opened.classes == 3
    loaded = opened.load()
    for name, array in loaded.arrays().items():
        if name != "class_names":
            np.testing.assert_array_equal(array, np.concatenate([part.arrays()[name] for part in parts]), strict=True)
    assert loaded.class_names == ("a", "b", "c")
    index = json.loads((folder / "_signals.json").read_text())
    assert index["n"] == 13
    assert [part["rows"] for part in index["parts"]] == [5, 1, 7]
    for url, digest in opened.sha256.items():
        check_file(url, digest)


def test_an_unfinished_folder_is_refused(tmp_path, rng):
    write_part(tmp_path, 0, piece(rng, 3))
    with pytest.raises(InputError, match=r"_signals\.json: the shard is not there"):
        open_signals(tmp_path)
    with pytest.raises(InputError, match="no part was written"):
        finish_signals(tmp_path, [])


def test_parts_that_do_not_fit_together(tmp_path, rng):
    bare = Signals(labels=[0, 1])
    with pytest.raises(InputError, match=r"part-00001\.parquet: its classes are None, but 3"):
        write_signals(tmp_path / "signals", [piece(rng, 3), bare])


@pytest.mark.parametrize("text", ["[]", "{}", '{"format": 1}', "nonsense", '{"format": 9}'])
def test_an_index_that_is_none(tmp_path, text):
    (tmp_path / "_signals.json").write_text(text)
    with pytest.raises(InputError, match=r"_signals\.json: (not (an index|a readable)|is not what|written by a newer)"):
        open_signals(tmp_path)


def test_existing_parts_are_not_replaced_by_accident(tmp_path, rng):
    write_signals(tmp_path / "signals", [piece(rng, 3)])
    with pytest.raises(InputError, match="exists already"):
        write_signals(tmp_path / "signals", [piece(rng, 4)])
    write_signals(tmp_path / "signals", [piece(rng, 4)], force=True)
    assert len(open_signals(tmp_path / "signals")) == 4


def test_an_index_that_lies_about_n(tmp_path, rng):
    write_signals(tmp_path / "signals", [piece(rng, 3)])
    file = tmp_path / "signals" / "_signals.json"
    file.write_text(file.read_text().replace('"n": 3', '"n": 4'))
    with pytest.raises(InputError, match="changed since it was written"):
        open_signals(tmp_path / "signals")
    file.write_text(json.dumps(seal(json.loads(file.read_text()))))
    with pytest.raises(InputError, match="says n = 4, but its parts have 3 rows"):
        open_signals(tmp_path / "signals")
