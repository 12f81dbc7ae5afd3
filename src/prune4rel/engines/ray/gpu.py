"""What a worker with a GPU does: the neighbours between two blocks, with PyTorch."""

from collections.abc import Sequence

import numpy as np
import torch

from prune4rel.blocks import spans
from prune4rel.engines.ray.tiles import Block
from prune4rel.neighbours.cuda import TorchBackend
from prune4rel.neighbours.graph import Edges
from prune4rel.neighbours.precision import full_precision
from prune4rel.neighbours.screen import Screen
from prune4rel.neighbours.similarity import Points, Threshold
from prune4rel.progress import no_advance


class _Stack(TorchBackend):
    """The rows of two blocks, one above the other."""

    def across(self, split: int, threshold: Threshold) -> list[Edges]:
        """All neighbouring pairs of one of the first `split` rows and one of the others."""
        n = len(self.raw)
        parts = []
        with full_precision():
            for start, stop in spans(split, self.tile):
                rows = torch.arange(start, stop, dtype=torch.int32, device=self.raw.device)
                found = self._search(rows, self.operand[start:stop], (split, n), threshold)
                i, j, weight = found.sorted(n)
                parts.append(Edges(i + np.int32(start), j, weight))
        return parts


def edges_on_torch(blocks: Sequence[Block], screen: Screen, threshold: Threshold, device: str) -> list[Edges]:
    """All neighbouring pairs of a row of the first block and a row of the last, as rows of their stack."""
    rows = np.concatenate([block.rows for block in blocks])
    points = Points(rows, np.concatenate([block.squares for block in blocks]))
    plain = TorchBackend.from_points(points, device)  # uploads; its operand is let go of with it
    stack = _Stack(points, plain.raw, plain.squares, screen)
    del plain
    if len(blocks) == 1:
        return stack.upper(threshold, max_edges=np.inf, advance=no_advance)
    return stack.across(len(blocks[0].rows), threshold)
