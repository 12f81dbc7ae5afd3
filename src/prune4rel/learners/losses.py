"""Losses that learners share, and right labels told from wrong by them.

Each loss is a rank's share of the mean over the whole batch.
"""

import warnings
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from prune4rel.errors import InputError

HALVES = (torch.float16, torch.bfloat16)


class Aims(NamedTuple):
    """What the examples of a batch are fitted to, and how much.

    Parameters
    ----------
    trusted
        (B,) how much the given label counts: 1 where it is trusted, 0 where not.
    guesses
        (B,) int64 class that the strong view learns.
    believed
        (B,) how much that counts.
    """

    trusted: Tensor
    guesses: Tensor
    believed: Tensor


def widened(values: Tensor) -> Tensor:
    """Return half-precision numbers as float32, and others as they are.

    >>> [widened(torch.ones(1, dtype=kind)).dtype for kind in (torch.bfloat16, torch.float64)]
    [torch.float32, torch.float64]
    """
    return values.float() if values.dtype in HALVES else values


def one_hot(labels: Tensor, n_classes: int) -> Tensor:
    """Turn labels (B,) into (B, C) of zeros and ones.

    >>> one_hot(torch.tensor([1]), 3)
    tensor([[0., 1., 0.]])
    """
    return functional.one_hot(labels, n_classes).float()


def cross_entropy(logits: Tensor, labels: Tensor, count: int) -> Tensor:
    """Sum of -log p of the given labels (B,), over `count`."""
    return functional.cross_entropy(widened(logits), labels, reduction="sum") / count


def weighted_cross_entropy(logits: Tensor, labels: Tensor, weights: Tensor, count: int) -> Tensor:
    """Sum of -log p of the labels (B,), each times its weight (B,), over `count`.

    >>> weighted_cross_entropy(torch.zeros(2, 2), torch.tensor([0, 1]), torch.tensor([1.0, 0.0]), 2)
    tensor(0.3466)
    """
    return (functional.cross_entropy(widened(logits), labels, reduction="none") * weights).sum() / count


def missed(strong: Tensor, aims: Aims, count: int) -> Tensor:
    """Sum of -log p of the classes that strong views (B, C) learn, each as much as it counts, over `count`."""
    return weighted_cross_entropy(strong, aims.guesses, aims.believed, count)


def soft_cross_entropy(logits: Tensor, targets: Tensor, count: int) -> Tensor:
    """Sum of -targets · log p, over `count`; targets (B, C) are distributions.

    >>> soft_cross_entropy(torch.zeros(1, 2), torch.tensor([[0.5, 0.5]]), 1)
    tensor(0.6931)
    """
    return -(targets * torch.log_softmax(widened(logits), dim=1)).sum() / count


def consistency(weak: Tensor, strong: Tensor, count: int) -> Tensor:
    """Sum of KL(p_weak ‖ p_strong) over `count`; only the strong view gets gradients."""
    target = torch.log_softmax(widened(weak.detach()), dim=1)
    log_p = torch.log_softmax(widened(strong), dim=1)
    return functional.kl_div(log_p, target, reduction="sum", log_target=True) / count


def negative_entropy(logits: Tensor, count: int) -> Tensor:
    """Sum of p · log p over `count`; lowest, -log C, where nothing is certain.

    >>> negative_entropy(torch.zeros(1, 2), 1)
    tensor(-0.6931)
    """
    log_p = torch.log_softmax(widened(logits), dim=1)
    return (log_p.exp() * log_p).sum() / count


Floats = NDArray[np.float64]


def clean_probabilities(losses: Floats, seed: int) -> Floats:
    """Return how likely each example belongs to the component with the lower losses.

    Losses are scaled to 0 to 1 before two Gaussians are fitted to them. An example whose loss is no finite number
    cannot be trusted: 0. Where all losses are equal nothing speaks against anybody: 1.

    Parameters
    ----------
    losses
        (m,) losses of the given labels.
    seed
        Of the fit's start.

    Returns
    -------
    (m,) in 0 to 1, higher is more likely labelled right.

    Examples
    --------
    >>> clean_probabilities(np.array([0.1, 0.2, 0.1, 2.9, 3.0, 0.15]), seed=0).round(3)
    array([1., 1., 1., 0., 0., 1.])
    """
    from sklearn.exceptions import ConvergenceWarning  # noqa: PLC0415 - a second that other learners need not take
    from sklearn.mixture import GaussianMixture  # noqa: PLC0415 - likewise

    finite = np.isfinite(losses)
    if not finite.any():
        raise InputError(
            "no example has a finite loss: the network has diverged; lower the learning rate, or clip gradients"
        )
    known = losses[finite]
    span = float(known.max() - known.min())
    clean = np.zeros(len(losses))
    if span == 0:
        clean[finite] = 1.0
        return clean
    scaled = ((known - known.min()) / span).reshape(-1, 1)
    mixture = GaussianMixture(n_components=2, max_iter=10, tol=1e-2, reg_covar=5e-4, random_state=seed)
    with warnings.catch_warnings():
        # ten rounds are what the authors allow, whether they suffice or not
        warnings.simplefilter("ignore", ConvergenceWarning)
        mixture.fit(scaled)
    clean[finite] = mixture.predict_proba(scaled)[:, int(mixture.means_.argmin())]
    return clean


def most_trusted(scores: Floats, trusted: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return who is trusted; where nobody is, the half with the highest scores, so that there is something to learn.

    Parameters
    ----------
    scores
        (m,), higher is more trusted; equal ones go by their order.
    trusted
        (m,) who passed the test.

    Examples
    --------
    >>> most_trusted(np.array([0.1, 0.4, 0.3]), np.array([False, False, False]))
    array([False,  True,  True])
    """
    if trusted.any():
        return trusted
    half = np.zeros(len(scores), dtype=np.bool_)
    half[np.argsort(-scores, kind="stable")[: (len(scores) + 1) // 2]] = True
    return half
