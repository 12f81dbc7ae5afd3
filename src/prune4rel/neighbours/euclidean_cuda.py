"""Euclidean distances on a GPU: the same screen and the same decisions as on the CPU, in plain PyTorch."""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from prune4rel.blocks import spans
from prune4rel.errors import InputError
from prune4rel.neighbours.cuda import UPLOAD_ROWS
from prune4rel.neighbours.euclidean import FLOAT32, SPLIT, TINY, Space, kappa
from prune4rel.neighbours.precision import full_precision
from prune4rel.neighbours.similarity import Points

TILE_NUMBERS = 2**27
PAIR_NUMBERS = 2**24
WORKSPACE = 2**32


@dataclass(frozen=True)
class TorchSpace(Space):
    """A `Space` whose rows, as given, and whose halves are on a device, too."""

    rows: torch.Tensor
    shift: torch.Tensor
    device_halves: torch.Tensor
    tile_numbers: int = TILE_NUMBERS

    @classmethod
    def on(cls, space: Space, device: str, *, tile_numbers: int = TILE_NUMBERS) -> "TorchSpace":
        """Upload the rows once; any `tile_numbers` give the same distances."""
        shift, halves = (torch.from_numpy(array).to(device) for array in (space.centre, space.halves))
        rows = _upload(space.points, device)
        return cls(space.points, space.centre, space.scale, space.halves, rows, shift, halves, tile_numbers)

    def lower_nearest(self, some: NDArray[np.int64], nearest: NDArray[np.float64]) -> None:
        """Lower (n,) squared distances to the nearest of earlier rows, in place, to those of `some` where nearer."""
        n, dim = self.rows.shape
        chosen = torch.from_numpy(some).to(self.rows.device)
        distances = torch.from_numpy(nearest).to(self.rows.device)
        halves = self.device_halves[chosen]
        slack = 2.1 * kappa(dim) / (1 - kappa(dim))
        with full_precision():
            operand = self._shifted(chosen).T
            for start, stop in spans(n, max(1, self.tile_numbers // max(dim, len(some)))):
                mine, known = self.device_halves[start:stop], distances[start:stop]
                products = self._shifted(slice(start, stop)) @ operand - halves
                runners_up = products.amax(dim=1) - slack * (mine + halves.max()) - TINY
                far = known * self.unit
                limit = (mine - far - TINY - 2 * FLOAT32 * (mine + far)).float()
                limit[known == 0] = torch.inf
                i, j = (products >= torch.maximum(limit, runners_up)[:, None]).nonzero(as_tuple=True)
                known.scatter_reduce_(0, i, self._squared_distances(i + start, chosen[j]), "amin")
        nearest[:] = distances.cpu().numpy()

    def products(self, some: NDArray[np.int64]) -> NDArray[np.float32]:
        """(m, m) products of some shifted rows with each other."""
        with full_precision():
            operand = self._shifted(torch.from_numpy(some).to(self.rows.device))
            together: NDArray[np.float32] = (operand @ operand.T).cpu().numpy()
        return together

    def _shifted(self, where: slice | torch.Tensor) -> torch.Tensor:
        return self.rows[where].float() * self.scale - self.shift

    def _squared_distances(self, i: torch.Tensor, j: torch.Tensor) -> torch.Tensor:
        """Canonical squared distances of pairs of rows, as `euclidean.squared_distance` has them."""
        found = torch.empty(len(i), dtype=torch.float64, device=self.rows.device)
        for a, b in spans(len(i), max(1, PAIR_NUMBERS // self.rows.shape[1])):
            found[a:b] = (self.rows[i[a:b]].double() - self.rows[j[a:b]].double()).square().sum(dim=1)
        big = found * SPLIT
        return big - (big - found)


def _upload(points: Points, device: str) -> torch.Tensor:
    n, dim = points.rows.shape
    kind = torch.float16 if points.rows.dtype == np.float16 else torch.float32
    needed = n * dim * kind.itemsize + WORKSPACE
    if device != "cpu" and needed > torch.cuda.mem_get_info(device)[0]:
        free = torch.cuda.mem_get_info(device)[0]
        raise InputError(
            f"the embeddings need {needed / 2**30:.1f} GiB on {device}, where {free / 2**30:.1f} GiB are free; "
            "use device='cpu', or give them as float16",
            "embeddings",
        )
    rows = torch.empty((n, dim), dtype=kind, device=device)
    staging = torch.empty((min(n, UPLOAD_ROWS), dim), dtype=kind, pin_memory=device != "cpu")
    for start, stop in spans(n, UPLOAD_ROWS):
        staging.numpy()[: stop - start] = points.rows[start:stop]
        rows[start:stop].copy_(staging[: stop - start])
    return rows
