"""Methods: from `Signals` to `Selection`. One file a method, registered by a decorator."""

from prune4rel.methods.method import Method, Outcome, Request, get, list_methods, register_method
from prune4rel.methods.run import select

__all__ = ["Method", "Outcome", "Request", "get", "list_methods", "register_method", "select"]
