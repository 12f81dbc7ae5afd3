"""Screening: a short product that rules out most pairs for certain.

A unit vector a splits into its part p in a k-dimensional subspace and a remainder of length r. For two unit
vectors, by Cauchy-Schwarz,

    cosine(a, b) <= <p_a, p_b> + r_a r_b = <(p_a, r_a), (p_b, r_b)>,

so a product of length k + 1 instead of d bounds every cosine from above. Pairs whose bound stays below the
threshold are no neighbours; only the others are computed in full. The subspace is the leading one of a sample
of the rows, and k is chosen by counting, on other sampled rows, how many pairs each k would let through.
"""

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from prune4rel.machine import threads

Screening = Literal["auto", "none", "projection"]
SCREENINGS: tuple[str, ...] = get_args(Screening)

WIDTHS = (15, 31, 63, 95, 127, 191, 255, 319, 383, 511, 639, 767, 1023)
"""With the remainder's length they are what units for short numbers take at once."""
FLOAT32 = 2.0**-24

ONE_THREAD_DIM = 768
"""Length of rows up to which one thread settles the screen. More would save it a few milliseconds, and keep a core busy
for a tenth of a second afterwards, which is needed for what comes next. Longer rows take four threads at the most:
small factorisations only lose on more."""


class Rounding(NamedTuple):
    """What numbers lose on their way into a product, and it on its way out.

    A coordinate is off by at most `relative` of itself, or by `tiny`; the product by `result` of a unit.
    """

    relative: float
    tiny: float
    result: float


NO_ROUNDING = Rounding(0.0, 0.0, 0.0)
FLOAT16 = Rounding(2.0**-11, 2.0**-25, 2.0**-11)
BFLOAT16 = Rounding(2.0**-8, 2.0**-126, 2.0**-8)
"""Processors take subnormal numbers for zero."""


@dataclass(frozen=True)
class Screen:
    """How rows enter the screening product, and how far that product can fall short of the cosine.

    Parameters
    ----------
    basis
        (d, k) orthonormal columns, or None where whole unit vectors are multiplied.
    slack
        Bound on the rounding error of a projected unit vector's coordinates, as a length.
    dim
        d, the length of the rows.
    """

    basis: NDArray[np.float32] | None
    slack: float
    dim: int

    @property
    def width(self) -> int:
        """Length of the vectors that are multiplied."""
        return self.dim if self.basis is None else self.basis.shape[1] + 1

    def apply(self, unit: NDArray[np.float32]) -> NDArray[np.float32]:
        """(m, width) rows for the product, from (m, d) unit rows."""
        if self.basis is None:
            return unit
        part = unit @ self.basis
        return np.concatenate([part, self.rest(part)[:, None]], axis=1)

    def rest(self, part: NDArray[np.float32]) -> NDArray[np.float32]:
        """(m,) lengths of what projections (m, k) leave of unit rows, or somewhat more."""
        inside = np.einsum("ij,ij->i", part, part, dtype=np.float64)
        rest: NDArray[np.float64] = np.sqrt(np.maximum(0.0, 1.0 - inside) + 3 * self.slack)
        return rest.astype(np.float32)

    def margin(self, rounding: Rounding = NO_ROUNDING) -> float:
        """Proven bound on cosine - product, for products in float32, of operands and with results rounded like this.

        Three sources, each bounded for any order of summation: coordinates that are off by `slack`, operands
        rounded to the product's type, and the rounding of the sum itself.
        """
        length = 1 + 4 * self.slack
        summation = (self.width + 8) * FLOAT32 * length**2
        total = 2 * self.slack * (1 + 2 * self.slack) + summation + 16 * FLOAT32
        if rounding != NO_ROUNDING:
            rounded = rounding.relative * length + rounding.tiny * math.sqrt(self.width)
            total += 2 * rounded * length + rounded**2 + 3 * summation + rounding.result
        return total


def whole(dim: int) -> Screen:
    """Screen by the whole vectors: the product is the cosine itself, up to rounding."""
    return Screen(basis=None, slack=0.0, dim=dim)


def choose_screen(
    sample: NDArray[np.float32],
    cosine: float,
    mode: Screening,
    *,
    check_cost: float,
    rounding: Rounding = NO_ROUNDING,
) -> Screen:
    """Find the cheapest screen for pairs with at least this cosine.

    Parameters
    ----------
    sample
        (m, d) unit rows drawn at random.
    check_cost
        What computing one candidate again costs, in units of one full product of a pair.
    rounding
        Of the products.
    """
    dim = sample.shape[1]
    full = whole(dim)
    fitted, judged = sample[::2], sample[1::2]  # other rows than the fitted ones: those fit too well
    m = len(judged)
    widths = [k for k in WIDTHS if k <= dim // 3 and k <= m]
    if mode == "none" or not widths or cosine <= 0:
        return full
    with threadpool_limits(1 if dim <= ONE_THREAD_DIM else min(4, threads()), "blas"):
        basis = _leading_directions(fitted, widths[-1])
        skew = float(np.abs(basis.T.astype(np.float64) @ basis - np.eye(basis.shape[1])).max())
        edges = np.count_nonzero(judged @ judged.T >= cosine)
        best, best_cost = full, 1.0 if mode == "auto" else math.inf
        parts, products, begin = judged @ basis, np.zeros((m, m), dtype=np.float32), 0
        for k in widths:
            slack = dim * FLOAT32 * math.sqrt(k) + k * skew
            screen = Screen(basis=np.ascontiguousarray(basis[:, :k]), slack=slack, dim=dim)
            products += parts[:, begin:k] @ parts[:, begin:k].T  # those of a shorter screen, and what comes to them
            begin = k
            rest = screen.rest(parts[:, :k])
            passed = np.count_nonzero(products + rest[:, None] * rest >= cosine - screen.margin(rounding))
            cost = screen.width / dim + check_cost * max(0, int(passed - edges)) / (m * m)
            if cost < best_cost:
                best, best_cost = screen, cost
    return best


def _leading_directions(sample: NDArray[np.float32], k: int) -> NDArray[np.float32]:
    """(d, k) orthonormal columns, strongest first, by subspace iteration on the sample."""
    rng = np.random.default_rng(0)
    guess = rng.standard_normal((sample.shape[1], k), dtype=np.float32)
    basis, _ = np.linalg.qr(sample.T @ (sample @ guess))
    coordinates = sample @ basis
    _, directions = np.linalg.eigh(coordinates.T @ coordinates)
    leading: NDArray[np.float32] = basis @ directions[:, ::-1]
    return leading
