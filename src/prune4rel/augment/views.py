"""The two views of an image that learners train on: weak and strong."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Self

import torch
from torch import Tensor

from prune4rel.augment.cutout import SIZE, Centres, cutout_, draw_centres
from prune4rel.augment.draws import Draws, NoDraws, View
from prune4rel.augment.frames import PADDING, Frames, crop_mirror_and_normalise_into, draw_frames
from prune4rel.augment.operations import Operations, apply_operations
from prune4rel.augment.pixels import check_shape, normalise
from prune4rel.augment.policies import AutoAugment, Policy
from prune4rel.augment.workers import block_by_block
from prune4rel.errors import InputError

Numbers = tuple[float, ...]


@dataclass(frozen=True)
class PlainView(View):
    """Normalised and otherwise as it is: what a model is tested on.

    Parameters
    ----------
    mean, std
        One number a channel, of images in 0 to 1.
    dtype
        Type of the result.

    Examples
    --------
    >>> view = PlainView(mean=(0.5,), std=(0.5,))
    >>> view(torch.zeros(2, 1, 4, 4, dtype=torch.uint8), torch.Generator()).unique()
    tensor([-1.])
    """

    mean: Numbers
    std: Numbers
    dtype: torch.dtype = torch.float32

    def __call__(self, inputs: Tensor, generator: torch.Generator | None = None) -> Tensor:  # noqa: ARG002
        """(B, C, H, W) numbers; nothing is drawn."""
        return normalise(inputs, self.mean, self.std, dtype=self.dtype)

    def draw(self, shape: Sequence[int], generator: torch.Generator) -> NoDraws:  # noqa: ARG002
        """Nothing, for as many images as the shape says."""
        check_shape(shape)
        return NoDraws(torch.empty((shape[0], 0), device="cpu"))

    def apply(self, inputs: Tensor, drawn: NoDraws) -> Tensor:  # noqa: ARG002
        """(B, C, H, W) numbers from (B, C, H, W) images."""
        return self(inputs)


@dataclass(frozen=True)
class WeakView(View):
    """Cropped after padding, mirrored half the time, normalised.

    Parameters
    ----------
    mean, std
        One number a channel, of images in 0 to 1.
    padding
        Pixels of black around the image before it is cropped to its own size again.
    mirror_probability
        Zero where left and right matter, as in digits.
    dtype
        Type of the result.

    Examples
    --------
    >>> view = WeakView(mean=(0.5, 0.5, 0.5), std=(0.25, 0.25, 0.25))
    >>> images = torch.zeros(8, 3, 32, 32, dtype=torch.uint8)
    >>> view(images, torch.Generator().manual_seed(0)).shape
    torch.Size([8, 3, 32, 32])
    """

    mean: Numbers
    std: Numbers
    padding: int = PADDING
    mirror_probability: float = 0.5
    dtype: torch.dtype = torch.float32

    def draw(self, shape: Sequence[int], generator: torch.Generator) -> Frames:
        """Parameters of images of the shape (B, C, H, W)."""
        check_shape(shape)
        return draw_frames(shape[0], generator, padding=self.padding, mirror_probability=self.mirror_probability)

    def apply(self, inputs: Tensor, drawn: Frames) -> Tensor:
        """(B, C, H, W) numbers from (B, C, H, W) images."""
        return block_by_block(self._fill, inputs, drawn, self.dtype)

    def _fill(self, values: Tensor, images: Tensor, frames: Frames) -> None:
        crop_mirror_and_normalise_into(values, images, frames, self.mean, self.std, padding=self.padding)


@dataclass(frozen=True)
class StrongDraws(Draws):
    """Parameters of the strong views of B examples."""

    operations: Operations
    frames: Frames
    centres: Centres


@dataclass(frozen=True)
class StrongView(View):
    """A policy's operations, then as the weak view, then a square cut out.

    Parameters
    ----------
    mean, std
        One number a channel, of images in 0 to 1.
    policy
        `AutoAugment` or `RandAugment`, or your own.
    cutout_size
        Side of the square in pixels; 0 for none.
    padding, mirror_probability, dtype
        As for `WeakView`.

    Examples
    --------
    >>> view = StrongView(mean=(0.5, 0.5, 0.5), std=(0.25, 0.25, 0.25))
    >>> images = torch.zeros(8, 3, 32, 32, dtype=torch.uint8)
    >>> drawn = view.draw(images.shape, torch.Generator().manual_seed(0))
    >>> torch.equal(view.apply(images, drawn)[2:5], view.apply(images[2:5], drawn[2:5]))
    True
    """

    mean: Numbers
    std: Numbers
    policy: Policy = field(default_factory=AutoAugment)
    cutout_size: int = SIZE
    padding: int = PADDING
    mirror_probability: float = 0.5
    dtype: torch.dtype = torch.float32

    def draw(self, shape: Sequence[int], generator: torch.Generator) -> StrongDraws:
        """Parameters of images of the shape (B, C, H, W)."""
        check_shape(shape)
        count, _, height, width = shape
        return StrongDraws(
            operations=self.policy.draw(count, generator),
            frames=draw_frames(count, generator, padding=self.padding, mirror_probability=self.mirror_probability),
            centres=draw_centres(count, height, width, generator),
        )

    def apply(self, inputs: Tensor, drawn: StrongDraws) -> Tensor:
        """(B, C, H, W) numbers from (B, C, H, W) images."""
        return block_by_block(self._fill, inputs, drawn, self.dtype)

    def _fill(self, values: Tensor, images: Tensor, drawn: StrongDraws) -> None:
        changed = apply_operations(images, drawn.operations)
        crop_mirror_and_normalise_into(values, changed, drawn.frames, self.mean, self.std, padding=self.padding)
        if self.cutout_size:
            cutout_(values, drawn.centres, size=self.cutout_size)


@dataclass(frozen=True)
class ViewsDraws(Draws):
    """Parameters of several views of the same B examples."""

    of_views: tuple[Draws, ...]

    def __len__(self) -> int:
        return len(self.of_views[0])

    def __getitem__(self, where: slice | Tensor) -> Self:
        """Return the parameters of some of the examples."""
        return type(self)(tuple(drawn[where] for drawn in self.of_views))


@dataclass(frozen=True)
class Views:
    """Several views of the same inputs, each drawn by itself.

    Parameters
    ----------
    views
        `WeakView`, `StrongView`, `FeatureView`, ...; one or more, and the same one twice gives two different draws.

    Examples
    --------
    >>> weak = WeakView(mean=(0.5, 0.5, 0.5), std=(0.25, 0.25, 0.25))
    >>> strong = StrongView(weak.mean, weak.std)
    >>> images = torch.zeros(8, 3, 32, 32, dtype=torch.uint8)
    >>> [tuple(values.shape) for values in Views((weak, strong))(images, torch.Generator().manual_seed(0))]
    [(8, 3, 32, 32), (8, 3, 32, 32)]
    """

    views: tuple[View, ...]

    def __post_init__(self) -> None:
        if not self.views:
            raise InputError("no views were given; name at least one")

    def __call__(self, inputs: Tensor, generator: torch.Generator) -> tuple[Tensor, ...]:
        """Draw and apply: one tensor a view."""
        return self.apply(inputs, self.draw(inputs.shape, generator))

    def draw(self, shape: Sequence[int], generator: torch.Generator) -> ViewsDraws:
        """Parameters of all views of inputs of the given shape, view after view."""
        return ViewsDraws(tuple(view.draw(shape, generator) for view in self.views))

    def apply(self, inputs: Tensor, drawn: ViewsDraws) -> tuple[Tensor, ...]:
        """One tensor a view."""
        return tuple(view.apply(inputs, own) for view, own in zip(self.views, drawn.of_views, strict=True))
