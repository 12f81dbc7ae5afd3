"""Losses that learners share. Each gives a rank's share of the mean over the whole batch."""

import torch
from torch import Tensor
from torch.nn import functional

HALVES = (torch.float16, torch.bfloat16)


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
