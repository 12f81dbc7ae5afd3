"""Neighbours on a GPU: half-precision products screen, double precision decides.

Rows, screening operand and candidates live on the device; only finished edges come back. Everything but the
two kernels of `neighbours.kernels` is plain PyTorch and also runs on PyTorch's CPU device, where it is tested.
"""

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from prune4rel.blocks import spans
from prune4rel.errors import InputError
from prune4rel.machine import threads
from prune4rel.neighbours.graph import Backend, EdgeBudget, Edges
from prune4rel.neighbours.precision import full_precision
from prune4rel.neighbours.screen import FLOAT16, Screen, whole
from prune4rel.neighbours.similarity import GRID, Points, Threshold
from prune4rel.progress import Advance, no_advance

TILE = 16384
CAPACITY = 2**25
UPLOAD_ROWS = 16384
UPLOAD_BYTES = 2**25
UPLOADERS = 8


class TorchBackend(Backend):
    """Finds neighbours with PyTorch.

    Parameters
    ----------
    points
        The rows on the host.
    raw
        The same rows on the device, float16 or float32.
    squares
        Their squared lengths on the device, float64.
    screen
        How pairs are ruled out before they are computed in full.
    tile, capacity
        Rows and columns of a tile, and how many candidates are held at once; any values give the same edges.
    """

    check_cost = 400.0
    rounding = FLOAT16

    def __init__(
        self,
        points: Points,
        raw: torch.Tensor,
        squares: torch.Tensor,
        screen: Screen,
        *,
        tile: int = TILE,
        capacity: int = CAPACITY,
    ) -> None:
        self.points = points
        self.raw = raw
        self.squares = squares
        self.screen = screen
        self.tile = tile
        self.capacity = capacity
        self.operand = self._make_operand()
        self.counter = torch.zeros(1, dtype=torch.int64, device=raw.device)
        self._i = torch.empty(capacity, dtype=torch.int32, device=raw.device)
        self._j = torch.empty(capacity, dtype=torch.int32, device=raw.device)

    @classmethod
    def from_points(cls, points: Points, device: str, **options: int) -> "TorchBackend":
        """Upload the rows once."""
        n, dim = points.rows.shape
        kind = torch.float16 if points.rows.dtype == np.float16 else torch.float32
        needed = n * dim * (kind.itemsize + 2) + 2**31
        if device != "cpu" and needed > torch.cuda.mem_get_info(device)[0]:
            free = torch.cuda.mem_get_info(device)[0]
            raise InputError(
                f"the embeddings need {needed / 2**30:.1f} GiB on {device}, where {free / 2**30:.1f} GiB are free; "
                "use device='cpu', or give them as float16"
            )
        raw = torch.empty((n, dim), dtype=kind, device=device)
        if device == "cpu":
            raw.numpy()[:] = points.rows
        else:
            _upload(points.rows, raw)
        squares = torch.from_numpy(points.squared_norms.copy()).to(device)
        return cls(points, raw, squares, whole(dim), **options)

    def with_screen(self, screen: Screen) -> "TorchBackend":
        """Return the same rows behind another screen."""
        return TorchBackend(self.points, self.raw, self.squares, screen, tile=self.tile, capacity=self.capacity)

    def _make_operand(self) -> torch.Tensor:
        """(n, width) rows of the screening product in float16, padded so that tensor cores take them."""
        n = len(self.raw)
        width = -(-self.screen.width // 8) * 8
        basis = None if self.screen.basis is None else torch.from_numpy(self.screen.basis).to(self.raw.device)
        operand = torch.zeros((n, width), dtype=torch.float16, device=self.raw.device)
        with full_precision():
            for start, stop in spans(n, UPLOAD_ROWS):
                squares = self.squares[start:stop, None]
                scale = torch.where(squares > 0, squares.rsqrt(), 0.0)
                unit = (self.raw[start:stop].double() * scale).float()
                if basis is None:
                    operand[start:stop, : unit.shape[1]] = unit
                    continue
                part = unit @ basis
                inside = part.double().square().sum(1)
                rest = ((1 - inside).clamp(min=0) + 3 * self.screen.slack).sqrt()
                operand[start:stop, : part.shape[1]] = part
                operand[start:stop, part.shape[1]] = rest.half()
        return operand

    def upper(self, threshold: Threshold, *, max_edges: float, advance: Advance) -> list[Edges]:
        """Find every neighbouring pair i < j, one strip of rows after the other."""
        n = len(self.raw)
        budget = EdgeBudget(max_edges)
        parts = []
        with full_precision():
            for start, stop in spans(n, self.tile):
                rows = torch.arange(start, stop, dtype=torch.int32, device=self.raw.device)
                found = self._search(rows, self.operand[start:stop], (start, n), threshold, row_start=start)
                budget.take(len(found.i))
                if len(found.i):
                    i, j, weight = found.sorted(n)
                    parts.append(Edges(i + np.int32(start), j, weight))
                advance((stop - start) * (n - (start + stop) / 2))
        return parts

    def of(
        self, rows: NDArray[np.int64], threshold: Threshold, *, max_edges: float, advance: Advance = no_advance
    ) -> Edges:
        """Find all neighbours of some rows, a strip at a time."""
        n = len(self.raw)
        budget = EdgeBudget(max_edges)
        parts = []
        with full_precision():
            for start, stop in spans(len(rows), self.tile):
                some = torch.from_numpy(rows[start:stop].astype(np.int32)).to(self.raw.device)
                found = self._search(some, self.operand[some], (0, n), threshold)
                budget.take(len(found.i))
                i, j, weight = found.sorted(n)
                parts.append(Edges(i + np.int32(start), j, weight))
                advance((stop - start) * n)
        i, j, weight = (np.concatenate([part[k] for part in parts]) for k in range(3))
        return Edges(i, j, weight)

    def _search(
        self,
        rows: torch.Tensor,
        operand: torch.Tensor,
        columns: tuple[int, int],
        threshold: Threshold,
        *,
        row_start: int | None = None,
    ) -> "_Found":
        """Edges from `rows` to a range of columns; i counts along `rows`.

        With a `row_start` the rows are those from there on, and only j > i counts. Columns, then rows, are
        halved and searched again where the candidates do not fit.
        """
        limit = threshold.cosine - self.screen.margin(self.rounding)
        first, last = columns
        self.counter.zero_()
        for start, stop in spans(last - first, self.tile):
            product = operand @ self.operand[first + start : first + stop].T
            diagonal = None if row_start is None else row_start - (first + start)
            self.collect(product, limit, diagonal, first + start)
        count = int(self.counter.item())
        if count <= self.capacity:
            return self._check(rows, count, threshold)
        if last - first > 1:
            middle = (first + last) // 2
            ranges = (first, middle), (middle, last)
            pieces = [self._search(rows, operand, part, threshold, row_start=row_start) for part in ranges]
        else:
            half = len(rows) // 2
            pieces = [self._search(rows[:half], operand[:half], columns, threshold, row_start=row_start)]
            below = None if row_start is None else row_start + half
            rest = self._search(rows[half:], operand[half:], columns, threshold, row_start=below)
            pieces.append(_Found(rest.i + half, rest.j, rest.weight))
        return _Found(*(torch.cat([piece[k] for piece in pieces]) for k in range(3)))

    def collect(
        self, product: torch.Tensor, limit: float, diagonal: int | None, column_start: int, *, row_start: int = 0
    ) -> None:
        """Append positions in `product` that reach `limit`, right of the diagonal, to the candidates."""
        if product.is_cuda:
            from prune4rel.neighbours.kernels import collect  # noqa: PLC0415 - needs Triton

            collect(product, limit, diagonal, (row_start, column_start), self.counter, self._i, self._j)
            return
        hit = product.float() >= limit
        if diagonal is not None:
            hit = hit.triu_(diagonal + 1)
        i, j = hit.nonzero(as_tuple=True)
        begin = int(self.counter.item())
        space = max(0, self.capacity - begin)
        end = begin + min(space, len(i))
        self._i[begin:end] = i[:space].int() + row_start
        self._j[begin:end] = j[:space].int() + column_start
        self.counter += len(i)

    def _check(self, rows: torch.Tensor, count: int, threshold: Threshold) -> "_Found":
        """Compute the candidates canonically, as `similarity.keep_neighbours` does, and keep the neighbours."""
        i, j = self.candidates(count)
        keep, similarity = self.similar(rows[i.long()], j, threshold)
        return _Found(i[keep], j[keep], similarity[keep].float())

    def candidates(self, count: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the first so many positions that were collected."""
        return self._i[:count], self._j[:count]

    def similar(self, i: torch.Tensor, j: torch.Tensor, threshold: Threshold) -> tuple[torch.Tensor, torch.Tensor]:
        """(m,) which pairs of rows are neighbours, and their similarities on the grid, computed canonically."""
        squares = self.squares[i.long()] * self.squares[j.long()]
        cosine = (self._dots(i, j) / squares.sqrt()).clamp_(max=1.0)
        similarity = (((1.0 + cosine) / 2.0 if threshold.shifted else cosine) * GRID).round_() / GRID
        tau = threshold.on_grid
        keep = (similarity > tau) if threshold.strict else (similarity >= tau)
        return keep & (squares > 0) & (i != j), similarity

    def _dots(self, i: torch.Tensor, j: torch.Tensor) -> torch.Tensor:
        """Dot products of pairs of rows, as given, in double precision."""
        if self.raw.is_cuda:
            from prune4rel.neighbours.kernels import dots  # noqa: PLC0415 - needs Triton

            return dots(self.raw, i, j)
        step = max(1, 2**24 // self.raw.shape[1])
        pieces = [
            torch.linalg.vecdot(self.raw[i[a:b].long()].double(), self.raw[j[a:b].long()].double())
            for a, b in spans(len(i), step)
        ]
        return torch.cat(pieces) if pieces else torch.empty(0, dtype=torch.float64)


def _upload(rows: NDArray[np.floating[Any]], raw: torch.Tensor) -> None:
    """Copy rows to the device; several threads read the next ones while others travel."""
    size = min(len(rows), max(1, UPLOAD_BYTES // (raw.shape[1] * raw.element_size())))
    local = threading.local()

    def move(span: tuple[int, int]) -> None:
        if not hasattr(local, "stream"):
            local.stream = torch.cuda.Stream(raw.device)  # type: ignore[no-untyped-call]
            local.staging = torch.empty((size, raw.shape[1]), dtype=raw.dtype, pin_memory=True)
        some = local.staging[: span[1] - span[0]]
        some.numpy()[:] = rows[slice(*span)]
        with torch.cuda.stream(local.stream):
            raw[slice(*span)].copy_(some, non_blocking=True)
        local.stream.synchronize()

    torch.cuda.current_stream(raw.device).synchronize()
    with ThreadPoolExecutor(min(UPLOADERS, threads())) as pool:
        list(pool.map(move, spans(len(rows), size)))


class _Found(NamedTuple):
    """Edges on the device, in no particular order."""

    i: torch.Tensor
    j: torch.Tensor
    weight: torch.Tensor

    def sorted(self, n: int) -> Edges:
        """Bring them home, by i, then j."""
        order = torch.argsort(self.i.long() * n + self.j.long())
        return Edges(*(part[order].cpu().numpy() for part in self))
