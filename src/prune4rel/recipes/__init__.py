"""The paper's tables and figures, by name."""

from prune4rel.recipes.catalogue import RECIPES, Recipe
from prune4rel.recipes.cells import PaperCell, Wanted
from prune4rel.recipes.jobs import Settings
from prune4rel.recipes.reproduce import Plan, Reproduction, estimate, make_plan, make_smoke_plan, reproduce

__all__ = [
    "RECIPES",
    "PaperCell",
    "Plan",
    "Recipe",
    "Reproduction",
    "Settings",
    "Wanted",
    "estimate",
    "make_plan",
    "make_smoke_plan",
    "reproduce",
]
