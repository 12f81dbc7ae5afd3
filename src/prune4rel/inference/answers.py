"""What a network gets to see of an example, and what it says: logits and embeddings."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Literal, NamedTuple, Protocol, TypedDict, Unpack

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

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
from prune4rel.loading import Loader
from prune4rel.loading.schedule import Ranks
from prune4rel.progress import Advance, no_advance

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


EVALUATION_BATCH = 512
EVALUATION_BATCH_ON_GPU = 2048
"""Of small images: launching a network's kernels takes a host as long as a GPU needs for about so many."""

SMALL_NUMBERS = 2**23
"""Numbers in a batch of inputs up to which it may be that large."""

MOST_NUMBERS = 2**25
"""Numbers in a batch of inputs, at most, so that large images come in smaller batches."""

Function = Callable[[Tensor], Tensor]
"""From inputs (B, ...) to a row of each, (B, k)."""


class Embeds(Protocol):
    """What can be looked into: a network that classifies by its embeddings."""

    def embed(self, x: Tensor, /) -> Tensor:
        """Turn inputs (B, ...) into embeddings (B, d)."""

    def classify(self, z: Tensor, /) -> Tensor:
        """Turn embeddings (B, d) into logits (B, C)."""

    def eval(self) -> object:
        """Go into evaluation mode."""


class How(TypedDict, total=False):
    """How a model is asked.

    Parameters
    ----------
    seed
        Of the view; 0 unless told.
    half
        Mixed precision.
    advance
        Told how many examples were asked about.
    ranks
        The processes to share the work with, all of which get all answers; they have to ask together.
    """

    seed: int
    half: bool
    advance: Advance
    ranks: Ranks


class Answers(NamedTuple):
    """What a model says of some examples, float32 on the CPU: logits (B, C) and embeddings (B, d).

    `places` (B,) are the examples' in the loader's order.
    """

    places: NDArray[np.int64]
    logits: Tensor
    embeddings: Tensor


class MeanAnswers(NamedTuple):
    """Means over several views of some examples: class probabilities (B, C) in float64, and embeddings (B, d)."""

    places: NDArray[np.int64]
    probabilities: Tensor
    embeddings: Tensor


def batch_of(loader: Loader) -> int:
    """Return how many examples are asked about at a time."""
    each, wanted = math.prod(loader.shape), EVALUATION_BATCH
    if loader.device.type == "cuda":
        wanted = max(wanted, min(EVALUATION_BATCH_ON_GPU, SMALL_NUMBERS // each))
    return max(1, min(wanted, MOST_NUMBERS // each))


def predict(model: nn.Module, function: Function, loader: Loader, view: View, **how: Unpack[How]) -> Tensor:
    """Return logits of all examples of a loader.

    Parameters
    ----------
    model
        Put into evaluation mode.
    function
        What predicts, with the model's weights: from inputs to logits.
    loader
        Over the examples.
    view
        As what they are shown.
    **how
        See `How`.

    Returns
    -------
    (n, C) float32 on the CPU, in the loader's order; NaN for examples that could not be read.

    Examples
    --------
    >>> from prune4rel.data import load_dataset
    >>> from prune4rel.inference.answers import make_views
    >>> from prune4rel.loading import make_loader
    >>> from prune4rel.networks import make
    >>> data, network = load_dataset("digits"), make("mlp", 10, shape=(3, 8, 8), width=4)
    >>> predict(network, network, make_loader(data.test, "cpu"), make_views(data)["plain"]).shape
    torch.Size([449, 10])
    """
    rows = _rows(model, lambda x: (function(x),), loader, view, **how)
    (logits,) = collect(rows, len(loader.examples))
    return logits


def embed(model: nn.Module, function: Function, loader: Loader, view: View, **how: Unpack[How]) -> Tensor:
    """Return embeddings (n, d) of all examples of a loader; everything else is as for `predict`."""
    rows = _rows(model, lambda x: (function(x),), loader, view, **how)
    (embeddings,) = collect(rows, len(loader.examples))
    return embeddings


def predict_and_embed(network: Embeds, loader: Loader, view: View, **how: Unpack[How]) -> Iterator[Answers]:
    """Yield logits and embeddings of all examples of a loader, `batch_of` it at a time; broken ones do not come."""

    def both(x: Tensor) -> tuple[Tensor, Tensor]:
        z = network.embed(x)
        return network.classify(z), z

    for places, (logits, embeddings) in _rows(network, both, loader, view, **how):
        yield Answers(places, logits, embeddings)


def mean_over_views(views: Iterable[Iterable[Answers]]) -> Iterator[MeanAnswers]:
    """Take the mean of several views of the same examples, batch by batch, of probabilities and embeddings.

    >>> some = Answers(np.array([0]), torch.tensor([[0.0, 0.0]]), torch.tensor([[1.0]]))
    >>> other = some._replace(embeddings=torch.tensor([[3.0]]))
    >>> [mean] = mean_over_views([[some], [other]])
    >>> mean.probabilities.tolist(), mean.embeddings.tolist()
    ([[0.5, 0.5]], [[2.0]])
    """
    for several in zip(*views, strict=True):
        probabilities = torch.stack([torch.softmax(each.logits.double(), dim=1) for each in several]).mean(0)
        embeddings = torch.stack([each.embeddings for each in several]).mean(0)
        yield MeanAnswers(several[0].places, probabilities, embeddings)


def collect(parts: Iterable[tuple[NDArray[np.int64], tuple[Tensor, ...]]], n: int) -> tuple[Tensor, ...]:
    """Put rows about `n` examples into their places, (n, k) each; NaN for those that did not come."""
    wholes: tuple[Tensor, ...] = ()
    for places, values in parts:
        wholes = wholes or tuple(torch.full((n, each.shape[1]), torch.nan) for each in values)
        for whole, each in zip(wholes, values, strict=True):
            whole[torch.from_numpy(places)] = each
    if not wholes:
        raise AssertionError("a loader has at least one batch")
    return wholes


@torch.no_grad()
def _rows(
    model: Embeds | nn.Module,
    function: Callable[[Tensor], tuple[Tensor, ...]],
    loader: Loader,
    view: View,
    *,
    seed: int = 0,
    half: bool = False,
    advance: Advance = no_advance,
    ranks: Ranks | None = None,
) -> Iterator[tuple[NDArray[np.int64], tuple[Tensor, ...]]]:
    """Yield places in the loader's order, and what the function makes of the examples there."""
    model.eval()
    ranks = ranks or Ranks()
    order = loader.examples
    again = loader.over(
        batch=batch_of(loader),
        seed=seed,
        shuffle=False,
        drop_last=False,
        chunk=None,
        transform=view,
        shard=ranks.shard,
    )
    again.seek(0)
    place = np.full(int(order.max()) + 1, -1, dtype=np.int64)
    place[order] = np.arange(len(order))
    for batch in again:
        with torch.autocast(loader.device.type, torch.bfloat16, enabled=half, cache_enabled=False):
            said = function(batch.views[0])
        places = place[ranks.gather(batch.indices).cpu().numpy()]
        yield places, tuple(ranks.gather(rows).float().cpu() for rows in said)
        advance(len(places))
