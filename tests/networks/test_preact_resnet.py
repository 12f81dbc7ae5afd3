import pytest
import torch
from torch.nn.functional import avg_pool2d, batch_norm, conv2d, linear, relu

from prune4rel.networks import make

BY_HAND = {
    "stem": 3 * 64 * 9 + 2 * 64,
    "stage 1": 2 * (2 * 64 + 64 * 64 * 9 + 2 * 64 + 64 * 64 * 9),
    "stage 2": (2 * 64 + 64 * 128 * 9 + 2 * 128 + 128 * 128 * 9 + 64 * 128) + (4 * 128 + 2 * 128 * 128 * 9),
    "stage 3": (2 * 128 + 128 * 256 * 9 + 2 * 256 + 256 * 256 * 9 + 128 * 256) + (4 * 256 + 2 * 256 * 256 * 9),
    "stage 4": (2 * 256 + 256 * 512 * 9 + 2 * 512 + 512 * 512 * 9 + 256 * 512) + (4 * 512 + 2 * 512 * 512 * 9),
}


@pytest.mark.parametrize("n_classes", [10, 100])
def test_parameters_counted_by_hand(n_classes):
    network = make("preact-resnet18", n_classes)
    count = sum(weights.numel() for weights in network.parameters())
    assert count == sum(BY_HAND.values()) + 512 * n_classes + n_classes
    assert count == {10: 11_171_274, 100: 11_217_444}[n_classes]


def slow_forward(network, x):
    """The network as the fact sheet tells it, from the weights alone, in evaluation mode."""
    weights = network.state_dict()

    def normalise(x, key):
        return batch_norm(
            x,
            weights[f"{key}.running_mean"],
            weights[f"{key}.running_var"],
            weights[f"{key}.weight"],
            weights[f"{key}.bias"],
        )

    x = relu(normalise(conv2d(x, weights["stem.0.weight"], padding=1), "stem.1"))
    for number in range(8):
        key = f"blocks.{number}"
        stride = 2 if number in (2, 4, 6) else 1
        h = relu(normalise(x, f"{key}.norm1"))
        around = conv2d(h, weights[f"{key}.shortcut.weight"], stride=stride) if stride == 2 else h
        h = conv2d(h, weights[f"{key}.conv1.weight"], stride=stride, padding=1)
        h = conv2d(relu(normalise(h, f"{key}.norm2")), weights[f"{key}.conv2.weight"], padding=1)
        x = h + around
    z = avg_pool2d(x, 4).flatten(1)
    return z, linear(z, weights["head.weight"], weights["head.bias"])


def test_computes_what_the_slow_version_computes():
    torch.manual_seed(0)
    network = make("preact-resnet18", 10)
    network(torch.randn(8, 3, 32, 32))
    network.eval()
    x = torch.randn(2, 3, 32, 32)
    z, logits = slow_forward(network, x)
    torch.testing.assert_close(network.embed(x), z)
    torch.testing.assert_close(network(x), logits)


def test_nothing_follows_the_last_block():
    torch.manual_seed(0)
    network = make("preact-resnet18", 10)
    assert network.embed(torch.randn(4, 3, 32, 32)).min() < 0


def test_only_the_classifier_has_a_bias_besides_the_normalisations():
    network = make("preact-resnet18", 10)
    convolutions = [module for module in network.modules() if isinstance(module, torch.nn.Conv2d)]
    assert len(convolutions) == 1 + 16 + 3
    assert all(module.bias is None for module in convolutions)
    assert network.head.bias.shape == (10,)
