"""Sums over all rows and products with every row, block by block: NumPy on a CPU, PyTorch on a GPU.

Whatever is linear in the number of rows happens here. Products are float32, sums over blocks float64; blocks have a
fixed size and are added in order, so that any number of threads gives the same bits. Whoever calls keeps BLAS itself to
one thread.
"""

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from prune4rel.blocks import spans
from prune4rel.machine import threads
from prune4rel.progress import Advance, no_advance

Floats = NDArray[np.float64]
Result = TypeVar("Result")

BLOCK = 4096
"""Rows a block. Part of the result: sums in another order differ in their last bits."""


def each_block(function: Callable[[slice], Result], n: int, advance: Advance = no_advance) -> Iterator[Result]:
    """Yield what a function makes of each block of rows, in order; some are worked on ahead, in threads."""
    if n <= BLOCK:
        if n:
            yield function(slice(0, n))
            advance(n)
        return
    ahead: deque[tuple[int, Future[Result]]] = deque()
    with ThreadPoolExecutor(threads()) as pool:
        for start, stop in spans(n, BLOCK):
            ahead.append((stop - start, pool.submit(function, slice(start, stop))))
            if len(ahead) > 2 * threads():
                count, first = ahead.popleft()
                yield first.result()
                advance(count)
        for count, future in ahead:
            yield future.result()
            advance(count)


def for_each_block(function: Callable[[slice], None], n: int, advance: Advance = no_advance) -> None:
    """Call a function for each block of rows, in threads.

    >>> seen = []
    >>> for_each_block(seen.append, 5)
    >>> seen
    [slice(0, 5, None)]
    """
    for _ in each_block(function, n, advance):
        pass


def total(function: Callable[[slice], tuple[Any, ...]], n: int, advance: Advance = no_advance) -> list[Floats]:
    """Add up, in float64 and in order, the arrays a function gives for each block of rows.

    >>> rows = np.arange(10)
    >>> total(lambda block: (rows[block].sum(), np.ones(2)), 10)
    [array(45.), array([1., 1.])]
    """
    sums: list[Floats] = []
    for parts in each_block(function, n, advance):
        sums = sums or [np.zeros(np.shape(part)) for part in parts]
        for each, part in enumerate(parts):
            sums[each] += part
    return sums
