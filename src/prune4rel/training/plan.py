"""What is to be trained how: names and numbers resolved, before anything heavy begins."""

from collections.abc import Mapping
from dataclasses import dataclass
from inspect import signature
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from prune4rel.data import Dataset
from prune4rel.errors import InputError, refuse_unknown
from prune4rel.learners import Learner, Setting, get, make_learner
from prune4rel.learners.presets import preset_options
from prune4rel.learners.ranks import Ranks
from prune4rel.loading.schedule import check_subset, seed_of
from prune4rel.networks import Network, list_networks, make
from prune4rel.networks.network import Shape
from prune4rel.networks.registry import ZOO
from prune4rel.provenance import fingerprint
from prune4rel.registry import look_up
from prune4rel.training.presets import preset_of
from prune4rel.training.recipe import Recipe
from prune4rel.training.views import make_views

NO_LOOK = ("dataset", "dtype")
"""What `make_views` takes besides how examples look."""


@dataclass(frozen=True)
class Plan:
    """Everything that decides the result of a training, apart from the data.

    Parameters
    ----------
    learner, learner_options
        Which learner, and all of its options.
    network, network_options
        Which network, and what it is made with.
    look
        Options of `make_views`.
    recipe
        How to train.
    warmup_epochs
        How long the warm-up is that stands for this training.
    seed
        Of weights, order and augmentation.
    notes
        What was changed on the way, for people.
    """

    learner: str
    learner_options: Mapping[str, Any]
    network: str
    network_options: Mapping[str, Any]
    look: Mapping[str, Any]
    recipe: Recipe
    warmup_epochs: int
    seed: int
    notes: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return it as a JSON value."""
        return {
            "learner": self.learner,
            "learner_options": dict(self.learner_options),
            "network": self.network,
            "network_options": dict(self.network_options),
            "look": dict(self.look),
            "training": self.recipe.as_dict(),
            "warmup_epochs": self.warmup_epochs,
            "seed": self.seed,
        }


def make_plan(
    dataset: Dataset,
    learner: str = "sop+",
    *,
    learner_options: Mapping[str, Any] | None = None,
    network: str | None = None,
    network_options: Mapping[str, Any] | None = None,
    look: Mapping[str, Any] | None = None,
    warmup_epochs: int | None = None,
    seed: int = 0,
    training: Mapping[str, Any] | None = None,
    **settings: Any,
) -> Plan:
    """Take the preset of the data set and learner, and put what was given in its place.

    Parameters
    ----------
    learner, learner_options, network, network_options, look, warmup_epochs, seed
        See `Plan`; None means the preset's.
    training, **settings
        Fields of `Recipe`, in a mapping where their names are not known beforehand, or one by one.

    Examples
    --------
    >>> from prune4rel.data import load_dataset
    >>> plan = make_plan(load_dataset("digits"), "sop+", epochs=5)
    >>> plan.network, plan.recipe.epochs
    ('small-cnn', 5)
    """
    entry = get(learner)
    preset = preset_of(dataset.name, dataset.image_size)
    refuse_unknown(f"learner {learner!r}", learner_options or (), entry.options)
    options = {**entry.options, **preset_options(learner, dataset.name), **(learner_options or {})}
    refuse_unknown("look", look or (), [name for name in signature(make_views).parameters if name not in NO_LOOK])
    if network is not None and not network.startswith(ZOO):
        look_up("network", network, dict.fromkeys(list_networks()), known=[*list_networks(), f"{ZOO}NAME"])
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise InputError(f"seed must be a whole number of at least 0, not {seed!r}", "seed")
    own_network = network is not None and network != preset.network
    warm = preset.warmup_epochs if warmup_epochs is None else warmup_epochs
    if isinstance(warm, bool) or not isinstance(warm, int) or warm < 1:
        raise InputError(f"warmup_epochs must be a whole number of at least 1, not {warm!r}", "warmup_epochs")
    return Plan(
        learner=learner,
        learner_options=options,
        network=network or preset.network,
        network_options={**({} if own_network else preset.options), **(network_options or {})},
        look={**preset.look, **(look or {})},
        recipe=preset.recipe.changed(**{**(training or {}), **settings}),
        warmup_epochs=warm,
        seed=seed,
    )


def shape_of(dataset: Dataset) -> Shape:
    """Return the shape of one input: (3, H, W), or (d,) for features."""
    train = dataset.train
    if train.features is not None:
        return (train.features.shape[1],)
    if train.images is not None:
        return (3, *train.images.shape[1:3])
    if dataset.image_size is None:
        raise AssertionError("files are images")
    return (3, dataset.image_size, dataset.image_size)


def build(
    plan: Plan,
    dataset: Dataset,
    subset: NDArray[np.int64],
    device: torch.device,
    ranks: Ranks,
    kind: type[Learner] | None = None,
) -> Learner:
    """Make the learner with fresh weights, the same ones on every device; `kind` stands for an unlisted one."""

    def make_network() -> Network:
        return make(plan.network, dataset.n_classes, shape=shape_of(dataset), **plan.network_options)

    setting = Setting(
        make_network=make_network,
        labels=dataset.train.labels[subset],
        n_classes=dataset.n_classes,
        epochs=plan.recipe.epochs,
        seed=seed_of(plan.seed, 3),
        ranks=ranks,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed_of(plan.seed, 4))
        try:
            learner = make_learner(plan.learner, setting, **plan.learner_options) if kind is None else kind(setting)
        except TypeError as error:
            given = {**plan.learner_options, **plan.network_options}
            both = f"learner {plan.learner!r} and network {plan.network!r}"
            raise InputError(f"{both} cannot be made with the options {given} ({error})") from error
    ranks.prepare(learner)
    return learner.to(device)


def resolve_subset(dataset: Dataset, subset: ArrayLike | None) -> NDArray[np.int64]:
    """Return the examples to train on: all of them unless told."""
    n = len(dataset.train)
    return np.arange(n, dtype=np.int64) if subset is None else check_subset(subset, n).copy()  # may be read-only


def identity_of(plan: Plan, dataset: Dataset, subset: NDArray[np.int64]) -> dict[str, Any]:
    """Return what has to be the same for one training to be the continuation of another."""
    return {
        **plan.as_dict(),
        "dataset": dataset.name,
        "labels": fingerprint(dataset.train.labels),
        "subset": fingerprint(subset),
    }
