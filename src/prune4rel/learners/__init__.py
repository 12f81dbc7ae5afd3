"""Learners: how a model is trained on labels that may be wrong. One file each, registered by a decorator.

``p4r.learners`` is both this subpackage and, called, the list of names.
"""

import sys
from types import ModuleType

from prune4rel.learners.learner import Examples, Learner, Loss, Pass, Setting, Stream, Table
from prune4rel.learners.presets import PRESETS, preset_options
from prune4rel.learners.registry import get, learners, make_learner, register_learner

__all__ = [
    "PRESETS",
    "Examples",
    "Learner",
    "Loss",
    "Pass",
    "Setting",
    "Stream",
    "Table",
    "get",
    "learners",
    "make_learner",
    "preset_options",
    "register_learner",
]


class _CallableModule(ModuleType):
    def __call__(self) -> list[str]:
        """Names of all learners."""
        return learners()


sys.modules[__name__].__class__ = _CallableModule
