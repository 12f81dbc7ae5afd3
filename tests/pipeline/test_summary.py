import csv

import numpy as np
import pytest

from prune4rel.pipeline.summary import COLUMNS, lines_of, seconds_of_everything, write_results
from prune4rel.report import Cell


def cell(label="uniform", *, learner="sop", ratio=0.2, seed=0, size=20, **known):
    return Cell(
        method="any", label=label, learner=learner, ratio=ratio, seed=seed, size=size, indices=np.arange(size), **known
    )


def test_means_by_hand():
    cells = [
        cell(
            seed=0, test_accuracy=0.5, relabel_accuracy=0.4, subset_noise=0.3, seconds={"warmup": 1.0, "training": 4.0}
        ),
        cell(
            seed=1, test_accuracy=0.7, relabel_accuracy=0.8, subset_noise=0.1, seconds={"warmup": 3.0, "training": 6.0}
        ),
        cell("other", test_accuracy=0.9, labels_changed=7, seconds={"selection": 0.5}),
        cell(ratio=0.1),
        cell(learner="elr", test_accuracy=float("nan")),
    ]
    first, other, small, elr = lines_of(cells)
    assert (first.label, first.learner, first.ratio, first.seeds) == ("uniform", "sop", 0.2, 2)
    assert first.accuracy == pytest.approx(0.6)
    assert first.spread == pytest.approx(np.std([0.5, 0.7], ddof=1))
    assert first.relabel_accuracy == pytest.approx(0.6)
    assert first.subset_noise == pytest.approx(0.2)
    assert (first.warmup, first.selection, first.training, first.seconds) == (2.0, 0.0, 5.0, 7.0)
    assert (other.accuracy, other.spread, other.labels_changed, other.selection) == (0.9, None, 7, 0.5)
    assert (small.ratio, small.accuracy, small.relabel_accuracy) == (0.1, None, None)
    assert (elr.learner, elr.accuracy) == ("elr", None)


def test_training_on_everything_measured_or_scaled_up():
    cells = [
        cell(size=20, seconds={"training": 2.0}),
        cell(size=50, seconds={"training": 10.0}),
        cell(learner="elr", seconds={"training": 1.0}),
    ]
    assert seconds_of_everything(cells, "sop", 100) == (pytest.approx((10 + 20) / 2), False)
    whole = [cell("everything", ratio=1.0, seed=seed, size=100, seconds={"training": 8.0 + seed}) for seed in range(2)]
    assert seconds_of_everything([*cells, *whole], "sop", 100) == (8.5, True)
    assert seconds_of_everything([*cells, *whole], "elr", 100) == (pytest.approx(5.0), False)
    assert seconds_of_everything([*cells, *whole], "cores", 100) is None


def test_one_line_a_training(tmp_path):
    hostile = 'a "quoted", label\nof two lines'
    cells = [cell(hostile, test_accuracy=0.1 + 0.2, labels_changed=3, seconds={"training": 2.5}), cell("everything")]
    write_results(cells, tmp_path / "results.csv")
    with (tmp_path / "results.csv").open(newline="") as file:
        first, second = csv.DictReader(file)
    assert tuple(first) == COLUMNS
    assert first["method"] == hostile
    assert float(first["test_accuracy"]) == 0.1 + 0.2
    assert (first["size"], first["labels_changed"], first["training_seconds"]) == ("20", "3", "2.5")
    assert (second["test_accuracy"], second["warmup_seconds"]) == ("", "")
