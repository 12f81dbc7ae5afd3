"""Glister: the examples whose gradients lower the loss of trusted examples."""

from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from threadpoolctl import threadpool_limits

from prune4rel.blocks import map_blocks
from prune4rel.errors import InputError
from prune4rel.gradients import Gradients, gradients_of, minus_labels, on_grid
from prune4rel.greedy.groups import batches
from prune4rel.machine import Clock
from prune4rel.methods.checks import indices_below, number, whole
from prune4rel.methods.method import Outcome, Request, register_method
from prune4rel.methods.ranking import keep_best
from prune4rel.signals import Signals

LR = 1.0
ROUNDS = 50
SMALLEST = float(np.finfo(np.float32).tiny)


@register_method(
    "glister",
    needs=("embeddings", "probabilities"),
    cost="k picks, b at a time: k/b rounds of up to 3 n d C multiplications",
    citation="Killamsetty, Sivasubramanian, Ramakrishnan, Iyer: GLISTER: Generalization based Data Subset Selection "
    "for Efficient and Robust Learning. AAAI 2021",
    extends=True,
    in_parts="shares",
    points_at=("validation",),
)
def glister(
    signals: Signals,
    request: Request,
    *,
    validation: ArrayLike = "agreeing",
    lr: float = LR,
    batch: int | Literal["auto"] = "auto",
) -> Outcome:
    """Pick the examples whose gradients lower the loss of trusted examples the most.

    The gain of an example is <g_x, g_val>: to first order, a gradient step on it lowers the mean loss of the
    validation examples by that much times the learning rate, so the highest are kept. After every batch of picks
    the last layer takes their step, and g_val, the mean validation gradient, is computed anew. The score of an
    example is its first gain.

    Parameters
    ----------
    validation
        Indices of trusted examples; or ``"agreeing"``, those whose given label is the warm-up's first guess (all
        where there are none); or ``"all"``.
    lr
        Learning rate, 0 or more: the picks of an average class together move the last layer by lr times their mean
        gradient, divided by the mean of ‖z‖² + 1, so that the scale of the embeddings and the number of classes
        do not matter. 0 ranks by first gains; too large a rate makes the validation loss rise.
    batch
        Picks between two updates; ``"auto"`` is a fiftieth of all, rounded up.
    """
    lr = number(lr, "lr")
    at_once = -(-request.size // ROUNDS) if batch == "auto" else whole(batch, "batch")
    clock = Clock()
    trusted = _trusted(signals, validation)
    squared_length = 1.0 + float(signals.squared_norms["embeddings"].mean())
    step = lr * len(np.unique(signals.labels)) / (request.size * squared_length)
    picks = np.empty(request.size, dtype=np.int64)
    gains = np.empty(request.size)
    with threadpool_limits(1, "blas"), request.progress.task("picking", total=request.size) as advance:
        moved = np.zeros_like(gradients_of(signals, slice(1)).total())
        first_loss, direction = _validate(signals, trusted, moved)
        scores = now = _along(signals, direction)
        for start, stop in batches(request.size, at_once, len(request.first)):
            fresh = request.first
            if stop > len(fresh):
                asked = replace(request, size=stop, initial=picks[:start])
                fresh = keep_best(now, signals.labels, asked, keep="highest").indices[start:]
            picks[start:stop], gains[start:stop] = fresh, now[fresh]
            moved -= step * _total(signals, fresh)
            loss, direction = _validate(signals, trusted, moved)
            if stop < request.size:
                now = _along(signals, direction)
            advance(stop - start)
    clock.lap("picking")
    return Outcome(
        indices=picks,
        gains=gains,
        objective=first_loss - loss,
        scores=scores,
        options={
            "validation": validation if isinstance(validation, str) else "given",
            "lr": lr,
            "batch": at_once,
        },
        stats={
            "validation_examples": len(trusted),
            "validation_loss_before": first_loss,
            "validation_loss_after": loss,
            "seconds": clock.laps,
        },
        notes=("The picks' steps overshot: the validation loss rose; a smaller lr is better.",) * (loss > first_loss),
    )


def _trusted(signals: Signals, validation: ArrayLike) -> NDArray[np.int64]:
    """(v,) indices of the validation examples."""
    n = len(signals)
    if isinstance(validation, str):
        if validation not in ("agreeing", "all"):
            raise InputError(f"validation must be 'agreeing', 'all' or a list of indices, not {validation!r}")
        agreeing = _agreeing(signals) if validation == "agreeing" else np.empty(0, dtype=np.int64)
        return agreeing if agreeing.size else np.arange(n)
    if np.ndim(validation) != 1 or np.size(validation) == 0 or np.asarray(validation).dtype.kind not in "iu":
        raise InputError("validation must be 'agreeing', 'all' or a list of at least one index")
    return indices_below(validation, "validation", n)


def _agreeing(signals: Signals) -> NDArray[np.int64]:
    probabilities = signals.need("probabilities")

    def block(start: int, stop: int) -> NDArray[np.int64]:
        same = probabilities[start:stop].argmax(axis=1) == signals.labels[start:stop]
        return start + np.flatnonzero(same)

    return np.concatenate(map_blocks(block, len(signals), signals.n_classes))


def _width(signals: Signals) -> int:
    """Return how many numbers a block holds for each example."""
    return int(signals.need("embeddings").shape[1]) + signals.n_classes


def _validate(
    signals: Signals, trusted: NDArray[np.int64], moved: NDArray[np.float64]
) -> tuple[float, NDArray[np.float64]]:
    """Mean loss of the validation examples after the last layer moved, and its (C, d + 1) gradient."""
    from scipy.special import log_softmax  # noqa: PLC0415 - a third of a second that other methods need not spend

    probabilities = signals.need("probabilities")

    def block(start: int, stop: int) -> tuple[float, NDArray[np.float64]]:
        rows = trusted[start:stop]
        labels, features = signals.labels[rows], gradients_of(signals, rows).features
        logits = np.log(np.maximum(probabilities[rows], SMALLEST, dtype=np.float64)) + features @ moved.T
        log_probabilities = log_softmax(logits, axis=1)
        loss = -float(log_probabilities[np.arange(len(rows)), labels].sum())
        return loss, Gradients(minus_labels(np.exp(log_probabilities), labels), features).total()

    parts = map_blocks(block, len(trusted), _width(signals))
    return sum(loss for loss, _ in parts) / len(trusted), np.sum([total for _, total in parts], axis=0) / len(trusted)


def _along(signals: Signals, direction: NDArray[np.float64]) -> NDArray[np.float64]:
    """(n,) inner products of all gradients with one matrix."""

    def block(start: int, stop: int) -> NDArray[np.float64]:
        return gradients_of(signals, slice(start, stop)).along(direction)

    return on_grid(np.concatenate(map_blocks(block, len(signals), _width(signals))))


def _total(signals: Signals, rows: NDArray[np.int64]) -> NDArray[np.float64]:
    """(C, d + 1) summed gradients of some examples."""
    parts = map_blocks(lambda a, b: gradients_of(signals, rows[a:b]).total(), len(rows), _width(signals))
    summed: NDArray[np.float64] = np.sum(parts, axis=0)
    return summed
