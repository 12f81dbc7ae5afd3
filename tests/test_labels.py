import csv
import dataclasses
import json

import numpy as np
import pyarrow.parquet as pq
import pytest

from prune4rel.errors import InputError
from prune4rel.labels import METADATA_KEY, Labels

FORMATS = [".parquet", ".csv"]
COLUMNS = [
    "index",
    "id",
    "given_label",
    "given_name",
    "predicted_label",
    "is_label_issue",
    "label_score",
    "confidence",
    "corrected_label",
    "corrected_name",
    "verified",
    "removed",
    "decided_label",
    "source",
    "content",
]


def make(**changes):
    given = {
        "given_label": np.array([0, 1, 1, 2]),
        "predicted_label": np.array([0, 0, 2, 2]),
        "label_score": np.array([0.1 + 0.2, 1e-300, 0.25, 1.0]),
        "is_label_issue": np.array([False, True, True, False]),
        "confidence": np.array([1 / 3, 0.7, 0.5, 1.0]),
        "class_names": ("cat", "=dog()", "an owl, maybe"),
    }
    return Labels(**given | changes)


def full(**changes):
    given = {
        "verified": np.array([True, False, True, False]),
        "removed": np.array([False, False, False, True]),
        "decided_label": np.array([1, -1, -1, -1]),
        "ids": np.array(["=1+1", "'quoted'", 'two\nlines, "said"', "-5"]),
        "source": np.array(["person", "judging", "person", "nobody"]),
        "content": np.array(["00ff", "+1", "@x", ""]),
        "noise_rate": 0.25,
        "noise_matrix": np.eye(3),
        "about": {"options": {"folds": 5}, "notes": ["Look here."]},
    }
    return make(**given | changes)


def assert_same(one, other):
    for each in dataclasses.fields(Labels):
        left, right = getattr(one, each.name), getattr(other, each.name)
        assert (left is None) == (right is None), each.name
        if isinstance(left, np.ndarray):
            np.testing.assert_array_equal(left, right, err_msg=each.name)
            assert left.dtype.kind == right.dtype.kind
        else:
            assert left == right


@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize("labels", [make(), full(), full(ids=np.array([-7, 5, 2**62, 0]))])
def test_everything_comes_back(labels, suffix, tmp_path):
    labels.save(tmp_path / f"labels{suffix}")
    assert_same(Labels.load(tmp_path / f"labels{suffix}"), labels)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["labels.json", f"labels{suffix}"])


@pytest.mark.parametrize("suffix", FORMATS)
def test_any_numbers_come_back_bit_for_bit(suffix, tmp_path):
    rng = np.random.default_rng(0)
    n = 2000
    labels = Labels(
        given_label=rng.integers(0, 7, n),
        predicted_label=rng.integers(0, 7, n),
        label_score=rng.random(n) ** rng.integers(1, 90, n),
        is_label_issue=rng.random(n) < 0.3,
        confidence=rng.random(n),
        class_names=tuple("abcdefg"),
    )
    labels.save(tmp_path / f"labels{suffix}")
    assert_same(Labels.load(tmp_path / f"labels{suffix}"), labels)


def test_both_formats_share_one_manifest_and_columns_have_their_names(tmp_path):
    labels = full()
    labels.save(tmp_path / "labels.parquet")
    labels.save(tmp_path / "labels.csv")
    table = pq.read_table(tmp_path / "labels.parquet")
    assert table.column_names == COLUMNS
    assert json.loads(table.schema.metadata[METADATA_KEY]) == json.loads((tmp_path / "labels.json").read_text())
    with (tmp_path / "labels.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == COLUMNS
    assert [row["given_name"] for row in rows] == ["cat", "'=dog()", "'=dog()", "an owl, maybe"]
    assert not any(
        row[name].startswith(("=", "+", "-", "@")) for row in rows for name in ("id", "content", "given_name")
    )


def test_corrected_is_decided_or_settled_or_predicted_or_given():
    slow = []
    labels = full()
    for row in range(len(labels)):
        if labels.decided_label[row] >= 0:
            slow.append(labels.decided_label[row])
        elif labels.is_label_issue[row] and not labels.verified[row]:
            slow.append(labels.predicted_label[row])
        else:
            slow.append(labels.given_label[row])
    assert labels.corrected_label.tolist() == slow == [1, 0, 1, 2]
    assert make().corrected_label.tolist() == [0, 0, 2, 2]


def test_the_most_suspicious_come_first_and_ties_in_order():
    assert make(label_score=[0.5, 0.5, 0.1, 0.5]).worst_first.tolist() == [2, 0, 1, 3]


def test_arrays_cannot_be_written_and_yours_still_can():
    mine = np.array([0, 1, 1, 2])
    labels = make(given_label=mine)
    with pytest.raises(ValueError, match="read-only"):
        labels.given_label[0] = 1
    mine[0] = 0


def test_pandas_gets_the_columns():
    frame = full().to_pandas()
    assert list(frame.columns) == COLUMNS
    assert frame["corrected_name"].tolist() == ["=dog()", "cat", "=dog()", "an owl, maybe"]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"given_label": [0, 1, 1, 3]}, "given_label: row 3 is 3; expected 0 to 2"),
        ({"given_label": []}, "at least one class and one label"),
        ({"class_names": ()}, "at least one class and one label"),
        ({"predicted_label": [0, 1]}, "predicted_label: has 2 rows, but given_label has 4"),
        ({"label_score": [0, 0.5, np.nan, 1]}, "label_score: row 2 is nan; expected 0 to 1"),
        ({"confidence": [0, 0.5, 1.5, 1]}, "confidence: row 2 is 1.5; expected 0 to 1"),
        ({"is_label_issue": [0, 0, 2, 1]}, "is_label_issue: row 2 is 2; expected 0 to 1"),
        ({"decided_label": [0, 0, -2, 1]}, "decided_label: row 2 is -2; expected -1 to 2"),
        ({"verified": [0.5, 0, 0, 0]}, r"verified: has shape \(4,\) and type float64; expected \(n,\) integers"),
        ({"ids": [[1], [2], [3], [4]]}, r"ids: has shape \(4, 1\)"),
        ({"source": [1, 2, 3, 4]}, r"source: .*expected \(n,\) strings"),
        ({"noise_rate": 1.5}, "noise_rate: is 1.5"),
        ({"noise_matrix": np.eye(2)}, r"noise_matrix: has shape \(2, 2\); expected 3 x 3"),
    ],
)
def test_what_cannot_be_is_refused(changes, words):
    with pytest.raises(InputError, match=words):
        make(**changes)


def test_nothing_is_replaced_unless_told(tmp_path):
    make().save(tmp_path / "labels.parquet")
    with pytest.raises(InputError, match="exists already"):
        make().save(tmp_path / "labels.parquet")
    with pytest.raises(InputError, match=r"labels.json: exists already"):
        full().save(tmp_path / "labels.csv")
    assert not (tmp_path / "labels.csv").exists()
    full().save(tmp_path / "labels.parquet", force=True)
    assert_same(Labels.load(tmp_path / "labels.parquet"), full())


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("labels.txt", b"", "saved as .parquet or .csv"),
        ("labels.parquet", b"nonsense", "not a readable Parquet file"),
        ("labels.csv", b"index\n1\n", "its manifest labels.json is not beside it"),
    ],
)
def test_a_file_that_is_none_is_refused(name, content, words, tmp_path):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=words):
        Labels.load(tmp_path / name)


@pytest.mark.parametrize("manifest", ["", "[]", "{}", '{"format": 1}', '{"format": 99}', '{"format": null}'])
def test_a_damaged_manifest_is_refused(manifest, tmp_path):
    make().save(tmp_path / "labels.csv")
    (tmp_path / "labels.json").write_text(manifest)
    with pytest.raises(InputError, match=r"damaged|newer"):
        Labels.load(tmp_path / "labels.csv")


def test_other_tables_and_missing_files_are_refused(tmp_path):
    make().save(tmp_path / "labels.parquet")
    short = pq.read_table(tmp_path / "labels.parquet").drop_columns(["confidence"])
    pq.write_table(short, tmp_path / "short.parquet")
    pq.write_table(short.replace_schema_metadata(None), tmp_path / "other.parquet")
    for name, words in (
        ("short", "'confidence' was written there and is gone"),
        ("other", "no labels"),
        ("absent", "no such file"),
    ):
        with pytest.raises(InputError, match=words):
            Labels.load(tmp_path / f"{name}.parquet")
    with pytest.raises(InputError, match="saved as"):
        make().save(tmp_path / "labels.npy")
