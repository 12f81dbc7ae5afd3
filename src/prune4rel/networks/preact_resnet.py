"""PreAct-ResNet-18 for small images, as the noisy-label papers use it."""

from torch import Tensor, nn

from prune4rel.gpu.layers import Convolution, FirstConvolution, NormReLU, add_norm_relu, mean_over_image
from prune4rel.networks.network import IMAGE, Network, Shape, channels_of, register_network

STAGES = ((64, 1), (128, 2), (256, 2), (512, 2))
"""Channels of each stage, and the stride it begins with."""


def _convolution(inside: int, outside: int, stride: int = 1) -> Convolution:
    return Convolution(inside, outside, 3, stride, padding=1, bias=False)


class PreActBlock(nn.Module):
    """Two convolutions, each behind batch normalisation and ReLU, and a way around them.

    The way around starts at the *activated* input, in all blocks: through a 1x1 convolution where the shape
    changes, as it is where it does not. (The textbook passes the raw input on in the second case. The code behind
    the published figures of DivideMix, SOP and Prune4ReL does not.)
    """

    def __init__(self, inside: int, outside: int, stride: int) -> None:
        super().__init__()
        self.norm1 = NormReLU(inside)
        self.conv1 = _convolution(inside, outside, stride)
        self.norm2 = NormReLU(outside)
        self.conv2 = _convolution(outside, outside)
        same = stride == 1 and inside == outside
        self.shortcut = nn.Identity() if same else Convolution(inside, outside, 1, stride, bias=False)

    def forward(self, x: Tensor, also: Tensor | None) -> tuple[Tensor, Tensor]:
        """Turn x + also (B, inside, H, W) into two summands (B, outside, H / stride, W / stride)."""
        active, active_too = add_norm_relu(self.norm1, x, also)
        through: Tensor = self.conv2(self.norm2(self.conv1(active)))
        around: Tensor = self.shortcut(active_too)
        return through, around


@register_network("preact-resnet18")
class PreActResNet18(Network):
    """PreAct-ResNet-18: a 3x3 stem with batch normalisation, four stages of two blocks, mean over the image.

    There is no normalisation or ReLU after the last block: embeddings may be negative. Weights are initialised as
    PyTorch does by default.

    Parameters
    ----------
    n_classes
        Number of classes.
    shape
        Channels, height and width of one input; 32x32 is what it was made for, other sizes work.

    Examples
    --------
    >>> import torch
    >>> network = PreActResNet18(10)
    >>> network.embed(torch.zeros(2, 3, 32, 32)).shape
    torch.Size([2, 512])
    >>> sum(weights.numel() for weights in network.parameters())
    11171274
    """

    def __init__(self, n_classes: int, *, shape: Shape = IMAGE) -> None:
        channels = channels_of(shape, "preact-resnet18")
        super().__init__(STAGES[-1][0], n_classes)
        inside = STAGES[0][0]
        first = FirstConvolution(channels, inside, 3, padding=1, bias=False)
        self.stem = nn.Sequential(first, NormReLU(inside))
        blocks: list[PreActBlock] = []
        for outside, stride in STAGES:
            blocks += [PreActBlock(inside, outside, stride), PreActBlock(outside, outside, 1)]
            inside = outside
        self.blocks = nn.ModuleList(blocks)

    def embed(self, x: Tensor) -> Tensor:
        """Turn images (B, C, H, W) into the mean of the last block's output, (B, 512)."""
        through, around = self.stem(x), None
        for block in self.blocks:
            through, around = block(through, around)
        features: Tensor = through + around
        return mean_over_image(features, self.head.weight.dtype)
