"""How exactly PyTorch multiplies matrices on a GPU."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def full_precision() -> Iterator[None]:
    """Sum half-precision products in float32 and keep float32 products float32; put the settings back.

    >>> with full_precision():
    ...     torch.get_float32_matmul_precision()
    'highest'
    """
    matmul = torch.backends.cuda.matmul
    before = matmul.allow_fp16_reduced_precision_reduction, torch.get_float32_matmul_precision()
    matmul.allow_fp16_reduced_precision_reduction = False
    torch.set_float32_matmul_precision("highest")
    try:
        yield
    finally:
        matmul.allow_fp16_reduced_precision_reduction = before[0]
        torch.set_float32_matmul_precision(before[1])
