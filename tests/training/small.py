"""Data sets and settings so small that a whole training takes a fraction of a second."""

from dataclasses import replace
from functools import cache

import numpy as np
import torch
from torch import nn

from prune4rel.data import Dataset, Split, load_dataset
from prune4rel.inference import collect
from prune4rel.networks import Network
from prune4rel.training import make_plan
from prune4rel.training.hyperparameters import resolve_subset
from prune4rel.training.trainer import Trainer

TINY = {"network": "mlp", "network_options": {"width": 8, "depth": 1}, "epochs": 2, "batch": 16}
LEARNERS = ("cross-entropy", "sop", "sop+", "elr", "elr+", "dividemix", "cores", "trust")
BY_METHOD = "trust by prune4rel"
"""A learner that looks at everything between epochs and selects by it."""


def learner_of(name, **options):
    """What `make_plan` takes for one of `LEARNERS`, or `BY_METHOD`."""
    own = {"trust_by": "prune4rel", "refresh": 0.2} if name == BY_METHOD else options
    return {"learner": "trust" if name == BY_METHOD else name} | ({"learner_options": own} if own else {})


@cache
def digits(n=80, n_test=40):
    whole = load_dataset("digits")
    return replace(whole, train=whole.train.subset(np.arange(n)), test=whole.test.subset(np.arange(n_test)))


@cache
def features(n=60, d=6):
    """Three clusters, a fifth of whose labels are wrong, with ids."""
    rng = np.random.default_rng(0)
    clean = np.arange(n) % 3
    values = 4 * rng.normal(size=(3, d))[clean] + rng.normal(size=(n, d)) + 100
    given = np.where(rng.random(n) < 0.2, (clean + 1) % 3, clean)
    half = Split(labels=clean[: n // 2], features=values[: n // 2])
    train = Split(labels=given, clean_labels=clean, features=values, ids=np.array([f"row {k}" for k in range(n)]))
    return Dataset(name="clusters", train=train, test=half, class_names=("a", "b", "c"))


def write_images(folder, n=12, size=8, broken=()):
    """Two classes of PNG files, dark and bright, in the layout of the data set "folder"."""
    from PIL import Image

    rng = np.random.default_rng(0)
    for number in range(n):
        label = number % 2
        place = folder / "train" / ("dark", "bright")[label]
        place.mkdir(parents=True, exist_ok=True)
        pixels = rng.integers(0, 100, (size, size, 3)) + 150 * label
        Image.fromarray(pixels.astype(np.uint8)).save(place / f"{number:03}.png")
    files = sorted((folder / "train").rglob("*.png"))
    for number in broken:
        files[number].write_bytes(b"no picture")
    return load_dataset("folder", folder, image_size=size)


class Dropping(Network):
    """A network that forgets half of what it sees, by the function rather than by a layer."""

    def __init__(self, n_classes, *, shape=(3, 8, 8)):
        inside = int(np.prod(shape))
        super().__init__(8, n_classes)
        self.layer = nn.Linear(inside, 8)

    def embed(self, x):
        return nn.functional.dropout(self.layer(x.flatten(1)), 0.5, training=self.training)


def trainer_of(dataset=None, learner="cross-entropy", subset=None, keep=(), device="cpu", remember=False, **options):
    dataset = dataset or digits()
    plan = make_plan(dataset, learner, **{**TINY, **options})
    return Trainer(dataset, resolve_subset(dataset, subset), plan, device=device, keep=keep, remember=remember)


def look_at_all(trainer, view, seed=0):
    """Logits and embeddings of all training examples."""
    parts = ((each.places, (each.logits, each.embeddings)) for each in trainer.predict_and_embed(view, seed=seed))
    return collect(parts, len(trainer.dataset.train))


def nothing(*_):
    """Do nothing after a step."""


def same_state(first, second):
    """Whether two trainings are in the same state, bit for bit."""
    (tensors, facts), (others, other_facts) = first.state(), second.state()
    assert tensors.keys() == others.keys()
    return facts == other_facts and all(
        torch.equal(tensor.nan_to_num(-7), others[name].nan_to_num(-7)) for name, tensor in tensors.items()
    )
