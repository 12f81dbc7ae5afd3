"""Training: the one loop that warm-up and final training share, and what it leaves behind."""

from prune4rel.training.model import Model, load_model
from prune4rel.training.plan import Plan, make_plan
from prune4rel.training.recipe import Recipe
from prune4rel.training.result import Result
from prune4rel.training.train import train
from prune4rel.training.warmup import warm_up

__all__ = ["Model", "Plan", "Recipe", "Result", "load_model", "make_plan", "train", "warm_up"]
