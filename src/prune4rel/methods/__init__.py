"""Methods: from `Signals` to `Selection`. One file a method, registered by a decorator."""

import sys
from types import ModuleType

from prune4rel.methods.registry import Method, Outcome, Request, get, methods, register
from prune4rel.methods.run import select


class _CallableModule(ModuleType):
    """Importing a subpackage hides a function of the same name, so the subpackage itself can be called."""

    def __call__(self) -> list[str]:
        """Names of all methods."""
        return methods()


sys.modules[__name__].__class__ = _CallableModule

__all__ = ["Method", "Outcome", "Request", "get", "methods", "register", "select"]
