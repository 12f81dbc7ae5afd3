"""The paper's settings for each of its data sets (Table 7), and ours for the rest."""

from dataclasses import dataclass, field
from typing import Any

from prune4rel.training.recipe import Recipe


@dataclass(frozen=True)
class Preset:
    """Which network, how long the warm-up, and how to train.

    `look` holds options of `training.views.make_views`; `options` options of the network.
    """

    network: str
    warmup_epochs: int
    recipe: Recipe
    look: dict[str, Any] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)


_CIFAR = Recipe(epochs=300, batch=128, lr=0.02)

PRESETS = {
    "cifar10n": Preset("preact-resnet18", 10, _CIFAR),
    "cifar100n": Preset("preact-resnet18", 30, _CIFAR),
    "webvision": Preset(
        "timm/inception_resnet_v2", 10, Recipe(epochs=100, batch=32, lr=0.02, scheme="multistep", milestones=(50,))
    ),
    "clothing1m": Preset(
        "timm/resnet50",
        1,
        Recipe(epochs=10, batch=32, lr=0.002, scheme="multistep", milestones=(5,), weight_decay=1e-3),
        options={"pretrained": True},
    ),
    "imagenet-n": Preset("timm/resnet50", 10, Recipe(epochs=50, batch=64, lr=0.02, weight_decay=1e-3)),
    "digits": Preset(
        "small-cnn",
        10,
        Recipe(epochs=45, batch=64, lr=0.07),
        look={"mirror": 0.0, "padding": 1, "policy": "none", "cutout": 3},
        options={"width": 16},
    ),
}

IMAGES = Preset("preact-resnet18", 10, Recipe(epochs=200, batch=128, lr=0.02))
LARGE_IMAGES = Preset("timm/resnet50", 10, Recipe(epochs=50, batch=64, lr=0.02))
FEATURES = Preset("mlp", 10, Recipe(epochs=100, batch=128, lr=0.02))
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
