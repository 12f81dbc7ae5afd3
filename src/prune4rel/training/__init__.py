"""Training: the one loop that warm-up and final training share, and what it leaves behind."""

from prune4rel.inference import Model, load_model
from prune4rel.training.hyperparameters import Hyperparameters, TrainingPlan, make_plan
from prune4rel.training.result import Result
from prune4rel.training.train import train, usual_learner
from prune4rel.training.warmup import look_at, warm_up

__all__ = [
    "Hyperparameters",
    "Model",
    "Result",
    "TrainingPlan",
    "load_model",
    "look_at",
    "make_plan",
    "train",
    "usual_learner",
    "warm_up",
]
