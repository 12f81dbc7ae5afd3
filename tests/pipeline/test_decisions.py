"""What people settled, in a whole run: certain where it is settled, gone where it is removed."""

import numpy as np
import pyarrow.parquet as pq
import pytest
from tests.cli.here import call

import prune4rel as p4r
from prune4rel.data import load_dataset
from prune4rel.decisions import Decision, write_csv
from prune4rel.pipeline import Config, run

TINY = {"network": "mlp", "network_options": {"width": 8}, "epochs": 1, "warmup_epochs": 1, "methods": "uniform"}
SETTLED, REMOVED = np.arange(0, 40, 2), np.arange(1, 40, 2)


@pytest.fixture(scope="module")
def decided(tmp_path_factory):
    data = load_dataset("digits", noise=0.2)
    names = data.class_names
    right = [Decision(int(row), "label", names[data.train.clean_labels[row]]) for row in SETTLED]
    path = tmp_path_factory.mktemp("decided") / "decisions.csv"
    write_csv([*right, *(Decision(int(row), "remove") for row in REMOVED)], path)
    return path, data.train


@pytest.mark.parametrize("everything", [False, True])
def test_a_run_goes_by_them(decided, tmp_path, everything):
    path, train = decided
    config = Config(**TINY, options={"noise": 0.2}, decisions=str(path), ratios=0.9, everything=everything)
    done = run(config, tmp_path / "run")
    signals = p4r.Signals.load(next((done.folder / "warmups").glob("*/signals")))
    np.testing.assert_array_equal(np.flatnonzero(signals.verified), SETTLED)
    np.testing.assert_array_equal(np.flatnonzero(~signals.known), REMOVED)
    np.testing.assert_array_equal(signals.labels[SETTLED], train.clean_labels[SETTLED])
    assert (signals.probabilities[SETTLED, train.clean_labels[SETTLED]] == 1).all()
    picks = p4r.Selection.load(next((done.folder / "selections").glob("*/selection.parquet"))).indices
    assert not np.isin(picks, REMOVED).any()
    for training in (done.folder / "trainings").iterdir():
        table = pq.read_table(training / "corrected_labels.parquet").to_pydict()
        np.testing.assert_array_equal(np.array(table["corrected_label"])[SETTLED], train.clean_labels[SETTLED])
        assert (np.array(table["confidence"])[SETTLED] == 1).all()
        size = p4r.training.Result.load(training).size
        assert size == (len(train) - len(REMOVED) if "everything" in training.name else len(picks))
    again = Config(**TINY, options={"noise": 0.2}, ratios=0.9, everything=everything)
    other = run(again, tmp_path / "other")
    keys = [next((folder / "warmups").glob("*/step.json")).read_text() for folder in (done.folder, other.folder)]
    assert keys[0] != keys[1]


def test_train_says_what_they_came_to(decided, tmp_path, monkeypatch, capsys):
    path, _ = decided
    flags = [
        "--dataset",
        "digits",
        "--option",
        "noise=0.2",
        "--network",
        "mlp",
        "--epochs",
        "1",
        "-o",
        tmp_path / "out",
    ]
    code, out, err = call(monkeypatch, capsys, "train", "--decisions", path, *flags)
    assert (code, "20 labels settled, 20 examples removed" in err, "1,328 examples" in out) == (0, True, True)
    code, _, err = call(monkeypatch, capsys, "train", "--decisions", tmp_path / "none.csv", *flags)
    assert (code, "none.csv: no such file" in err) == (2, True)
