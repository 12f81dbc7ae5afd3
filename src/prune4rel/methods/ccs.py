"""CCS, coverage-centric selection: a little of every difficulty, after the hardest are dropped."""

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from prune4rel.engines.engine import Engine
from prune4rel.errors import InputError
from prune4rel.greedy.groups import Groups
from prune4rel.methods.checks import whole
from prune4rel.methods.method import Outcome, Request, register_method
from prune4rel.methods.ranking import keep_best, rounds
from prune4rel.signals import Floats, Signals


@register_method(
    "ccs",
    needs=("aum|probabilities",),
    cost="one pass over the probabilities, then one sort",
    citation="Zheng, Liu, Lai, Prakash: Coverage-centric Coreset Selection for High Pruning Rates. ICLR 2023",
    asks=("rows",),
    extends=True,
    in_parts="shares",
    seeded=True,
)
def ccs(signals: Signals, request: Request, *, beta: float = 0.1, strata: int = 50) -> Outcome:
    """Drop the examples with the lowest margin, then draw evenly from all ranges of it.

    score = area under the margin, p(given label) minus the highest other p summed over epochs: the signal `aum`
    where given, else the margin of the one warm-up. Gains are minus the place in the order of drawing. With
    balanced, every class is a data set of its own.

    Parameters
    ----------
    beta
        Share of the examples, those with the lowest scores, that is dropped; they are only taken when nothing
        else is left, highest score first.
    strata
        Number of equally wide ranges of the score. Each gets the same budget, what a small one leaves over goes
        to the others, and examples inside are drawn at random.
    """
    whole(strata, "strata")
    if not (isinstance(beta, int | float | np.number) and 0 <= beta < 1):
        raise InputError(f"beta must be at least 0 and below 1, not {beta!r}")
    scores = aum_of(request.serving(signals))
    groups = Groups.make(len(signals), signals.labels if request.balanced else None)
    rng = np.random.default_rng(request.seed)
    place = np.empty(len(signals))
    dropped = np.zeros(len(signals), dtype=bool)
    for g in np.flatnonzero(groups.sizes):
        members = groups.members[groups.starts[g] :][: groups.sizes[g]]
        order = members[coverage_order(scores[members], beta=beta, strata=strata, rng=rng)]
        place[order] = np.arange(len(order))
        dropped[order[len(order) - _count(beta, len(order)) :]] = True
    outcome = keep_best(0.0 - place, signals.labels, request, keep="highest", beta=float(beta), strata=int(strata))
    late = int(dropped[outcome.indices].sum())
    note = f"{late} of the picks are among the {beta:.0%} with the lowest scores, for there were no others left."
    return replace(
        outcome, scores=scores, stats=outcome.stats | {"dropped_but_taken": late}, notes=(note,) if late else ()
    )


def aum_of(engine: Engine) -> NDArray[np.float64]:
    """(n,) area under the margin, or the margin of one warm-up, higher is easier; low ones are often mislabelled.

    >>> from prune4rel.engines.local import LocalEngine
    >>> aum_of(LocalEngine(Signals(labels=[0, 1], probabilities=[[0.75, 0.25], [0.75, 0.25]])))
    array([ 0.5, -0.5])
    """
    aum = engine.signals.aum
    if aum is None:
        return engine.per_example(label_margins, ("probabilities", "labels"))
    if (bad := np.flatnonzero(np.isinf(aum))).size:
        raise InputError(f"aum: row {bad[0]} is infinite; strata of equal width need finite scores", "aum")
    return np.asarray(aum, dtype=np.float64)


def label_margins(probabilities: Floats, labels: NDArray[np.int64]) -> NDArray[np.float64]:
    """(n,) probability of the given label minus the highest other one, -1 to 1, higher is easier.

    >>> label_margins(np.array([[0.5, 0.25, 0.25], [0, 1, 0]]), np.array([0, 0]))
    array([ 0.25, -1.  ])
    """
    others = np.array(probabilities, dtype=np.float64)
    at_label = np.arange(len(labels)), labels
    given = others[at_label]
    others[at_label] = 0
    difference: NDArray[np.float64] = given - others.max(axis=1)
    return difference


def coverage_order(
    scores: NDArray[np.float64], *, beta: float, strata: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """(n,) indices in an order of which every beginning is a coverage-centric selection.

    Even budgets, the smallest stratum filled first and the rest shared by the others, are the same as rounds in
    which every stratum that is not empty gives one example, the largest stratum first (the higher among equals).

    >>> scores = np.array([0.0, 0.9, 0.91, 0.92, 0.1])
    >>> coverage_order(scores, beta=0.2, strata=2, rng=np.random.default_rng(0))
    array([1, 4, 3, 2, 0])
    """
    highest_first = np.argsort(-scores, kind="stable")
    kept = rng.permutation(highest_first[: len(scores) - _count(beta, len(scores))])
    stratum = strata_of(scores[kept], strata)
    _, present, sizes = np.unique(stratum, return_inverse=True, return_counts=True)
    drawn = kept[np.lexsort((-stratum, -sizes[present], rounds(stratum)))]
    return np.concatenate([drawn, highest_first[len(kept) :]])


def strata_of(scores: NDArray[np.float64], strata: int) -> NDArray[np.int64]:
    """(n,) which of the equally wide ranges between the lowest and the highest score each falls into, from 0.

    >>> strata_of(np.array([0.0, 1.0, 4.9, 5.0, 10.0]), 2)
    array([0, 0, 0, 1, 1])
    """
    low, high = scores.min(), scores.max()
    if low == high:
        return np.zeros(len(scores), dtype=np.int64)
    share = (scores - low) / (high - low)
    stratum: NDArray[np.int64] = np.minimum(share * strata, strata - 1).astype(np.int64)
    return stratum


def _count(beta: float, n: int) -> int:
    """Return how many of n examples are dropped, rounded down, never all."""
    return min(n - 1, math.floor(beta * n + 1e-9))
