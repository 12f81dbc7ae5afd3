"""How to train, resolved before anything heavy begins: hyperparameters, presets, and all of it as a plan."""

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from inspect import signature
from typing import Any, Literal, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from prune4rel.data import Dataset
from prune4rel.errors import InputError, nearest, refuse_unknown
from prune4rel.inference.answers import make_views
from prune4rel.judging import Judgement, judge
from prune4rel.learners import Learner, Setting, get, make_learner
from prune4rel.learners.presets import preset_options
from prune4rel.loading.schedule import Ranks, check_subset, seed_of
from prune4rel.networks import Network, make
from prune4rel.networks.network import NETWORKS, ZOO, Shape
from prune4rel.provenance import fingerprint

Scheme = Literal["cosine", "multistep", "constant"]
Precision = Literal["auto", "float32", "bfloat16"]
SCHEMES = ("cosine", "multistep", "constant")
PRECISIONS = ("auto", "float32", "bfloat16")


LOOKS = 3
"""Examples that are only looked at cost a third: a step goes forward once, and back at twice the price."""


@dataclass(frozen=True)
class Hyperparameters:
    """Settings of the optimiser and the loop: how to train.

    Parameters
    ----------
    epochs, batch
        How often to go over the examples, and how many at a time.
    steps
        End after so many steps, in the middle of an epoch if need be, however many epochs that are; `epochs` is then
        only what the schedule of the rate is written in, which ends with the last step. See `Training.spent` for what
        counts as a step. None for as many as `epochs` have.
    lr, scheme, lr_min, milestones
        Learning rate at the start, and how it falls: ``"cosine"`` to `lr_min`, ``"multistep"`` divided by ten at each
        of `milestones` (epochs), or ``"constant"``.
    horizon
        Epochs the cosine spans; `epochs` unless told. A warm-up takes that of the training it stands for.
    rise
        Epochs during which the rate rises linearly to `lr` first.
    momentum, nesterov, weight_decay
        Of stochastic gradient descent.
    clip
        Largest norm of a gradient; none unless told.
    ema
        Decay a step of a moving average of the weights, which is then the model; none unless told.
    precision
        ``"bfloat16"`` runs networks in mixed precision; ``"auto"`` does so on a GPU.
    deterministic
        Ask a GPU for algorithms that give the same bits every time; slower.

    Examples
    --------
    >>> hyperparameters = Hyperparameters(epochs=4, lr=1.0, lr_min=0.0)
    >>> [round(hyperparameters.rate(epoch), 3) for epoch in range(4)]
    [1.0, 0.854, 0.5, 0.146]
    """

    epochs: int = 300
    batch: int = 128
    steps: int | None = None
    lr: float = 0.02
    scheme: Scheme = "cosine"
    lr_min: float = 1e-4
    milestones: tuple[int, ...] = ()
    horizon: int | None = None
    rise: int = 0
    momentum: float = 0.9
    nesterov: bool = True
    weight_decay: float = 5e-4
    clip: float | None = None
    ema: float | None = None
    precision: Precision = "auto"
    deterministic: bool = False

    def __post_init__(self) -> None:
        given: Any = [self.milestones] if _is_whole(self.milestones) else self.milestones
        if not isinstance(given, tuple | list) or not all(_is_whole(epoch) and epoch >= 0 for epoch in given):
            raise InputError(f"milestones must be numbers of epochs, like [50, 75], not {given!r}", "milestones")
        object.__setattr__(self, "milestones", tuple(given))
        self._check(
            "a whole number of at least 1", lambda x: _is_whole(x) and x >= 1, "epochs", "batch", "horizon", "steps"
        )
        self._check("a whole number of at least 0", lambda x: _is_whole(x) and x >= 0, "rise")
        self._check("0 or more", lambda x: _is_number(x) and x >= 0, "lr", "lr_min", "weight_decay")
        self._check("at least 0 and below 1", lambda x: _is_number(x) and 0 <= x < 1, "momentum", "ema")
        self._check("above 0", lambda x: _is_number(x) and x > 0, "clip")
        self._check("true or false", lambda x: isinstance(x, bool), "nesterov", "deterministic")
        for name, known in (("scheme", SCHEMES), ("precision", PRECISIONS)):
            value = getattr(self, name)
            if value not in known:
                raise InputError(f"unknown {name} {value!r}; {nearest(value, known)}", name)

    def _check(self, wanted: str, accepts: Callable[[Any], bool], *names: str) -> None:
        for name in names:
            value = getattr(self, name)
            optional = name in ("horizon", "ema", "clip", "steps")
            if not accepts(value) and not (value is None and optional):
                raise InputError(f"{name} must be {wanted}, not {value!r}", name)

    def mixed(self, device: str) -> bool:
        """Whether networks run in mixed precision on a device of this type, ``"cpu"`` or ``"cuda"``."""
        return self.precision == "bfloat16" or (self.precision == "auto" and device == "cuda")

    def rate(self, epoch: float) -> float:
        """Return the learning rate of an epoch, from 0; of a training cut by `steps`, by where it is between two."""
        if epoch < self.rise:
            return self.lr * min(1.0, (epoch + 1) / self.rise)
        if self.scheme == "cosine":
            done = min(1.0, (epoch - self.rise) / max(1, (self.horizon or self.epochs) - self.rise))
            return self.lr_min + (self.lr - self.lr_min) * (1 + math.cos(math.pi * done)) / 2
        if self.scheme == "multistep":
            return float(self.lr / 10 ** sum(epoch >= milestone for milestone in self.milestones))
        return self.lr

    def epochs_on(self, m: int, learner: type[Learner]) -> int:
        """Return how many epochs a training on `m` examples has, or about as many: `steps` may end within the last."""
        return self.epochs if self.steps is None else max(1, -(-self.steps // steps_an_epoch(m, self.batch, learner)))

    def changed(self, /, **changes: Any) -> Self:
        """Return the same hyperparameters with other values; None means as it was."""
        refuse_unknown("training", changes, asdict(self))
        return replace(self, **{name: value for name, value in changes.items() if value is not None})

    def as_dict(self) -> dict[str, Any]:
        """Return all settings as a JSON value; `steps` only where they are given."""
        plain = {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}
        return {name: value for name, value in plain.items() if name != "steps" or value is not None}


def steps_an_epoch(m: int, batch: int, learner: type[Learner]) -> int:
    """Return how many steps an epoch on `m` examples has in which each of a learner's networks sees all of them.

    >>> from prune4rel.learners import get
    >>> steps_an_epoch(50_000, 128, get("sop+").kind), steps_an_epoch(50_000, 128, get("elr+").kind)
    (390, 780)
    """
    return learner.n_networks * (m // min(batch, m))


def looks_as_steps(examples: int, batch: int) -> int:
    """Return as how many steps of a training examples count that a model only looks at, rounded up.

    >>> looks_as_steps(50_000, 128)
    131
    """
    return -(-examples // (LOOKS * batch))


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


@dataclass(frozen=True)
class Preset:
    """Which network, how long the warm-up, and how to train.

    `look` holds options of `training.views.make_views`; `options` options of the network.
    """

    network: str
    warmup_epochs: int
    hyperparameters: Hyperparameters
    look: dict[str, Any] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)


_CIFAR = Hyperparameters(epochs=300, batch=128, lr=0.02)

PRESETS = {
    "cifar10n": Preset("preact-resnet18", 10, _CIFAR),
    "cifar100n": Preset("preact-resnet18", 30, _CIFAR),
    "webvision": Preset(
        "timm/inception_resnet_v2",
        10,
        Hyperparameters(epochs=100, batch=32, lr=0.02, scheme="multistep", milestones=(50,)),
    ),
    "clothing1m": Preset(
        "timm/resnet50",
        1,
        Hyperparameters(epochs=10, batch=32, lr=0.002, scheme="multistep", milestones=(5,), weight_decay=1e-3),
        options={"pretrained": True},
    ),
    "imagenet-n": Preset("timm/resnet50", 10, Hyperparameters(epochs=50, batch=64, lr=0.02, weight_decay=1e-3)),
    "digits": Preset(
        "small-cnn",
        10,
        Hyperparameters(epochs=45, batch=64, lr=0.07),
        look={"mirror": 0.0, "padding": 1, "policy": "none", "cutout": 3},
        options={"width": 16},
    ),
}

IMAGES = Preset("preact-resnet18", 10, Hyperparameters(epochs=200, batch=128, lr=0.02))
LARGE_IMAGES = Preset("timm/resnet50", 10, Hyperparameters(epochs=50, batch=64, lr=0.02))
FEATURES = Preset("mlp", 10, Hyperparameters(epochs=100, batch=128, lr=0.02))
LARGE = 64
"""Height from which images count as large."""


def preset_of(dataset: str, image_size: int | None) -> Preset:
    """Return the settings for a data set: by its name, or else by what its examples are.

    Parameters
    ----------
    dataset
        Name of the data set.
    image_size
        Height of its images; None for features.

    Examples
    --------
    >>> preset_of("cifar100n", 32).warmup_epochs, preset_of("mine", None).network
    (30, 'mlp')
    """
    if dataset in PRESETS:
        return PRESETS[dataset]
    if image_size is None:
        return FEATURES
    return LARGE_IMAGES if image_size > LARGE else IMAGES


NO_LOOK = ("dataset", "dtype")
"""What `make_views` takes besides how examples look."""


@dataclass(frozen=True)
class TrainingPlan:
    """Everything that decides the result of a training, apart from the data.

    Parameters
    ----------
    learner, learner_options
        Which learner, and all of its options.
    network, network_options
        Which network, and what it is made with.
    look
        Options of `make_views`.
    hyperparameters
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
    hyperparameters: Hyperparameters
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
            "training": self.hyperparameters.as_dict(),
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
) -> TrainingPlan:
    """Take the preset of the data set and learner, and put what was given in its place.

    Parameters
    ----------
    learner, learner_options, network, network_options, look, warmup_epochs, seed
        See `TrainingPlan`; None means the preset's.
    training, **settings
        Fields of `Hyperparameters`, in a mapping where their names are not known beforehand, or one by one.

    Examples
    --------
    >>> from prune4rel.data import load_dataset
    >>> plan = make_plan(load_dataset("digits"), "sop+", epochs=5)
    >>> plan.network, plan.hyperparameters.epochs
    ('small-cnn', 5)
    """
    entry = get(learner)
    preset = preset_of(dataset.name, dataset.image_size)
    usual = entry.kind.network or preset.network
    if entry.kind.network not in (None, network or usual):
        raise InputError(f"learner {learner!r} trains the network {usual!r}, not {network!r}", "network")
    refuse_unknown(f"learner {learner!r}", learner_options or (), entry.options)
    options = {**entry.options, **preset_options(learner, dataset.name, dataset.kind), **(learner_options or {})}
    refuse_unknown("look", look or (), [name for name in signature(make_views).parameters if name not in NO_LOOK])
    if network is not None and not network.startswith(ZOO):
        NETWORKS.look_up(network, f"{ZOO}NAME")
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise InputError(f"seed must be a whole number of at least 0, not {seed!r}", "seed")
    start: Mapping[str, Any] = preset.options
    if (network or usual) != preset.network:
        start = {"pretrained": True} if (network or usual).startswith(ZOO) else {}
    warm = preset.warmup_epochs if warmup_epochs is None else warmup_epochs
    if isinstance(warm, bool) or not isinstance(warm, int) or warm < 1:
        raise InputError(f"warmup_epochs must be a whole number of at least 1, not {warm!r}", "warmup_epochs")
    return TrainingPlan(
        learner=learner,
        learner_options=options,
        network=network or usual,
        network_options={**start, **(network_options or {})},
        look={**preset.look, **(look or {})},
        hyperparameters=preset.hyperparameters.changed(
            **{**(training or {}), **settings, **({"epochs": 1} if entry.kind.at_once else {})}
        ),
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
        raise InputError(f"networks learn from images and features, not from {dataset.kind}; turn them into features")
    return (3, dataset.image_size, dataset.image_size)


def build(
    plan: TrainingPlan,
    dataset: Dataset,
    subset: NDArray[np.int64],
    device: torch.device,
    ranks: Ranks,
    kind: type[Learner] | None = None,
) -> Learner:
    """Make the learner with fresh weights, the same ones on every device; `kind` stands for an unlisted one."""

    def make_network() -> Network:
        return make(plan.network, dataset.n_classes, shape=shape_of(dataset), **plan.network_options)

    chosen = kind or get(plan.learner).kind
    setting = Setting(
        make_network=make_network,
        labels=dataset.train.labels[subset],
        n_classes=dataset.n_classes,
        epochs=plan.hyperparameters.epochs_on(len(subset), chosen),
        seed=seed_of(plan.seed, 3),
        ranks=ranks,
        rows=subset,
        judged=judge_all(dataset, plan) if chosen.judges else None,
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


def judge_all(dataset: Dataset, plan: TrainingPlan) -> Judgement:
    """Judge the labels of all examples out of sample, by their features."""
    train = dataset.train
    if train.features is None:
        raise InputError(
            f"learner {plan.learner!r} goes by features, and the examples are {dataset.kind}: turn them into vectors "
            "first (--encoder NAME), or choose another learner",
            "learner",
        )
    return judge(
        train.features,
        train.labels,
        n_classes=dataset.n_classes,
        verified=train.verified,
        removed=train.removed,
        seed=plan.seed,
        device="cpu",
    )


def resolve_subset(dataset: Dataset, subset: ArrayLike | None) -> NDArray[np.int64]:
    """Return the examples to train on: all of them unless told, but for those that a person took out."""
    n = len(dataset.train)
    rows = np.arange(n, dtype=np.int64) if subset is None else check_subset(subset, n).copy()  # may be read-only
    if dataset.train.removed is None:
        return rows
    rows = rows[~dataset.train.removed[rows]]
    if not rows.size:
        raise InputError("all examples to train on were removed by somebody", "subset")
    return rows


def identity_of(plan: TrainingPlan, dataset: Dataset, subset: NDArray[np.int64]) -> dict[str, Any]:
    """Return what has to be the same for one training to be the continuation of another."""
    return {
        **plan.as_dict(),
        "dataset": dataset.name,
        "labels": fingerprint(dataset.train.labels),
        "subset": fingerprint(subset),
        **({} if dataset.train.verified is None else {"verified": fingerprint(dataset.train.verified)}),
    }
