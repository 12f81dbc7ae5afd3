"""One way to compile a numerical loop: numba, cached on disk, without the interpreter's lock."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba import njit

Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(function: Function) -> Function:
    """Compile `function` with strict floating point: same inputs, same bits."""
    return cast("Function", njit(nogil=True, cache=True)(function))


def compiled_reduction(function: Function) -> Function:
    """Compile a sum whose terms may be added in any order, so that it can use vector registers.

    The order is fixed by the machine code, hence the same on every call; only use it where the
    result is rounded to fewer digits afterwards.
    """
    return cast("Function", njit(nogil=True, cache=True, fastmath={"reassoc", "contract", "nsz"})(function))
