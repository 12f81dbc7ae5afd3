from pathlib import Path

import numpy as np
import pytest

from prune4rel import InputError, Labels, Selection, Signals
from prune4rel.pipeline import Config, run
from prune4rel.progress import Progress
from prune4rel.steps import KINDS, JudgeStep, SelectStep, Steps, WarmUpStep
from prune4rel.steps.data import open_dataset

RNG = np.random.default_rng(0)
TRUTH = RNG.integers(0, 3, 150)
ROWS = (4 * np.eye(3, 8)[TRUTH] + 0.4 * RNG.normal(size=(150, 8))).astype(np.float32)
LABELS = np.where(np.arange(150) < 30, (TRUTH + 1) % 3, TRUTH)


@pytest.fixture
def data(tmp_path):
    np.savez(tmp_path / "mine.npz", features=ROWS, labels=LABELS, clean_labels=TRUTH)
    return str(tmp_path / "mine.npz")


def steps_of(config, folder):
    return Steps(config, open_dataset(config), Path(folder), KINDS)


def features(place, **changes):
    return Config(**{"dataset": "arrays", "data": place, "device": "cpu", "select_only": True} | changes)


def test_features_are_judged_once_for_all_learners(data, tmp_path):
    steps = steps_of(features(data, learners=["sop+", "elr"], methods=["uniform", "prune4rel"]), tmp_path / "run")
    assert len(steps.of(JudgeStep)) == 1
    assert not steps.of(WarmUpStep)
    assert len(steps.of(SelectStep)) == 2
    assert steps.of(JudgeStep)[0].seconds(float) > 0


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({"signals_from": "warmup"}, WarmUpStep),
        ({"methods": ["forgetting"]}, WarmUpStep),
        ({"dataset": "digits", "data": None}, WarmUpStep),
        ({"signals_from": "judging"}, JudgeStep),
    ],
)
def test_what_provides_signals(data, tmp_path, changes, kind):
    steps = steps_of(features(data, **changes), tmp_path / "run")
    assert [type(step) for step in steps if isinstance(step, JudgeStep | WarmUpStep)] == [kind]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"dataset": "digits", "data": None}, "judging goes by features, but the examples are images"),
        ({"methods": ["forgetting"]}, "judging gives no forgetting"),
        ({"signals_from": "judge"}, "did you mean 'judging'"),
    ],
)
def test_what_cannot_be_judged_is_refused(data, tmp_path, changes, words):
    with pytest.raises(InputError, match=words):
        steps_of(features(data, **{"signals_from": "judging"} | changes), tmp_path / "run")


def test_a_run_goes_by_honest_signals(data, tmp_path):
    config = features(data, methods=["prune4rel", "small-loss"], ratios=[0.2])
    run(config, tmp_path / "run", progress=Progress())
    signals = Signals.load(tmp_path / "run/judgings/seed0/signals")
    chances = signals.probabilities[np.arange(150), LABELS]
    np.testing.assert_allclose(signals.losses, -np.log(np.maximum(chances, 1e-12)), rtol=1e-6)
    for path in (tmp_path / "run/selections").glob("*/selection.parquet"):
        assert not (Selection.load(path).indices < 30).any()


def test_the_table_of_all_labels_is_kept(data, tmp_path):
    run(features(data), tmp_path / "run", progress=Progress())
    labels = Labels.load(tmp_path / "run/judgings/seed0/labels.parquet")
    assert np.flatnonzero(labels.is_label_issue).tolist() == list(range(30))
