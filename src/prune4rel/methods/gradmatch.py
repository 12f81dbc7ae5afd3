"""GradMatch: the weighted examples whose gradients add up to the gradient of all."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from prune4rel.gradients import Gradients, gradients_of, on_grid
from prune4rel.greedy.groups import Part, batches, merged, split
from prune4rel.machine import Clock, threads
from prune4rel.methods.checks import number, whole
from prune4rel.methods.method import Outcome, Request, register_method
from prune4rel.signals import Signals

CHUNK = 10_000
ROUNDS = 50
RIDGE = 0.5
PRECISION = 1e-8


@register_method(
    "gradmatch",
    needs=("embeddings", "probabilities"),
    cost="every class of m examples with k picks, b at a time: k/b rounds of m d C + some tens of k² multiplications",
    citation="Killamsetty, Sivasubramanian, Ramakrishnan, De, Iyer: GRAD-MATCH: Gradient Matching based Data Subset "
    "Selection for Efficient Deep Model Training. ICML 2021",
    extends=True,
    in_parts="shares",
)
def gradmatch(
    signals: Signals,
    request: Request,
    *,
    ridge: float = RIDGE,
    batch: int | Literal["auto"] = "auto",
    chunk: int = CHUNK,
) -> Outcome:
    """Match the summed last-layer gradient of every class by a few weighted ones.

    Minimises, class by class, ‖Σ_j w_j g_j - Σ_i g_i‖² + λ‖w‖² over w ≥ 0 by orthogonal matching pursuit: pick
    the examples whose gradients have the highest inner product with what is left to match, solve for all weights
    anew, repeat. Classes get picks in proportion to their size, or equally many where balanced. The score of an
    example is its inner product with the summed gradient of its class, highest kept.

    Parameters
    ----------
    ridge
        λ in units of the mean squared gradient length of the class, 0 or more; larger values spread the weights.
    batch
        Picks between two solves. 1 is classic matching pursuit; ``"auto"`` is a fiftieth of the class's picks,
        rounded up, and says approximate where that is more than 1.
    chunk
        Larger classes are cut at random into pieces of at most this many examples, each matched on its own.
        Approximate; the seed matters then, and only then.
    """
    ridge, chunk = number(ridge, "ridge"), whole(chunk, "chunk")
    batch = batch if batch == "auto" else whole(batch, "batch")
    clock = Clock()
    balanced, first = request.balanced, request.first
    parts = split(signals.labels, request.size, balanced=balanced, chunk=chunk, seed=request.seed, initial=first)
    scores = np.empty(len(signals))
    with request.progress.task("matching", total=request.size) as advance:

        def match(part: Part) -> _Match:
            step = -(-part.budget // ROUNDS) if batch == "auto" else batch
            result = _match(gradients_of(signals, part.members), part, ridge, max(1, step))
            scores[part.members] = result.pulls
            advance(part.budget)
            return result

        with threadpool_limits(1, "blas"), ThreadPoolExecutor(min(threads(), len(parts))) as pool:
            matches = list(pool.map(match, parts))
    clock.lap("matching")
    picks = [part.members[found.places] for part, found in zip(parts, matches, strict=True)]
    order = merged(parts, picks, [found.gains for found in matches], balanced=balanced, initial=first)
    weights = np.concatenate([found.weights for found in matches])[order]
    notes = _notes(parts, signals, max(found.batch for found in matches))
    target = sum(found.target for found in matches)
    return Outcome(
        indices=np.concatenate(picks)[order],
        gains=np.concatenate([found.gains for found in matches])[order],
        objective=float(sum(found.gains.sum() for found in matches)),
        scores=scores,
        weights=weights,
        options={"ridge": ridge, "batch": batch, "chunk": chunk},
        stats={
            "approximate": bool(notes),
            "unmatched": sum(found.unmatched for found in matches) / target if target else 0.0,
            "zero_weights": float((weights == 0).mean()),
            "seconds": clock.laps,
        },
        notes=notes,
    )


def _notes(parts: list[Part], signals: Signals, most_at_once: int) -> tuple[str, ...]:
    notes = []
    if most_at_once > 1:
        notes.append(
            f"Approximate: up to {most_at_once} picks were made between two solves; batch=1 is classic matching "
            "pursuit and takes longer."
        )
    if len(parts) > len(np.unique(signals.labels)):
        notes.append(f"Approximate: large classes were cut at random, into {len(parts)} pieces in all; see chunk.")
    return tuple(notes)


@dataclass(frozen=True)
class _Match:
    """What one part gave.

    `places` of the picks in their part, `gains` and `weights` of the picks, `pulls` (m,) everybody's inner product
    with the summed gradient, squared length of that sum (`target`) and of what is left of it (`unmatched`), and
    how many picks were made at once (`batch`).
    """

    places: NDArray[np.int64]
    gains: NDArray[np.float64]
    weights: NDArray[np.float64]
    pulls: NDArray[np.float64]
    target: float
    unmatched: float
    batch: int


def _match(gradients: Gradients, part: Part, ridge: float, batch: int) -> _Match:
    budget, first = part.budget, part.first
    target = gradients.total()
    residual = target
    first_pulls = pulls = on_grid(gradients.along(target))
    unit = float(gradients.squares().mean()) or 1.0
    places = np.empty(budget, dtype=np.int64)
    gains = np.empty(budget)
    weights = np.zeros(budget)
    hessian = np.empty((budget, budget))
    free = np.ones(len(gradients), dtype=np.bool_)
    value = 0.0
    for start, stop in batches(budget, batch, len(first)):
        candidates = np.flatnonzero(free)
        best = candidates[np.argsort(-pulls[candidates], kind="stable")[: stop - start]]
        fresh = first if stop <= len(first) else best
        free[fresh] = False
        places[start:stop] = fresh
        picked = gradients[places[:stop]]
        hessian[start:stop, :stop] = picked[start:].inner(picked) / unit
        hessian[:start, start:stop] = hessian[start:stop, :start].T
        hessian[np.arange(start, stop), np.arange(start, stop)] += ridge
        weights[:stop] = _solve(hessian[:stop, :stop], first_pulls[places[:stop]] / unit, weights[:stop])
        residual = target - picked.total(weights[:stop])
        pulls = on_grid(gradients.along(residual))
        before = value
        cost = np.square(residual).sum() + ridge * unit * np.square(weights).sum()
        value = max(before, float(np.square(target).sum() - cost))
        gains[start:stop] = (value - before) / (stop - start)
    return _Match(
        places,
        gains,
        weights,
        first_pulls,
        float(np.square(target).sum()),
        float(np.square(residual).sum()),
        min(batch, budget),
    )


def _solve(hessian: NDArray[np.float64], pulls: NDArray[np.float64], start: NDArray[np.float64]) -> NDArray[np.float64]:
    """(k,) minimiser of w·Hw / 2 - w·pulls over w ≥ 0, searched from the last weights on.

    Where the search stops short of it, as it may among nearly parallel gradients, the slower way is taken.
    """
    from scipy.optimize import Bounds, minimize  # noqa: PLC0415 - a third of a second that other methods need not spend

    def value_and_slope(weights: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        product = hessian @ weights
        return float(weights @ (0.5 * product - pulls)), product - pulls

    scale = float(np.abs(pulls).max()) or 1.0
    found = minimize(
        value_and_slope,
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=Bounds(0.0, np.inf),
        options={"ftol": 0.0, "gtol": PRECISION * scale, "maxiter": 10 * len(start) + 100},
    )
    weights: NDArray[np.float64] = found.x
    slope = hessian @ weights - pulls
    if np.abs(np.where(weights > 0.0, slope, np.minimum(slope, 0.0))).max() > 100 * PRECISION * scale:
        return _solve_surely(hessian, pulls)
    return weights


def _solve_surely(hessian: NDArray[np.float64], pulls: NDArray[np.float64]) -> NDArray[np.float64]:
    """(k,) the same minimiser by active sets, in time k³."""
    from scipy.linalg import eigh  # noqa: PLC0415 - as above
    from scipy.optimize import nnls  # noqa: PLC0415 - likewise

    values, vectors = eigh(hessian)
    kept = values > values[-1] * len(values) * np.finfo(np.float64).eps
    roots = np.sqrt(values[kept])
    factor = roots[:, None] * vectors[:, kept].T
    weights: NDArray[np.float64] = nnls(factor, vectors[:, kept].T @ pulls / roots, maxiter=10 * len(pulls) + 100)[0]
    return weights
