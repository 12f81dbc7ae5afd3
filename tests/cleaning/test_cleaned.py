import csv
import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.sparse import csr_matrix

import prune4rel as p4r
from prune4rel.cleaning import clean
from prune4rel.decisions import Decision, DecisionLog
from prune4rel.judging.similar import find_similar, unit_rows

NAMES = ("cat", "dog", "owl")


def made(n=240, seed=0, wrong=24):
    """Three well separated classes; the first `wrong` labels are wrong."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 3, n)
    rows = (4 * np.eye(3, 8)[truth] + 0.4 * rng.normal(size=(n, 8))).astype(np.float32)
    labels = truth.copy()
    labels[:wrong] = (truth[:wrong] + 1) % 3
    return rows, labels, truth


ROWS, LABELS, TRUTH = made()
WORDS = [NAMES[label] for label in LABELS]


def test_wrong_labels_are_found_and_mended():
    found = p4r.clean(embeddings=ROWS, labels=LABELS)
    assert np.flatnonzero(found.is_label_issue).tolist() == list(range(24))
    np.testing.assert_array_equal(found.corrected_label, TRUTH)
    np.testing.assert_array_equal(found.predicted_label, TRUTH)
    assert found.label_score[:24].max() < found.label_score[24:].min()
    assert abs(found.noise_rate - 0.1) < 0.03
    assert found.noise_matrix.shape == (3, 3)
    assert found.signals.probabilities.shape == (240, 3)
    assert repr(found).startswith("Cleaned(240 labels, 24 issues")
    assert sum(times for _, _, times in found.worst_pairs) == 24


FORMS = {
    "list of words": WORDS,
    "strings": np.array(WORDS),
    "objects": np.array(WORDS, dtype=object),
    "pandas": pd.Series(WORDS),
    "pandas categories": pd.Series(WORDS).astype("category"),
    "arrow": pa.array(WORDS),
    "arrow chunks": pa.chunked_array([WORDS[:100], WORDS[100:]]),
    "arrow dictionary": pa.array(WORDS).dictionary_encode(),
    "one column": np.array(WORDS)[:, None],
}


@pytest.mark.parametrize("form", FORMS)
def test_labels_come_as_users_have_them(form):
    found = p4r.clean(embeddings=ROWS, labels=FORMS[form])
    assert found.labels.class_names == NAMES
    assert found.is_label_issue[:24].all()


@pytest.mark.parametrize("kind", [np.int8, np.uint16, np.float64, bool])
def test_whole_numbers_of_any_type_are_labels(kind):
    two = LABELS % 2 if kind is bool else LABELS
    assert p4r.clean(embeddings=ROWS, labels=two.astype(kind)).labels.given_label.tolist() == two.tolist()


def test_a_table_of_columns_is_as_good():
    frame = pd.DataFrame(ROWS)
    frame.columns = [f"x{k}" for k in range(8)]
    frame["species"], frame["id"] = WORDS, [f"#{k}" for k in range(240)]
    expected = p4r.clean(embeddings=ROWS, labels=WORDS)
    for data, embeddings in (
        (frame, None),
        (frame, [f"x{k}" for k in range(8)]),
        (pa.Table.from_pandas(frame), None),
        (pd.DataFrame({"species": WORDS, "vector": list(ROWS), "id": frame["id"]}), "vector"),
    ):
        found = p4r.clean(data, labels="species", embeddings=embeddings)
        np.testing.assert_array_equal(found.label_score, expected.label_score)
        assert found.labels.ids[3] == "#3"


def test_files_signals_and_data_sets_are_opened(tmp_path):
    expected = p4r.clean(embeddings=ROWS, labels=LABELS)
    np.savez(tmp_path / "mine.npz", features=ROWS, labels=LABELS)
    dataset = p4r.load_dataset("arrays", tmp_path / "mine.npz")
    signals = p4r.Signals(labels=LABELS, embeddings=ROWS)
    for data in (tmp_path / "mine.npz", dataset, signals):
        np.testing.assert_array_equal(p4r.clean(data).label_score, expected.label_score)


def test_sparse_rows_are_taken_as_they_come():
    sparse = csr_matrix(np.where(np.abs(ROWS) > 1, ROWS, 0))
    found = p4r.clean(embeddings=sparse, labels=LABELS)
    assert found.is_label_issue[:24].all()
    assert found.signals.embeddings.shape == (240, 8)


def test_out_of_fold_probabilities_alone_are_enough():
    probabilities = 0.05 + 0.85 * np.eye(3)[TRUTH]
    found = p4r.clean(probabilities=probabilities, labels=LABELS)
    assert found.is_label_issue[:24].all()
    assert found.similar is None
    assert found.duplicates is None


def test_probabilities_that_were_fitted_on_the_labels_are_told():
    fitted = 0.01 + 0.97 * np.eye(3)[LABELS]
    with pytest.warns(UserWarning, match="fitted on them"):
        found = p4r.clean(embeddings=ROWS, probabilities=fitted, labels=LABELS)
    assert "fitted on them" in found.notes[0]


def test_rows_with_nan_are_named_or_left_out():
    rows = ROWS.copy()
    rows[[30, 100]] = np.nan
    with pytest.raises(p4r.InputError, match="row 30 and 1 more holds NaN"):
        p4r.clean(embeddings=rows, labels=LABELS)
    found = p4r.clean(embeddings=rows, labels=LABELS, skip_broken=True)
    assert "2 rows hold NaN or infinity and were left out: 30, 100." in found.notes
    assert found.labels.source[30] == "nobody"
    assert not found.is_label_issue[30]
    assert found.is_label_issue[:24].all()
    assert found.signals.readable_rows.tolist() == [row for row in range(240) if row not in (30, 100)]
    assert not np.isin(found.similar.indices[31:90], (30, 100)).any()
    rest = np.setdiff1d(np.arange(240), (30, 100))
    alone = find_similar(unit_rows(rows[rest]))
    np.testing.assert_array_equal(found.similar.indices[rest], rest[alone.indices])


def test_copies_of_examples_and_of_the_test_split_are_told():
    rows, labels = ROWS.copy(), LABELS.copy()
    rows[50], rows[60] = rows[40], rows[70] + 1e-5
    labels[40], labels[50] = 0, 1
    found = p4r.clean(embeddings=rows, labels=labels, test_embeddings=rows[[40, 80]], test_labels=labels[[40, 80]])
    copies = found.duplicates
    groups = [
        copies.index[(copies.group == group) & (copies.split == "train")].tolist() for group in range(len(copies))
    ]
    assert groups == [[40, 50], [60, 70], [80]]
    assert copies.in_test.tolist() == [40, 50, 80]
    assert copies.contradicting[copies.group == 0].all()


def test_votes_become_one_label(tmp_path):
    rng = np.random.default_rng(0)
    votes = np.stack([np.where(rng.random(240) < right, TRUTH, (TRUTH + 1) % 3) for right in (0.95, 0.9, 0.3)], axis=1)
    votes[rng.random(votes.shape) < 0.1] = -1
    votes[:, 0] = np.where((votes == -1).all(axis=1), TRUTH, votes[:, 0])
    found = p4r.clean(embeddings=ROWS, labels=votes)
    assert found.consensus.quality.argmin() == 2
    assert (found.corrected_label == TRUTH).mean() > 0.98
    example, annotator = np.nonzero(votes >= 0)
    with (tmp_path / "votes.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["example", "annotator", "label"])
        rows.writerows(zip(example, [f"w{a}" for a in annotator], votes[example, annotator], strict=True))
    table = p4r.clean(embeddings=ROWS, votes=tmp_path / "votes.csv")
    assert table.annotators == ("w0", "w1", "w2")
    np.testing.assert_array_equal(table.labels.given_label, found.labels.given_label)


def test_what_a_person_decided_is_certain(tmp_path):
    log = DecisionLog(tmp_path / "decisions.jsonl")
    log.append(
        [
            Decision(index=3, what="label", label="cat", given=WORDS[3]),
            Decision(index=40, what="label", label=WORDS[40], given=WORDS[40]),
            Decision(index=41, what="remove", given=WORDS[41]),
        ]
    )
    found = p4r.clean(embeddings=ROWS, labels=WORDS, decisions=tmp_path / "decisions.jsonl")
    assert found.corrected_label[3] == 0
    assert found.labels.verified.tolist() == [row in (3, 40) for row in range(240)]
    assert found.labels.removed[41]
    assert found.labels.source[3] == "person"
    assert found.label_score[40] == found.labels.confidence[40] == 1
    assert found.signals.labels[3] == 0
    assert 41 not in found.signals.readable_rows
    assert found.signals.verified[3]


def test_settled_labels_are_never_issues():
    found = p4r.clean(embeddings=ROWS, labels=LABELS, verified=np.arange(240) < 5, removed=np.arange(240) == 9)
    assert not found.is_label_issue[:5].any()
    assert found.is_label_issue[10:24].all()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"labels": None}, "no labels: pass labels="),
        ({"embeddings": None}, "nothing to judge labels by"),
        ({"labels": LABELS[:-1]}, "embeddings: has 240 rows, but labels has 239"),
        ({"labels": [0.5] * 240}, "row 0 is 0.5; labels are whole numbers"),
        ({"labels": [None, *WORDS[1:]]}, "row 0 is missing"),
        ({"labels": [float("nan"), *LABELS[1:]]}, "row 0 is missing"),
        ({"labels": [-1, *LABELS[1:]]}, "row 0 is -1"),
        ({"labels": []}, "labels: is empty"),
        ({"labels": [{}] * 240}, "labels: holds dict"),
        ({"embeddings": ROWS[:, 0]}, r"embeddings: has shape \(240,\)"),
        ({"embeddings": np.full((240, 2), "a")}, "embeddings: has shape"),
        ({"embeddings": np.full((240, 2), np.nan), "skip_broken": True}, "every row holds NaN"),
        ({"probabilities": np.full((240, 3), 0.5)}, "row 0 sums to 1.5"),
        ({"probabilities": np.full((240, 2), 0.5)}, "2 columns"),
        ({"test_embeddings": ROWS[:, :3]}, "another width"),
        ({"verified": [True]}, r"verified: has shape \(1,\)"),
        ({"removed": [0.5] * 240}, "removed: has shape"),
        ({"labels": np.full((240, 3), -1)}, "nobody voted on row 0"),
    ],
)
def test_bad_input_is_named(changes, words):
    with pytest.raises(p4r.InputError, match=words):
        clean(**{"embeddings": ROWS, "labels": LABELS} | changes)


@pytest.mark.parametrize(
    ("rows", "labels"),
    [
        (ROWS[:3], [0, 1, 2]),
        (ROWS[:1], [0]),
        (ROWS[:2], ["a", "b"]),
        (ROWS, np.zeros(240, dtype=int)),
        (np.ones((20, 4)), np.arange(20) % 2),
        (ROWS[:12], [0] * 11 + [1]),
        (ROWS[:40], np.arange(40)),
        (ROWS[:, :1], LABELS),
    ],
    ids=["three", "one", "two", "one class", "equal rows", "one of a class", "all different", "one dimension"],
)
def test_small_and_strange_sets_are_judged(rows, labels):
    found = p4r.clean(embeddings=rows, labels=labels)
    assert len(found) == len(rows)
    assert np.isfinite(found.label_score).all()
    found.signals.arrays()


def test_the_folder_holds_everything_and_keeps_decisions(tmp_path):
    found = p4r.clean(embeddings=ROWS, labels=WORDS)
    found.save(tmp_path / "cleaned")
    names = {path.name for path in (tmp_path / "cleaned").iterdir()}
    assert {"labels.parquet", "labels.csv", "noise.json", "signals", "neighbours.npz", "source.json"} <= names
    assert {"duplicates.parquet", "report.html"} <= names
    labels = p4r.Labels.load(tmp_path / "cleaned" / "labels.parquet")
    np.testing.assert_array_equal(labels.label_score, found.label_score)
    chosen = p4r.select(signals=tmp_path / "cleaned" / "signals", size=30, balanced=True)
    assert not np.isin(chosen.indices, np.arange(24)).any()
    noise = json.loads((tmp_path / "cleaned" / "noise.json").read_text())
    assert noise["issues"] == 24
    assert sum(pair["labels"] for pair in noise["worst_pairs"]) == 24
    near = np.load(tmp_path / "cleaned" / "neighbours.npz")
    assert near["indices"].shape == near["similarities"].shape == (240, 20)
    assert pq.read_table(tmp_path / "cleaned" / "duplicates.parquet").num_rows == 0
    with pytest.raises(p4r.InputError, match="exists already"):
        found.save(tmp_path / "cleaned")
    (tmp_path / "cleaned" / "decisions.jsonl").write_text("precious")
    (tmp_path / "cleaned" / "notes").mkdir()
    found.save(tmp_path / "cleaned", force=True)
    assert (tmp_path / "cleaned" / "decisions.jsonl").read_text() == "precious"
    assert (tmp_path / "cleaned" / "notes").is_dir()
    assert not [path for path in tmp_path.iterdir() if path.name != "cleaned"]


def test_a_folder_of_something_else_is_never_replaced(tmp_path):
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "one.jpg").write_text("dear")
    with pytest.raises(p4r.InputError, match="not a folder that clean has written"):
        p4r.clean(embeddings=ROWS, labels=LABELS).save(tmp_path / "photos", force=True)
    assert (tmp_path / "photos" / "one.jpg").read_text() == "dear"


def test_pairs_of_classes_are_of_labels_that_change():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 400)
    E = rng.normal(size=(3, 8))[truth] + 0.8 * rng.normal(size=(400, 8))
    found = p4r.clean(embeddings=E, labels=np.where(rng.random(400) < 0.3, (truth + 1) % 3, truth))
    assert (found.is_label_issue & (found.predicted_label == found.labels.given_label)).any(), "doubtful, none likelier"
    assert all(given != better for given, better, _ in found.worst_pairs)
    assert sum(times for *_, times in found.worst_pairs) == (found.corrected_label != found.labels.given_label).sum()
