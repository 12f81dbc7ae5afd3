"""Losses for wrong labels as plain modules: SOP, SOP+, ELR and trust, in a training loop of your own.

The formulas are those of `prune4rel.learners`; what is kept for every example is a buffer here.
"""

from typing import Any, ClassVar, cast

import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn

from prune4rel.errors import InputError
from prune4rel.learners import Examples, Setting, make_learner
from prune4rel.torch.label_memory import as_labels


class _LearnerLoss(nn.Module):
    """A learner whose network is yours: it is shown logits, and keeps its numbers for every example as buffers."""

    learner_name: ClassVar[str]

    def __init__(
        self, labels: ArrayLike, n_classes: int | None = None, *, epochs: int = 1, seed: int = 0, **options: Any
    ) -> None:
        super().__init__()
        given = as_labels(labels, n_classes)
        C = int(given.max()) + 1 if n_classes is None else n_classes
        setting = Setting(cast("Any", nn.Identity), given, C, epochs=epochs, seed=seed)
        self.learner = make_learner(self.learner_name, setting, **options)
        self.register_buffer("labels", torch.from_numpy(given))
        self.parts: dict[str, Tensor] = {}

    def step(self) -> None:
        """Let what is kept for every example follow the gradients; the next call of the loss does it by itself."""
        self.learner.after_step(0)

    def _loss(self, rows: Tensor, *views: Tensor) -> Tensor:
        given = cast("Tensor", self.labels)
        rows = torch.as_tensor(rows, dtype=torch.int64, device=given.device)
        if any(logits.shape != (len(rows), self.learner.n_classes) for logits in views):
            shapes = ", ".join(str(tuple(logits.shape)) for logits in views)
            raise InputError(f"logits: have shape {shapes}; expected ({len(rows)}, {self.learner.n_classes})", "logits")
        self.step()
        (one,) = self.learner.passes(0)
        loss = one.loss((Examples(rows, views, given[rows], len(rows)),), ())
        self.parts = loss.parts
        return loss.total


class SOPLoss(_LearnerLoss):
    """SOP: every example has a sparse error term, which explains a wrong label away.

    The error terms are buffers of this module, one row an example, trained by plain gradient descent at rates of their
    own; your optimiser does not know them. They descend when the loss is called next.

    Parameters
    ----------
    labels
        (m,) given labels of all examples, in ``range(C)``.
    n_classes
        C; the largest label + 1 unless told.
    seed
        Of the error terms' tiny start.
    **options
        Of the learner ``sop``: `rate_u` and `rate_v`, learning rates of the error terms.

    Examples
    --------
    >>> loss = SOPLoss([0, 1, 1], 2, rate_u=10.0)
    >>> logits = torch.zeros(2, 2, requires_grad=True)
    >>> loss(logits, rows=[2, 0]).backward()
    >>> logits.grad.abs().sum() > 0
    tensor(True)
    """

    learner_name = "sop"

    def forward(self, logits: Tensor, rows: Tensor) -> Tensor:
        """Return the loss of a batch.

        Parameters
        ----------
        logits
            (B, C) of the network, for examples `rows`.
        rows
            (B,) which examples they are: numbers from 0 to m - 1, each at most once.
        """
        return self._loss(rows, logits)


class SOPPlusLoss(_LearnerLoss):
    """SOP+: SOP, and weak and strong views of an image are to agree, and predictions to be spread over the classes.

    Parameters
    ----------
    labels, n_classes, seed
        As of `SOPLoss`.
    **options
        Of the learner ``sop+``: `rate_u`, `rate_v`, and `consistency` and `balance`, weights of its two terms.

    Examples
    --------
    >>> loss = SOPPlusLoss([0, 1, 1], 2)
    >>> loss(torch.zeros(2, 2), torch.zeros(2, 2), rows=[0, 1]) > 0
    tensor(True)
    """

    learner_name = "sop+"

    def forward(self, weak: Tensor, strong: Tensor, rows: Tensor) -> Tensor:
        """Return the loss of a batch.

        Parameters
        ----------
        weak, strong
            (B, C) logits of a little and of a much augmented view of examples `rows`.
        rows
            (B,) which examples they are.
        """
        return self._loss(rows, weak, strong)


class ELRLoss(_LearnerLoss):
    """ELR: every example remembers the average of its past predictions, and new ones are drawn towards it.

    Parameters
    ----------
    labels, n_classes
        As of `SOPLoss`.
    **options
        Of the learner ``elr``: `beta`, how much of the memory remains each time, and `lambda_elr`, the weight of the
        regularisation.

    Examples
    --------
    >>> loss = ELRLoss([0, 1, 1], 2, beta=0.7)
    >>> _ = loss(torch.tensor([[2.0, 0.0]]), rows=[1])
    >>> loss.learner.targets[1].argmax()
    tensor(0)
    """

    learner_name = "elr"

    def forward(self, logits: Tensor, rows: Tensor) -> Tensor:
        """Return the loss of a batch; see `SOPLoss.forward`."""
        return self._loss(rows, logits)


class _NoLooks:
    """What a loss can be told of all examples: it has no network."""

    def __call__(self, network: nn.Module) -> Tensor:
        """Refuse."""
        del network
        raise InputError(
            "a loss has no network to ask for embeddings; choose a trust_by that goes by probabilities alone, such as "
            "memory or small-loss",
            "trust_by",
        )

    embed = __call__


class TrustLoss(_LearnerLoss):
    """Trust: every label is learnt as far as a memory of the network's own predictions agrees with it.

    Call `begin_epoch` before every epoch: whose label is trusted is decided there.

    Parameters
    ----------
    labels, n_classes, seed
        As of `SOPLoss`.
    epochs
        Epochs of the whole training.
    **options
        Of the learner ``trust``; `trust_by` only methods that go without embeddings.

    Examples
    --------
    >>> loss = TrustLoss([0, 1, 1], 2, epochs=10)
    >>> loss.begin_epoch(0)
    >>> loss(torch.zeros(2, 2), torch.zeros(2, 2), rows=[0, 1]) > 0
    tensor(True)
    """

    learner_name = "trust"

    def begin_epoch(self, epoch: int) -> None:
        """Decide whose label is trusted, where it is time; `epoch` counts from 0."""
        self.learner.begin_epoch(epoch, _NoLooks())

    def forward(self, weak: Tensor, strong: Tensor, rows: Tensor) -> Tensor:
        """Return the loss of a batch; see `SOPPlusLoss.forward`."""
        return self._loss(rows, weak, strong)
