"""Approximate neighbours in cells on a GPU: what `neighbours.cells` does, by half-precision products of gathered rows.

Rows of a cell and those that look into it are multiplied; what is near enough is decoded, seen once from both ends,
and compared canonically. Like the exact search it also runs on PyTorch's CPU device, where it is tested.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from prune4rel.blocks import spans
from prune4rel.neighbours.cells import CellBackend, Known, choose_cells
from prune4rel.neighbours.cuda import TorchBackend
from prune4rel.neighbours.graph import EdgeBudget, Edges
from prune4rel.neighbours.precision import full_precision
from prune4rel.neighbours.similarity import Threshold
from prune4rel.progress import Advance

SORTED_AT_ONCE = 2**27
"""Products of rows with centres that are held at once."""

AT_ONCE = 2**29
"""Pairs of rows that are multiplied before it is looked how many of them are near."""

EDGES_AT_ONCE = 2**26


class Rectangle(NamedTuple):
    """Some that look, from `top` to `bottom`, and some of the members of the cell, from `left` to `right`."""

    top: int
    bottom: int
    left: int
    right: int

    @property
    def pairs(self) -> int:
        """How many pairs that makes."""
        return (self.bottom - self.top) * (self.right - self.left)

    def halves(self) -> "list[Rectangle]":
        """Cut the longer side in two."""
        if self.bottom - self.top >= self.right - self.left:
            middle = (self.top + self.bottom) // 2
            return [self._replace(bottom=middle), self._replace(top=middle)]
        middle = (self.left + self.right) // 2
        return [self._replace(right=middle), self._replace(left=middle)]


class OnDevice(NamedTuple):
    """`cells.SortedRows` with the rows on the device, and the limits here."""

    members: torch.Tensor
    first: list[int]
    looking: torch.Tensor
    begin: list[int]


class TorchCells(CellBackend):
    """Cells on a GPU."""

    exact: TorchBackend

    def upper(self, threshold: Threshold, *, max_edges: float, advance: Advance) -> list[Edges]:
        """Find pairs i < j of which one looks into the cell of the other."""
        n = len(self.points)
        budget = EdgeBudget(2 * max_edges)  # most pairs are found from both ends
        keys, weights = [], []
        with full_precision():
            by_cell = self.sort()
            work = list(self._groups(by_cell))
            step = n * (n + 1) / 2 / max(1, sum(one.pairs for group in work for one in group))
            for group in work:
                for key, weight in self._search(group, by_cell, threshold):
                    budget.take(len(key))
                    keys.append(key)
                    weights.append(weight)
                advance(step * sum(one.pairs for one in group))
        if not keys:
            return []
        key, order = torch.sort(torch.cat(keys))
        first = torch.ones(len(key), dtype=torch.bool, device=key.device)
        first[1:] = key[1:] != key[:-1]
        key, weight = key[first], torch.cat(weights)[order[first]]
        EdgeBudget(max_edges).take(len(key))
        return [
            Edges(*(part.cpu().numpy() for part in ((key[a:b] // n).int(), (key[a:b] % n).int(), weight[a:b])))
            for a, b in spans(len(key), EDGES_AT_ONCE)
        ]

    def sort(self) -> OnDevice:
        """Find every row's cell, and the cells it looks into."""
        operand, count = self.exact.operand, len(self.cells.centres)
        centres = torch.zeros((count, operand.shape[1]), dtype=torch.float16, device=operand.device)
        centres[:, : self.cells.centres.shape[1]] = torch.from_numpy(self.cells.centres).to(operand.device)
        own, rows, looks = [], [], []
        for start, stop in spans(len(operand), max(1, SORTED_AT_ONCE // count)):
            product = operand[start:stop] @ centres.T
            own.append(product.argmax(dim=1))
            row, look = (product >= self.cells.cut).nonzero(as_tuple=True)
            rows.append((row + start).int())
            looks.append(look.int())
        cell, look = torch.cat(own), torch.cat(looks)
        return OnDevice(
            members=torch.argsort(cell, stable=True).int(),
            first=_starts(cell, count),
            looking=torch.cat(rows)[torch.argsort(look, stable=True)],
            begin=_starts(look, count),
        )

    def _groups(self, by_cell: OnDevice) -> Iterator[list[Rectangle]]:
        """Cut the work into rectangles that fit a tile, many small ones at a time."""
        group: list[Rectangle] = []
        tile = self.exact.tile
        for cell in range(len(by_cell.first) - 1):
            for top, bottom in spans(by_cell.begin[cell + 1] - by_cell.begin[cell], 4 * tile):
                for left, right in spans(by_cell.first[cell + 1] - by_cell.first[cell], tile):
                    q, m = by_cell.begin[cell], by_cell.first[cell]
                    group.append(Rectangle(q + top, q + bottom, m + left, m + right))
                    if sum(one.pairs for one in group) >= AT_ONCE:
                        yield group
                        group = []
        if group:
            yield group

    def _search(
        self, group: list[Rectangle], by_cell: OnDevice, threshold: Threshold
    ) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """Keys i n + j and weights of the edges in some rectangles; in fewer at once where too many are near."""
        exact, n = self.exact, len(self.points)
        limit = threshold.cosine - exact.screen.margin(exact.rounding)
        exact.counter.zero_()
        for top, bottom, left, right in group:
            looking, members = by_cell.looking[top:bottom], by_cell.members[left:right]
            product = exact.operand[looking] @ exact.operand[members].T
            exact.collect(product, limit, None, left, row_start=top)
        count = int(exact.counter.item())
        if count > exact.capacity:
            middle = len(group) // 2
            for part in (group[:middle], group[middle:]) if middle else ([half] for half in group[0].halves()):
                yield from self._search(list(part), by_cell, threshold)
            return
        i, j = exact.candidates(count)
        a, b = by_cell.looking[i.long()], by_cell.members[j.long()]
        key = torch.minimum(a, b).long() * n + torch.maximum(a, b)
        key = torch.unique(key[a != b])
        keep, similarity = exact.similar((key // n).int(), (key % n).int(), threshold)
        yield key[keep], similarity[keep].float()


def in_cells(exact: TorchBackend, known: Known, share: float, seed: int) -> TorchCells:
    """Find the cells of the rows of a backend."""
    device = exact.raw.device

    def nearest(unit: NDArray[np.float32], centres: NDArray[np.float32]) -> NDArray[np.int64]:
        columns = torch.from_numpy(centres).to(device).T
        found = np.empty(len(unit), dtype=np.int64)
        with full_precision():
            for a, b in spans(len(unit), max(1, SORTED_AT_ONCE // len(centres))):
                found[a:b] = (torch.from_numpy(unit[a:b]).to(device) @ columns).argmax(dim=1).cpu().numpy()
        return found

    return TorchCells(exact, choose_cells(exact.points, known, share, nearest, seed))


def _starts(cells: torch.Tensor, count: int) -> list[int]:
    ends = torch.bincount(cells, minlength=count).cumsum(0)
    return [0, *ends.tolist()]
