import numpy as np
from tests.training.small import TINY, features

from prune4rel.training import make_plan
from prune4rel.training.loop import Training
from prune4rel.training.warmup import self_supervised_embeddings


def embeddings(epochs=None, **options):
    plan = make_plan(features(), **{**TINY, "lr": 0.1, **options})
    return self_supervised_embeddings(features(), plan, device="cpu", epochs=epochs)


def test_views_of_an_example_come_nearer_than_others():
    """Clusters of examples are found without their labels: neighbours mostly share a class."""
    z = embeddings(epochs=20)
    assert z.shape == (60, 8)
    z = z / np.linalg.norm(z, axis=1, keepdims=True)
    near = (z @ z.T - 2 * np.eye(60)).argmax(1)
    clean = features().train.clean_labels
    assert (clean[near] == clean).mean() > 0.9


def test_it_takes_a_third_of_the_training_unless_told(monkeypatch):
    epochs = []
    real = Training.run_epoch
    monkeypatch.setattr(Training, "run_epoch", lambda self, f: epochs.append(self.epoch) or real(self, f))
    plan = make_plan(features(), **TINY | {"epochs": 12})
    self_supervised_embeddings(features(), plan, device="cpu")
    assert epochs == [0, 1, 2, 3]


def test_the_seed_decides():
    assert (embeddings(2, seed=1) == embeddings(2, seed=1)).all()
    assert (embeddings(2, seed=1) != embeddings(2, seed=2)).any()
