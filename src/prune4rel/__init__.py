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

Names are imported when they are first used, so that ``import prune4rel`` costs next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from prune4rel._version import __version__

if TYPE_CHECKING:
    from prune4rel.cleaning import clean
    from prune4rel.data import Dataset, Split, list_datasets, load_dataset, register_dataset
    from prune4rel.encoders import embed, list_encoders, open_encoder, register_encoder
    from prune4rel.errors import InputError
    from prune4rel.inference import load_model
    from prune4rel.labels import Labels
    from prune4rel.learners import list_learners, register_learner
    from prune4rel.methods import list_methods, register_method, select
    from prune4rel.networks import list_networks, register_network
    from prune4rel.pipeline import Config, run
    from prune4rel.selection import Selection
    from prune4rel.signals import Signals
    from prune4rel.training import make_plan, train, warm_up

_HOMES = {
    "Config": "prune4rel.pipeline",
    "Dataset": "prune4rel.data",
    "InputError": "prune4rel.errors",
    "Labels": "prune4rel.labels",
    "Selection": "prune4rel.selection",
    "Signals": "prune4rel.signals",
    "Split": "prune4rel.data",
    "clean": "prune4rel.cleaning",
    "embed": "prune4rel.encoders",
    "list_datasets": "prune4rel.data",
    "list_encoders": "prune4rel.encoders",
    "list_learners": "prune4rel.learners",
    "list_methods": "prune4rel.methods",
    "list_networks": "prune4rel.networks",
    "load_dataset": "prune4rel.data",
    "load_model": "prune4rel.inference",
    "make_plan": "prune4rel.training",
    "open_encoder": "prune4rel.encoders",
    "register_dataset": "prune4rel.data",
    "register_encoder": "prune4rel.encoders",
    "register_learner": "prune4rel.learners",
    "register_method": "prune4rel.methods",
    "register_network": "prune4rel.networks",
    "run": "prune4rel.pipeline",
    "select": "prune4rel.methods",
    "train": "prune4rel.training",
    "warm_up": "prune4rel.training",
}

__all__ = [
    "Config",
    "Dataset",
    "InputError",
    "Labels",
    "Selection",
    "Signals",
    "Split",
    "__version__",
    "clean",
    "embed",
    "list_datasets",
    "list_encoders",
    "list_learners",
    "list_methods",
    "list_networks",
    "load_dataset",
    "load_model",
    "make_plan",
    "open_encoder",
    "register_dataset",
    "register_encoder",
    "register_learner",
    "register_method",
    "register_network",
    "run",
    "select",
    "train",
    "warm_up",
]


def __getattr__(name: str) -> Any:
    """Import a public name on first use (PEP 562)."""
    if name not in _HOMES:
        raise AttributeError(f"module 'prune4rel' has no attribute {name!r}")
    try:
        value = getattr(import_module(_HOMES[name]), name)
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        words = f"{name} needs PyTorch, which is not installed: pip install 'prune4rel[train]'"
        raise ModuleNotFoundError(words, name="torch") from None
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
