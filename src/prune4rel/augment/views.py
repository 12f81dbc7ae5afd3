"""The views of an image that learners train on, weak and strong: cropped, mirrored, changed, a square cut out."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Self

import torch
from torch import Tensor
from torch.nn.functional import pad

from prune4rel.augment.draws import Draws, NoDraws, View, integers, uniform
from prune4rel.augment.pixels import block_by_block, check_images, check_shape, normalise, normalise_into, on_device_of
from prune4rel.augment.policies import AutoAugment, Operations, Policy, apply_operations
from prune4rel.augment.transforms import pick
from prune4rel.errors import InputError
from prune4rel.machine import has_triton

SIZE = 16


@dataclass(frozen=True)
class Centres(Draws):
    """Where the squares of B examples lie: (B,) int64 row and column of the pixel right and below the middle."""

    rows: Tensor
    columns: Tensor


def draw_centres(count: int, height: int, width: int, generator: torch.Generator) -> Centres:
    """Draw every pixel with equal probability: squares near the edge are clipped there.

    >>> centres = draw_centres(1000, 32, 32, torch.Generator().manual_seed(0))
    >>> int(centres.rows.min()), int(centres.rows.max())
    (0, 31)
    """
    return Centres(rows=integers(height, (count,), generator), columns=integers(width, (count,), generator))


def cutout(images: Tensor, centres: Centres, *, size: int = SIZE) -> Tensor:
    """Set a square of each image to zero; after `normalise`, where zero is the mean colour.

    Parameters
    ----------
    images
        (B, C, H, W) of any type.
    centres
        Of the same B examples.
    size
        Side of the square in pixels, before it is clipped.

    Examples
    --------
    >>> cutout(torch.ones(1, 1, 3, 4), Centres(rows=torch.tensor([0]), columns=torch.tensor([2])), size=2)[0, 0]
    tensor([[1., 0., 0., 1.],
            [1., 1., 1., 1.],
            [1., 1., 1., 1.]])
    """
    return cutout_(images.clone(), centres, size=size)


def cutout_(images: Tensor, centres: Centres, *, size: int = SIZE) -> Tensor:
    """Do what `cutout` does in the images themselves."""
    check_images(images)
    if len(centres) != len(images):
        raise InputError(f"{len(centres)} centres were given for {len(images)} images")
    height, width = images.shape[2:]
    rows = on_device_of(_covered(centres.rows, height, size), images)
    columns = on_device_of(_covered(centres.columns, width, size), images)
    shown = ~(rows[:, None, :, None] & columns[:, None, None, :])
    return images.mul_(shown.to(images.dtype))


def _covered(middles: Tensor, length: int, size: int) -> Tensor:
    """(B, length) bool: which rows or columns the squares cover."""
    starts = middles[:, None] - size // 2
    places = torch.arange(length, device=middles.device)
    return (places >= starts) & (places < starts + size)


PADDING = 4


@dataclass(frozen=True)
class Frames(Draws):
    """Which part of the padded image each of B examples shows, and whether mirrored.

    Parameters
    ----------
    rows, columns
        (B,) int64, upper left corner in the padded image, 0 to twice the padding.
    mirrored
        (B,) bool, left and right swapped after the crop.
    """

    rows: Tensor
    columns: Tensor
    mirrored: Tensor


def draw_frames(
    count: int, generator: torch.Generator, *, padding: int = PADDING, mirror_probability: float = 0.5
) -> Frames:
    """Draw every corner with equal probability, and mirror with `mirror_probability`.

    >>> frames = draw_frames(1000, torch.Generator().manual_seed(0))
    >>> frames.rows.unique().tolist()
    [0, 1, 2, 3, 4, 5, 6, 7, 8]
    """
    corners = integers(2 * padding + 1, (count, 2), generator)
    mirrored = uniform((count,), generator) < mirror_probability
    return Frames(rows=corners[:, 0], columns=corners[:, 1], mirrored=mirrored)


def crop_and_mirror(images: Tensor, frames: Frames, *, padding: int = PADDING) -> Tensor:
    """Pad with zeros, cut each example's frame out, mirror it where wanted.

    Parameters
    ----------
    images
        (B, C, H, W) of any type; values are moved, never changed.
    frames
        Of the same B examples, drawn with the same padding.

    Examples
    --------
    >>> images = torch.arange(1, 5, dtype=torch.uint8).view(1, 1, 2, 2)
    >>> frames = Frames(rows=torch.tensor([1]), columns=torch.tensor([2]), mirrored=torch.tensor([False]))
    >>> crop_and_mirror(images, frames, padding=1)[0, 0]
    tensor([[2, 0],
            [4, 0]], dtype=torch.uint8)
    """
    _check(images, frames)
    height, width = images.shape[2:]
    if not images.numel():
        return images.clone()
    stride = width + 2 * padding
    step = 1 - 2 * frames.mirrored.long()
    first_column = frames.columns + frames.mirrored * (width - 1)
    # three numbers an example go to the device, and a place for every pixel is worked out there
    numbers = torch.stack([frames.rows * stride, first_column, step])
    first_row, first_column, step = on_device_of(numbers, images)[:, :, None]
    rows = first_row + torch.arange(0, height * stride, stride, device=images.device)
    columns = first_column + step * torch.arange(width, device=images.device)
    places = rows[:, :, None] + columns[:, None, :]
    return pick(pad(images, (padding, padding, padding, padding)), places)


def crop_mirror_and_normalise_into(
    values: Tensor, images: Tensor, frames: Frames, mean: Sequence[float], std: Sequence[float], *, padding: int
) -> None:
    """Write what `normalise` makes of `crop_and_mirror` into values (B, C, H, W), whose type it takes.

    On a GPU levels go straight from where they lie to the numbers they become, in one operation; there are 256 of them
    a channel, so that the numbers are worked out beforehand, to the last bit as `normalise` has them.
    """
    _check(images, frames)
    if not (images.is_cuda and images.dtype == torch.uint8 and images.is_contiguous() and has_triton()):
        normalise_into(values, crop_and_mirror(images, frames, padding=padding), mean, std)
        return
    from prune4rel.gpu.frame_kernels import frame  # noqa: PLC0415 - needs Triton, which comes with PyTorch for GPUs

    if images.numel():
        places = torch.stack([frames.rows - padding, frames.columns - padding, frames.mirrored.long()])
        every_level = torch.arange(256, dtype=torch.uint8).view(1, 1, 16, 16).expand(-1, images.shape[1], -1, -1)
        levels = normalise(every_level, mean, std, dtype=values.dtype)
        frame(values, images, on_device_of(places, images), on_device_of(levels, images))


def _check(images: Tensor, frames: Frames) -> None:
    check_images(images)
    if len(frames) != len(images):
        raise InputError(f"{len(frames)} frames were given for {len(images)} images")


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
