from pathlib import Path

import numpy as np
import pytest

from prune4rel import InputError
from prune4rel.storage import read_array


@pytest.fixture
def write(tmp_path):
    def to(name, text):
        Path(tmp_path, name).write_text(text, encoding="utf-8")
        return tmp_path / name

    return to


@pytest.mark.parametrize(
    ("file", "text", "name", "expected"),
    [
        ("y.csv", "label\n0\n1\n", "labels", [0, 1]),
        ("y.csv", "0\n1\n", "labels", [0, 1]),
        ("y.csv", "\ufefflabel\ncat\ndog\n", "labels", ["cat", "dog"]),
        ("y.csv", "cat\ndog\n", "labels", ["cat", "dog"]),
        ("y.csv", "id;given_label\na.png;cat\n'b;c';dog\n".replace("'", '"'), "labels", ["cat", "dog"]),
        ("y.csv", "id,label\n7,1\n8,0\n", "ids", [7, 8]),
        ("y.tsv", "path\ty\na b\t1\nc\t0\n", "labels", [1, 0]),
        ("y.txt", "ice cream\nsalt, pepper\n", "labels", ["ice cream", "salt, pepper"]),
        ("y.txt", "labels\n3\n4\n", "labels", [3, 4]),
        ("y.csv", "1e3\n2e3\n", "labels", ["1e3", "2e3"]),
        ("l.csv", "loss\n0.5\n1\n", "losses", [0.5, 1.0]),
        ("l.txt", "0.5\n1\n", "losses", [0.5, 1.0]),
        ("p.csv", "id,cat,dog\na,0.1,0.9\nb,1,0\n", "probabilities", [[0.1, 0.9], [1, 0]]),
        ("p.csv", "0.1,0.9\n1,0\n", "probabilities", [[0.1, 0.9], [1, 0]]),
        ("p.txt", "0.1 0.9\n1e0  0\n", "probabilities", [[0.1, 0.9], [1, 0]]),
        ("e.tsv", "0.1\t0.9\t3\n", "test_embeddings", [[0.1, 0.9, 3]]),
    ],
)
def test_text_becomes_the_array_it_says(write, file, text, name, expected):
    found = read_array(write(file, text), name)
    assert found.tolist() == expected
    assert found.dtype.kind == np.array(expected).dtype.kind


@pytest.mark.parametrize(
    ("file", "text", "name", "words"),
    [
        ("y.csv", "", "labels", "the file is empty"),
        ("y.csv", "label\n", "labels", "has no rows"),
        ("y.csv", "a,b\ncat,1\n", "labels", "has the columns a, b; expected one, or one that is called labels or"),
        ("y.csv", "cat,x\ndog,y\n", "labels", "2 columns without names"),
        ("y.csv", "label\n1\n2,3\n", "labels", "row 1 has 2 fields, but the first line has 1"),
        ("p.csv", "0.1,0.9\n1,dog\n", "probabilities", "row 1 holds 'dog'; expected numbers alone"),
        ("y.csv", f"label\n{'x' * 120_000}\n", "labels", "120,000 letters, where names are expected"),
    ],
)
def test_what_is_no_such_array_is_named(write, file, text, name, words):
    with pytest.raises(InputError, match=words):
        read_array(write(file, text), name)


def test_what_numpy_writes_as_text_comes_back(tmp_path):
    rng = np.random.default_rng(0)
    for shape, name in (((5, 3), "embeddings"), ((5, 1), "embeddings"), ((5,), "losses")):
        array = rng.normal(size=shape)
        for suffix, delimiter in (("txt", " "), ("csv", ","), ("tsv", "\t")):
            np.savetxt(tmp_path / f"a.{suffix}", array, delimiter=delimiter)
            assert np.array_equal(read_array(tmp_path / f"a.{suffix}", name), array)
