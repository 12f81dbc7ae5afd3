"""The paper's Table 7, row by row, beside what is preset."""

import pytest

from prune4rel.data import load_dataset
from prune4rel.training.hyperparameters import FEATURES, IMAGES, LARGE_IMAGES, make_plan, preset_of

TABLE = {
    # data set: network, warm-up, epochs, batch, lr, scheme, milestones, weight decay
    "cifar10n": ("preact-resnet18", 10, 300, 128, 0.02, "cosine", (), 5e-4),
    "cifar100n": ("preact-resnet18", 30, 300, 128, 0.02, "cosine", (), 5e-4),
    "webvision": ("timm/inception_resnet_v2", 10, 100, 32, 0.02, "multistep", (50,), 5e-4),
    "clothing1m": ("timm/resnet50", 1, 10, 32, 0.002, "multistep", (5,), 1e-3),
    "imagenet-n": ("timm/resnet50", 10, 50, 64, 0.02, "cosine", (), 1e-3),
}


@pytest.mark.parametrize("name", TABLE)
def test_the_papers_settings(name):
    preset = preset_of(name, 224)
    hyperparameters = preset.hyperparameters
    assert TABLE[name] == (
        preset.network,
        preset.warmup_epochs,
        hyperparameters.epochs,
        hyperparameters.batch,
        hyperparameters.lr,
        hyperparameters.scheme,
        hyperparameters.milestones,
        hyperparameters.weight_decay,
    )
    assert (hyperparameters.momentum, hyperparameters.nesterov) == (0.9, True)


def test_only_clothing_starts_from_trained_weights():
    assert preset_of("clothing1m", 224).options == {"pretrained": True}
    assert preset_of("imagenet-n", 224).options == {}


def test_unknown_sets_go_by_what_their_examples_are():
    assert preset_of("mine", None) is FEATURES
    assert preset_of("mine", 64) is IMAGES
    assert preset_of("mine", 65) is LARGE_IMAGES


def test_a_network_of_timm_starts_from_pretrained_weights_unless_told():
    data = load_dataset("digits")
    assert make_plan(data, network="timm/resnet18").network_options == {"pretrained": True}
    scratch = make_plan(data, network="timm/resnet18", network_options={"pretrained": False})
    assert scratch.network_options == {"pretrained": False}
    assert make_plan(data, network="small-cnn").network_options == {"width": 16}
    assert make_plan(data, network="mlp").network_options == {}
