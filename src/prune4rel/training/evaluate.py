"""What a model says of many examples, and how often it is right."""

import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

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

Labels = NDArray[np.int64]
Answer = Callable[[Tensor], tuple[Tensor, Tensor | None]]


class Answers(NamedTuple):
    """What a model says of n examples: logits (n, C) and embeddings (n, d), float32 on the CPU."""

    logits: Tensor
    embeddings: Tensor | None


class Said(NamedTuple):
    """What a model says of one batch: places (B,) of the examples in the loader's order, logits, embeddings."""

    places: NDArray[np.int64]
    logits: Tensor
    embeddings: Tensor | None


def batch_of(loader: Loader) -> int:
    """Return how many examples are asked about at a time."""
    each, wanted = math.prod(loader.shape), EVALUATION_BATCH
    if loader.device.type == "cuda":
        wanted = max(wanted, min(EVALUATION_BATCH_ON_GPU, SMALL_NUMBERS // each))
    return max(1, min(wanted, MOST_NUMBERS // each))


@torch.no_grad()
def answers(
    model: nn.Module,
    answer: Answer,
    loader: Loader,
    view: View,
    *,
    seed: int = 0,
    half: bool = False,
    advance: Advance = no_advance,
    ranks: Ranks | None = None,
) -> Iterator[Said]:
    """Ask a model about all examples of a loader, batch by batch, in evaluation mode.

    Parameters
    ----------
    model
        Put into evaluation mode.
    answer
        Turns inputs (B, ...) into logits and, if wanted, embeddings.
    loader
        Over the examples, which come in its order, `batch_of` it at a time; broken ones do not come.
    view
        As what they are shown.
    seed
        Of the view.
    half
        Mixed precision.
    ranks
        The processes to share the work with, all of which get all answers; they have to ask together.
    """
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
            said, embedded = answer(batch.views[0])
        places = place[ranks.gather(batch.indices).cpu().numpy()]
        logits = ranks.gather(said).float().cpu()
        yield Said(places, logits, None if embedded is None else ranks.gather(embedded).float().cpu())
        advance(len(places))


def ask(model: nn.Module, answer: Answer, loader: Loader, view: View, **options: Any) -> Answers:
    """Ask as `answers` does, and put what is said together, in the loader's order; NaN for broken examples."""
    return collect(answers(model, answer, loader, view, **options), len(loader.examples))


def collect(parts: Iterable[Said], n: int) -> Answers:
    """Put answers about `n` examples together; NaN for those that did not come."""
    logits: Tensor | None = None
    embeddings: Tensor | None = None
    for places, said, embedded in parts:
        rows = torch.from_numpy(places)
        logits = _put(logits, rows, said, n)
        if embedded is not None:
            embeddings = _put(embeddings, rows, embedded, n)
    if logits is None:
        raise AssertionError("a loader has at least one batch")
    return Answers(logits, embeddings)


def _put(whole: Tensor | None, rows: Tensor, values: Tensor, n: int) -> Tensor:
    if whole is None:
        whole = torch.full((n, values.shape[1]), torch.nan)
    whole[rows] = values
    return whole


def accuracy(logits: Tensor, labels: Labels) -> float | None:
    """Share of examples whose largest logit is that of their label; None where there are none.

    Examples that could not be read, whose logits are NaN, do not count.

    >>> accuracy(torch.tensor([[1.0, 0.0], [1.0, 0.0], [torch.nan, torch.nan]]), np.array([0, 1, 0]))
    0.5
    """
    known = ~torch.isnan(logits).any(1).numpy()
    return float((logits.argmax(1).numpy() == labels)[known].mean()) if known.any() else None


def self_correction(logits: Tensor, given: Labels, clean: Labels) -> float | None:
    """Share of the wrongly labelled examples that the model gives their true label; None where none is wrong.

    >>> logits = torch.tensor([[1.0, 0.0], [1.0, 0.0], [1.0, 0.0]])
    >>> self_correction(logits, given=np.array([1, 0, 0]), clean=np.array([0, 1, 0]))
    0.5
    """
    wrong = given != clean
    return accuracy(logits[torch.from_numpy(wrong)], clean[wrong])
