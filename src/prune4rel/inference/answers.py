"""What a model says of many examples."""

import math
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, Protocol, TypedDict, Unpack

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from prune4rel.augment import View
from prune4rel.loading import Loader
from prune4rel.loading.ranks import Ranks
from prune4rel.progress import Advance, no_advance

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
    >>> from prune4rel.inference.views import make_views
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
