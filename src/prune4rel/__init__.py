"""Data pruning under label noise.

>>> import numpy as np
>>> import prune4rel as p4r
>>> rng = np.random.default_rng(0)
>>> embeddings = rng.normal(size=(100, 8))
>>> probabilities = rng.dirichlet(np.ones(3), size=100)
>>> labels = rng.integers(0, 3, size=100)
>>> chosen = p4r.select("prune4rel", embeddings=embeddings, probabilities=probabilities, labels=labels, ratio=0.2)
>>> len(chosen.indices)
20

Names are imported when they are first used, so that ``import prune4rel`` costs next to nothing. ``p4r.methods`` is
both the subpackage and, called, the list of names.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from prune4rel._version import __version__

if TYPE_CHECKING:
    from prune4rel.data import datasets, load_dataset
    from prune4rel.errors import InputError
    from prune4rel.learners import learners
    from prune4rel.methods import methods, register, select
    from prune4rel.selection import Selection
    from prune4rel.signals import Signals
    from prune4rel.training import load_model, make_plan, train, warm_up

_HOMES = {
    "InputError": "prune4rel.errors",
    "Selection": "prune4rel.selection",
    "datasets": "prune4rel.data",
    "learners": "prune4rel.learners",
    "load_dataset": "prune4rel.data",
    "load_model": "prune4rel.training",
    "make_plan": "prune4rel.training",
    "Signals": "prune4rel.signals",
    "methods": "prune4rel.methods",
    "register": "prune4rel.methods",
    "select": "prune4rel.methods",
    "train": "prune4rel.training",
    "warm_up": "prune4rel.training",
}

__all__ = [
    "InputError",
    "Selection",
    "Signals",
    "__version__",
    "datasets",
    "learners",
    "load_dataset",
    "load_model",
    "make_plan",
    "methods",
    "register",
    "select",
    "train",
    "warm_up",
]


def __getattr__(name: str) -> Any:
    """Import a public name on first use (PEP 562)."""
    if name not in _HOMES:
        raise AttributeError(f"module 'prune4rel' has no attribute {name!r}")
    home = import_module(_HOMES[name])
    value = home if _HOMES[name] == f"prune4rel.{name}" else getattr(home, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
