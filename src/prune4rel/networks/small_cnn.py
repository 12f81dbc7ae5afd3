"""A small convolutional network, for digits and for quick tries."""

from torch import Tensor, nn

from prune4rel.gpu.layers import Convolution, mean_over_image
from prune4rel.networks.network import IMAGE, Network, Shape, channels_of, positive, register_network


@register_network("small-cnn")
class SmallCNN(Network):
    """Three 3x3 convolutions with batch normalisation and ReLU, two of them halving the image, mean over the image.

    Parameters
    ----------
    n_classes
        Number of classes.
    shape
        Channels, height and width of one input; any size.
    width
        Channels of the first convolution; the second has twice and the third four times as many.

    Examples
    --------
    >>> import torch
    >>> network = SmallCNN(10, shape=(1, 8, 8), width=16)
    >>> network.dim, network.embed(torch.zeros(2, 1, 8, 8)).shape
    (64, torch.Size([2, 64]))
    """

    def __init__(self, n_classes: int, *, shape: Shape = IMAGE, width: int = 32) -> None:
        inside = channels_of(shape, "small-cnn")
        super().__init__(4 * positive(width, "width"), n_classes)
        layers: list[nn.Module] = []
        for outside, stride in ((width, 1), (2 * width, 2), (4 * width, 2)):
            convolution = Convolution(inside, outside, 3, stride, padding=1, bias=False)
            layers += [convolution, nn.BatchNorm2d(outside), nn.ReLU()]
            inside = outside
        self.layers = nn.Sequential(*layers)

    def embed(self, x: Tensor) -> Tensor:
        """Turn images (B, C, H, W) into (B, 4 * width)."""
        features: Tensor = self.layers(x)
        return mean_over_image(features, self.head.weight.dtype)
