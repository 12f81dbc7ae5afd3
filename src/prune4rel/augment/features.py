"""A view of feature vectors: a little noise, and some features forgotten."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from prune4rel.augment.draws import Draws, View, normal, uniform
from prune4rel.augment.pixels import on_device_of
from prune4rel.errors import InputError


@dataclass(frozen=True)
class FeatureDraws(Draws):
    """What happens to the feature vectors of B examples.

    Parameters
    ----------
    noise
        (B, d) float32 of mean 0 and standard deviation 1; (B, 0) for no noise.
    dropped
        (B, d) bool, features that are set to their mean; (B, 0) for none.
    """

    noise: Tensor
    dropped: Tensor


@dataclass(frozen=True, eq=False)
class FeatureView(View):
    """Gaussian noise in proportion to each feature's spread, then some features set to their mean.

    Parameters
    ----------
    mean, std
        (d,) of each feature, over the training set; arrays or tensors. Kept as float32 tensors on the CPU.
    noise
        Standard deviation of the noise, in units of `std`; 0 for none.
    drop
        Probability of each feature of each example to be set to its mean; 0 for none.
    standardise
        At last, shift and scale each feature to mean 0 and standard deviation 1; one that never varies is only shifted.

    Examples
    --------
    >>> features = torch.arange(12.0).view(4, 3)
    >>> view = FeatureView(features.mean(0), features.std(0), drop=0.5)
    >>> view(features, torch.Generator().manual_seed(0))
    tensor([[4.5000, 1.0000, 6.5000],
            [4.5000, 5.5000, 5.0000],
            [4.5000, 7.0000, 6.5000],
            [9.0000, 5.5000, 6.5000]])
    >>> drawn = view.draw(features.shape, torch.Generator().manual_seed(0))
    >>> torch.equal(view.apply(features[1:3], drawn[1:3]), view.apply(features, drawn)[1:3])
    True
    """

    mean: ArrayLike | Tensor
    std: ArrayLike | Tensor
    noise: float = 0.0
    drop: float = 0.0
    standardise: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.noise < float("inf"):
            raise InputError(f"noise must be 0 or more and finite, not {self.noise}", "noise")
        if not 0 <= self.drop <= 1:
            raise InputError(f"drop must be from 0 to 1, not {self.drop}", "drop")
        mean, std = _numbers(self.mean, "mean"), _numbers(self.std, "std")
        if len(mean) != len(std):
            raise InputError(f"{len(mean)} means and {len(std)} deviations were given; both need one a feature", "std")
        if (std < 0).any():
            raise InputError(f"std: holds {float(std.min())}; a standard deviation is 0 or more", "std")
        object.__setattr__(self, "mean", mean)
        object.__setattr__(self, "std", std)

    def draw(self, shape: Sequence[int], generator: torch.Generator) -> FeatureDraws:
        """Parameters of features of the shape (B, d)."""
        self._check(shape)
        count, width = shape
        noise = normal((count, width if self.noise else 0), generator)
        dropped = uniform((count, width if self.drop else 0), generator) < self.drop
        return FeatureDraws(noise=noise, dropped=dropped)

    def apply(self, inputs: Tensor, drawn: FeatureDraws) -> Tensor:
        """(B, d) numbers from (B, d) features, in their own type."""
        self._check(inputs.shape)
        if not inputs.is_floating_point():
            raise InputError(f"features must be floating-point numbers, not {inputs.dtype}")
        if len(drawn) != len(inputs):
            raise InputError(f"parameters of {len(drawn)} examples were given for {len(inputs)} feature vectors")
        mean, std = torch.as_tensor(self.mean), torch.as_tensor(self.std)
        values = inputs.clone()
        if self.noise:
            values += (on_device_of(drawn.noise, inputs) * on_device_of(std * self.noise, inputs)).to(inputs.dtype)
        if self.drop:
            values = torch.where(
                on_device_of(drawn.dropped, inputs), on_device_of(mean.to(inputs.dtype), inputs), values
            )
        if self.standardise:
            unit = torch.where(std > 0, std, torch.ones_like(std))
            values = values.sub_(on_device_of(mean, inputs)).div_(on_device_of(unit, inputs))
        return values

    def _check(self, shape: Sequence[int]) -> None:
        width = len(torch.as_tensor(self.mean))
        if len(shape) != 2 or shape[1] != width:
            raise InputError(
                f"features must have the shape (B, {width}), as many as there are means, not {tuple(shape)}"
            )


def _numbers(values: ArrayLike | Tensor, name: str) -> Tensor:
    given = values.detach().cpu().numpy() if isinstance(values, Tensor) else np.asarray(values)
    if given.ndim != 1 or given.dtype.kind not in "fiu":
        raise InputError(f"{name}: must be (d,) numbers, one a feature, not {given.dtype} of shape {given.shape}", name)
    numbers = torch.tensor(given, device="cpu").to(torch.float32)
    if not bool(torch.isfinite(numbers).all()):
        raise InputError(f"{name}: holds NaN, infinity or a number too large for float32", name)
    return numbers
