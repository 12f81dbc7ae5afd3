"""What `similar` does, on a GPU: candidates by products in single precision, among everybody or in cells.

Like the rest of what works on a GPU it also runs on PyTorch's CPU device, where it is tested.
"""

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray

from prune4rel.blocks import spans
from prune4rel.judging.similar import CANDIDATES, GRID, JUDGED, REDUCED, ROUNDING, SAMPLE, SHARE, Similar
from prune4rel.neighbours.cells import cell_count, cut_for, find_centres, training_rows
from prune4rel.neighbours.nearest import MOST_CELLS
from prune4rel.neighbours.precision import full_precision
from prune4rel.progress import Advance, no_advance

QUERIES, COLUMNS = 8192, 131_072
"""Rows whose neighbours are looked for at once, and among how many."""

ALL_ROWS = 100_000
"""Rows up to which everyone is compared with everybody; beyond that, in leading principal components, in cells."""

AT_ONCE = 2**28
"""Numbers that are held at once."""


def find_similar_there(units: torch.Tensor, k: int, advance: Advance = no_advance) -> Similar:
    """Find everyone's k nearest others among (n, d) rows of length one.

    Candidates are those whose products are largest; they are ranked by their cosine, as on a CPU.
    """
    n, width = units.shape
    k = min(k, n - 1)
    indices, cosines = np.empty((n, k), dtype=np.int64), np.empty((n, k), dtype=np.float32)
    if k == 0:
        return Similar(indices, cosines, exact=True)
    wanted = min(n, CANDIDATES * k + 1)
    with full_precision():
        if n <= ALL_ROWS:
            parts = ((*span, nearest_of(units[slice(*span)], units, wanted)) for span in spans(n, QUERIES))
        else:
            places = likely_places(units if width <= REDUCED else _reduced(units), wanted)
            parts = ((*span, places[slice(*span)].long()) for span in spans(n, QUERIES))
        for start, stop, candidates in parts:
            indices[start:stop], cosines[start:stop] = _ranked(units, start, candidates, k)
            advance(stop - start)
        return Similar(indices, cosines, exact=False, found=_share_found(units, cosines))


def nearest_of(queries: torch.Tensor, rows: torch.Tensor, wanted: int) -> torch.Tensor:
    """(m, wanted) which of (n, d) rows have the largest products with each of (m, d) queries, in no order."""
    best = queries.new_full((len(queries), wanted), -torch.inf)
    places = torch.full(best.shape, -1, dtype=torch.int64, device=best.device)
    for start, stop in spans(len(queries), QUERIES):
        for first, last in spans(len(rows), COLUMNS):
            numbers = torch.arange(first, last, device=rows.device)
            _keep(best, places, slice(start, stop), queries[start:stop] @ rows[first:last].T, numbers)
    return places


def likely_places(rows: torch.Tensor, wanted: int, share: float = SHARE, seed: int = 0) -> torch.Tensor:
    """(n, wanted) int32 most of the rows that have the largest products with each, in no order; -1 for nobody.

    About a `share` of them is found: everyone looks into so many of the nearest cells as that takes on sampled rows.
    """
    n = len(rows)
    centres = _centres(rows, seed)
    near, own = _cells_of(rows, centres, _cells_needed(rows, centres, wanted, share, seed))
    probes, count = near.shape[1], len(centres)
    members, ends = own.argsort(stable=True), _ends(own, count)
    order, limits = near.ravel().argsort(stable=True), _ends(near.ravel(), count)
    best = rows.new_full((n, wanted), -torch.inf)
    places = torch.full((n, wanted), -1, dtype=torch.int32, device=rows.device)
    for cell in range(count):
        theirs = members[ends[cell] : ends[cell + 1]]
        for a, b in spans(limits[cell + 1] - limits[cell], max(1, AT_ONCE // max(1, len(theirs)))):
            if len(theirs):
                mine = order[limits[cell] + a : limits[cell] + b] // probes
                _keep(best, places, mine, rows[mine] @ rows[theirs].T, theirs.int())
    lonely = (places < 0).any(dim=1).nonzero().ravel()
    for a, b in spans(len(lonely), QUERIES):
        places[lonely[a:b]] = nearest_of(rows[lonely[a:b]], rows, wanted).int()
    return places


def _keep(
    best: torch.Tensor, places: torch.Tensor, mine: slice | torch.Tensor, found: torch.Tensor, numbers: torch.Tensor
) -> None:
    """Let some rows keep the largest of what they have and of (m, c) products with rows of these numbers."""
    wanted = best.shape[1]
    top = found.topk(min(wanted, found.shape[1]), dim=1, sorted=False)
    values = torch.cat([best[mine], top.values], dim=1)
    those = torch.cat([places[mine], numbers[top.indices].to(places.dtype)], dim=1)
    chosen = values.topk(wanted, dim=1, sorted=False)
    best[mine], places[mine] = chosen.values, those.gather(1, chosen.indices)


def _ranked(
    units: torch.Tensor, start: int, candidates: torch.Tensor, k: int
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Rank the candidates of the rows from `start` on by their cosine, ties to the lowest index."""
    places = candidates.sort(dim=1).values
    rows = units[start : start + len(places)]
    step = max(1, AT_ONCE // (places.shape[1] * units.shape[1]))
    products = [
        torch.einsum("ij,ikj->ik", rows[a:b], units[places[a:b].clamp_min(0)]) for a, b in spans(len(rows), step)
    ]
    cosines = (torch.cat(products).double() * GRID).round().div(GRID).float()
    itself = torch.arange(start, start + len(places), device=units.device)[:, None]
    cosines.masked_fill_((places == itself) | (places < 0), -torch.inf)
    order = cosines.sort(dim=1, descending=True, stable=True)
    return places.gather(1, order.indices[:, :k]).cpu().numpy(), order.values[:, :k].cpu().numpy()


def _reduced(units: torch.Tensor) -> torch.Tensor:
    """(n, c) the rows in the leading principal components of a sample of them."""
    some = units[:: max(1, len(units) // SAMPLE)].double()
    axes: torch.Tensor = torch.linalg.eigh(some.T @ some).eigenvectors[:, -REDUCED:].float()
    return units @ axes


def _centres(rows: torch.Tensor, seed: int) -> torch.Tensor:
    def nearest(some: NDArray[np.float32], centres: NDArray[np.float32]) -> NDArray[np.int64]:
        there = torch.from_numpy(centres).to(rows.device)
        found = [far.argmin(dim=1) for far in _far(torch.from_numpy(some).to(rows.device), there)]
        return torch.cat(found).cpu().numpy()

    count = cell_count(len(rows))
    sample = rows[torch.from_numpy(training_rows(len(rows), count, seed)).to(rows.device)].cpu().numpy()
    return torch.from_numpy(find_centres(sample, count, nearest, seed, unit=False)).to(rows.device)


def _far(rows: torch.Tensor, centres: torch.Tensor) -> Iterator[torch.Tensor]:
    """Yield how far (c, d) centres are from some rows at a time: half the squared distance, but for a number a row."""
    offsets = centres.square().sum(dim=1) / 2
    for a, b in spans(len(rows), max(1, AT_ONCE // len(centres))):
        yield offsets - rows[a:b] @ centres.T


def _cells_needed(rows: torch.Tensor, centres: torch.Tensor, wanted: int, share: float, seed: int) -> int:
    """Return into how many of the nearest cells everyone has to look to find a share of those that are wanted."""
    judged = np.sort(np.random.default_rng(seed).choice(len(rows), min(len(rows), JUDGED), replace=False))
    some = torch.from_numpy(judged).to(rows.device)
    true = nearest_of(rows[some], rows, wanted)
    own = torch.cat([far.argmin(dim=1) for far in _far(rows[true.ravel()], centres)]).reshape(true.shape)
    order = torch.cat([far.argsort(dim=1, stable=True) for far in _far(rows[some], centres)])
    ranks = order.argsort(dim=1).gather(1, own).cpu().numpy()
    who = np.repeat(np.arange(len(judged), dtype=np.int32), wanted)
    return min(MOST_CELLS, int(1 - cut_for(-ranks.ravel().astype(np.float32), who, share)[0]))


def _cells_of(rows: torch.Tensor, centres: torch.Tensor, probes: int) -> tuple[torch.Tensor, torch.Tensor]:
    """(n, probes) the cells nearest to every row, in no order, and (n,) the nearest."""
    near, own = [], []
    for far in _far(rows, centres):
        near.append(far.topk(probes, dim=1, largest=False, sorted=False).indices.int())
        own.append(far.argmin(dim=1).int())
    return torch.cat(near), torch.cat(own)


def _ends(cells: torch.Tensor, count: int) -> list[int]:
    return [0, *torch.bincount(cells, minlength=count).cumsum(0).tolist()]


def _share_found(units: torch.Tensor, cosines: NDArray[np.float32]) -> float:
    """Share of the true nearest of sampled rows that are as near as what was found."""
    n, k = cosines.shape
    judged = np.sort(np.random.default_rng(n).choice(n, min(n, JUDGED), replace=False))
    rows = torch.from_numpy(judged).to(units.device)
    best = units.new_full((len(rows), k + 1), -torch.inf)
    for first, last in spans(n, COLUMNS):
        best = torch.cat([best, units[rows] @ units[first:last].T], dim=1).topk(min(k + 1, n), dim=1).values
    reached = best[:, -1:].cpu().numpy() - np.float32(ROUNDING)  # the first of k + 1 is the row itself
    return float(np.mean(cosines[judged] >= reached))
