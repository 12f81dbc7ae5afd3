"""Mixup: every example mixed with another one of its batch, labels alike."""

from dataclasses import dataclass

import torch
from torch import Tensor

from prune4rel.augment.pixels import on_device_of
from prune4rel.errors import InputError


@dataclass(frozen=True)
class Mixture:
    """With whom each of B examples is mixed, and how much of it remains.

    Parameters
    ----------
    partners
        (B,) int64, a permutation of the batch.
    shares
        (B,) float32, the weight of the example itself; its partner has one minus that.
    """

    partners: Tensor
    shares: Tensor


def draw_mixture(
    count: int, alpha: float, generator: torch.Generator, *, mostly_itself: bool = False, one_share: bool = True
) -> Mixture:
    """Draw a permutation and shares from Beta(alpha, alpha).

    Parameters
    ----------
    alpha
        Above 0; 1 is uniform, less is nearer to 0 and 1, more is nearer to 1/2.
    mostly_itself
        Take the larger of the share and one minus it, as DivideMix and ELR+ do.
    one_share
        One share for the whole batch, as in the paper, or one for each example.

    Examples
    --------
    >>> mixture = draw_mixture(4, 4.0, torch.Generator().manual_seed(0), mostly_itself=True)
    >>> sorted(mixture.partners.tolist()), bool((mixture.shares >= 0.5).all())
    ([0, 1, 2, 3], True)
    """
    if alpha <= 0:
        raise InputError(f"alpha must be above 0, not {alpha}")
    partners = torch.randperm(count, generator=generator, device=generator.device).cpu()
    pairs = torch.full((1 if one_share else count, 2), alpha, dtype=torch.float64, device=generator.device)
    drawn = torch._sample_dirichlet(pairs, generator=generator)  # noqa: SLF001 - Beta takes no generator of ours
    shares = drawn.max(dim=1).values if mostly_itself else drawn[:, 0]
    return Mixture(partners=partners, shares=shares.float().cpu().expand(count))


def mix(values: Tensor, mixture: Mixture) -> Tensor:
    """Mix images, or one-hot labels, or anything else that has the example as its first axis.

    Parameters
    ----------
    values
        (B, ...) floating point, or uint8: then rounded to the nearest level.

    Examples
    --------
    >>> mixture = Mixture(partners=torch.tensor([1, 0]), shares=torch.tensor([0.75, 0.75]))
    >>> mix(torch.tensor([[1.0, 0.0], [0.0, 1.0]]), mixture)
    tensor([[0.7500, 0.2500],
            [0.2500, 0.7500]])
    """
    if len(mixture.partners) != len(values):
        raise InputError(f"a mixture of {len(mixture.partners)} examples was given for a batch of {len(values)}")
    numbers = values if values.is_floating_point() else values.float()
    shares = on_device_of(mixture.shares, values).to(numbers.dtype).view(-1, *[1] * (values.ndim - 1))
    others = numbers.index_select(0, on_device_of(mixture.partners, values))
    mixed = numbers * shares + others * (1 - shares)
    return mixed if values.is_floating_point() else mixed.round_().to(values.dtype)
