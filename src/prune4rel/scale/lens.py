"""What a worker remembers from task to task: blocks as a screen projects them."""

from collections import OrderedDict
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from prune4rel.neighbours.screen import Screen
from prune4rel.scale.tiles import Block, project_block

REMEMBERED = 8
"""Projected blocks that a worker keeps at the most."""

_projected: OrderedDict[tuple[str, int], NDArray[np.float32]] = OrderedDict()


class Lens(NamedTuple):
    """A screen as it travels, and a name that no other screen or set of rows has."""

    screen: Screen
    name: str

    def through(self, block: Block) -> Block:
        """Return a block with its operand: remembered where this worker had it lately, else made.

        Making it again costs less than another task would, and than bringing it from elsewhere.
        """
        if self.screen.basis is None:
            return block
        key = self.name, block.start
        if key not in _projected:
            _projected[key] = project_block(block, self.screen)
        _projected.move_to_end(key)
        while len(_projected) > REMEMBERED:
            _projected.popitem(last=False)
        return block._replace(operand=_projected[key])
