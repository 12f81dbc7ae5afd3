"""What a network gets to see of an example: as it is, weakly or strongly changed."""

from collections.abc import Mapping
from typing import Literal

import numpy as np
import torch

from prune4rel.augment import (
    AutoAugment,
    FeatureView,
    Operation,
    PlainView,
    Policy,
    RandAugment,
    StrongView,
    View,
    WeakView,
)
from prune4rel.augment.draws import ViewName
from prune4rel.data import Dataset
from prune4rel.errors import InputError, nearest

PolicyName = Literal["autoaugment", "randaugment", "none"]
NOTHING = AutoAugment(pairs=(((Operation.IDENTITY, 0.0, 0), (Operation.IDENTITY, 0.0, 0)),))
POLICIES: Mapping[str, Policy] = {
    "autoaugment": AutoAugment(),
    "randaugment": RandAugment(rounds=3, level=5),
    "none": NOTHING,
}
WEAK_NOISE, STRONG_NOISE, STRONG_DROP = 0.05, 0.2, 0.2
SAMPLE = 100_000
"""Rows of features that means and deviations are taken from."""


def make_views(
    dataset: Dataset,
    *,
    mirror: float = 0.5,
    padding: int | None = None,
    policy: PolicyName = "autoaugment",
    cutout: int | None = None,
    dtype: torch.dtype = torch.float32,
) -> dict[ViewName, View]:
    """Make the views of a data set.

    Images: weak is padded, cropped and mirrored; strong adds a policy's operations and a square cut out. Features:
    standardised; weak adds a little noise, strong more of it and forgets a fifth of the features. The options are for
    images only.

    Parameters
    ----------
    mirror
        Probability of mirroring an image; 0 where left and right matter.
    padding
        Pixels around an image before it is cropped; an eighth of its height unless told.
    policy
        ``"autoaugment"``, ``"randaugment"`` or ``"none"``.
    cutout
        Side of the square; half the height unless told.
    dtype
        Type of the images a network gets.

    Examples
    --------
    >>> from prune4rel.data import load_dataset
    >>> sorted(make_views(load_dataset("digits")))
    ['plain', 'strong', 'weak']
    """
    if policy not in POLICIES:
        raise InputError(f"unknown policy {policy!r}; {nearest(policy, POLICIES)}", "policy")
    for name, value in (("padding", padding), ("cutout", cutout)):
        if value is not None and (not isinstance(value, int) or value < 0):
            raise InputError(f"{name} must be 0 or more pixels, not {value!r}", name)
    if not isinstance(mirror, int | float) or not 0 <= mirror <= 1:
        raise InputError(f"mirror must be from 0 to 1, not {mirror!r}", "mirror")
    if dataset.mean is None or dataset.std is None or dataset.image_size is None:
        return _feature_views(dataset)
    side = dataset.image_size
    margin = side // 8 if padding is None else padding
    return {
        "plain": PlainView(dataset.mean, dataset.std, dtype),
        "weak": WeakView(dataset.mean, dataset.std, margin, mirror, dtype),
        "strong": StrongView(
            dataset.mean,
            dataset.std,
            POLICIES[policy],
            side // 2 if cutout is None else cutout,
            margin,
            mirror,
            dtype,
        ),
    }


def _feature_views(dataset: Dataset) -> dict[ViewName, View]:
    features = dataset.train.features
    if features is None:
        raise AssertionError("what is no image is a vector of features")
    step = max(1, len(features) // SAMPLE)
    sample = np.asarray(features[::step], dtype=np.float64)
    mean, std = sample.mean(axis=0), sample.std(axis=0)
    return {
        "plain": FeatureView(mean, std, standardise=True),
        "weak": FeatureView(mean, std, noise=WEAK_NOISE, standardise=True),
        "strong": FeatureView(mean, std, noise=STRONG_NOISE, drop=STRONG_DROP, standardise=True),
    }
