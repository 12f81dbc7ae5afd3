"""Learners: how a model is trained on labels that may be wrong. One file each, registered by a decorator."""

from prune4rel.learners.learner import Examples, Learner, Loss, Pass, Setting, Stream, Table
from prune4rel.learners.presets import PRESETS, get, list_learners, make_learner, preset_options, register_learner

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
    "list_learners",
    "make_learner",
    "preset_options",
    "register_learner",
]
