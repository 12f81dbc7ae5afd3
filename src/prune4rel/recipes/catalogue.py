"""The recipes: every table and figure of the paper, as plain data."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from prune4rel.recipes.cells import (
    ACCURACY,
    BINS,
    CORRECTED,
    FOUND,
    IN_ALL,
    NOISE,
    OURS,
    RIGHT,
    SECONDS,
    STEPS,
    PaperCell,
    grid,
)
from prune4rel.recipes.paper import ALL_THREE, NOISY, RANDOM, USUAL_RATIOS, WORST
from prune4rel.registry import look_up
from prune4rel.steps.select import EVERYTHING

BASELINES = ("SmallLoss", "Margin", "kCenterGreedy", "Forgetting", "GraNd", "SSP", "Moderate")
METHODS10 = ("Uniform", *BASELINES, "Prune4ReL", "Prune4ReL_B")
RELABELING = ("dividemix", "sop+")
WEBVISION, CLOTHING, IMAGENET = ("webvision", "real"), ("clothing1m", "real"), ("imagenet-n", "asym20")


@dataclass(frozen=True)
class Recipe:
    """A table or figure of the paper, or one of ours: which numbers of which cells.

    Parameters
    ----------
    name, title
        What it is called, and what it shows.
    cells, metrics
        What has to be run, and what is read off.
    printed
        Table of the paper that prints its numbers; none for what is only drawn.
    as_printed
        Method in that table for a method here, where the names differ; what has no name there was only drawn.
    select_only
        Whether it needs no training.
    across_learners
        Whether all learners are ranked together.
    ours
        Whether our own presets stand beside the paper's methods, unless told.
    steps
        How many steps everybody gets, warm-up and looking included; None where a training has the paper's epochs.
    remark
        What was decided where the paper leaves it open.
    """

    name: str
    title: str
    cells: tuple[PaperCell, ...]
    metrics: tuple[str, ...] = (ACCURACY,)
    printed: int | None = None
    as_printed: Mapping[str, str] = field(default_factory=dict)
    select_only: bool = False
    across_learners: bool = False
    ours: bool = False
    steps: int | None = None
    remark: str = ""

    @property
    def datasets(self) -> tuple[str, ...]:
        """Data sets it needs."""
        return tuple(dict.fromkeys(cell.dataset for cell in self.cells))


RECIPES = {
    recipe.name: recipe
    for recipe in (
        Recipe(
            "table1",
            "all methods with DivideMix and SOP+ on CIFAR-10N and CIFAR-100N",
            grid(ALL_THREE, RELABELING, METHODS10, USUAL_RATIOS),
            printed=1,
            ours=True,
        ),
        Recipe(
            "table2",
            "plain cross-entropy with pruning beside re-labeling models",
            (
                *grid(ALL_THREE, ("cross-entropy",), ("Uniform", "SmallLoss", "Forgetting"), USUAL_RATIOS),
                *grid(ALL_THREE, RELABELING, ("Prune4ReL_B",), USUAL_RATIOS),
            ),
            printed=2,
            across_learners=True,
        ),
        Recipe(
            "table3",
            "the two confidences of Prune4ReL",
            grid((WORST, NOISY), ("sop+",), ("Prune4ReL-MaxProb", "Prune4ReL-DiffProb"), USUAL_RATIOS),
            printed=3,
        ),
        Recipe(
            "table4",
            "wrong labels among the picks",
            grid(ALL_THREE, ("sop+",), (*BASELINES, "Prune4ReL"), USUAL_RATIOS),
            (NOISE,),
            printed=4,
            select_only=True,
        ),
        Recipe(
            "table5",
            "wrong labels among the picks that are corrected",
            grid((RANDOM,), ("sop+",), ("kCenterGreedy", "Forgetting", "Prune4ReL"), (0.2,)),
            (ACCURACY, NOISE, CORRECTED),
            printed=5,
        ),
        Recipe(
            "table6",
            "ImageNet with 20 % of the labels moved to the next class",
            grid((IMAGENET,), ("sop+",), ("Uniform", "SmallLoss", "Forgetting", "Prune4ReL_B"), (0.05, 0.1, 0.2, 0.4)),
            printed=6,
        ),
        Recipe(
            "fig1a",
            "accuracy against ratio with DivideMix on CIFAR-10N",
            grid(
                (RANDOM, WORST),
                ("dividemix",),
                ("Uniform", "SmallLoss", "Forgetting", "GraNd", "Prune4ReL_B"),
                USUAL_RATIOS,
            ),
            printed=1,
            remark="The figure does not say which labels of CIFAR-10N; both of Table 1 are run, and compared with it.",
        ),
        Recipe(
            "fig2",
            "re-labeling accuracy by neighbourhood confidence, 20 % of CIFAR-10N at random",
            grid((RANDOM, WORST), ("dividemix",), ("Uniform",), (0.2,)),
            (BINS,),
            remark="The paper warms up on the subset; here the warm-up is the one all recipes share, on everything. "
            "The figure does not say which labels of CIFAR-10N, nor how wide the 15 bins are: here each holds as many "
            "examples as the next.",
        ),
        Recipe("fig3a", "WebVision with SOP+", grid((WEBVISION,), ("sop+",), METHODS10, USUAL_RATIOS)),
        Recipe(
            "fig3b",
            "Clothing-1M with DivideMix",
            grid((CLOTHING,), ("dividemix",), METHODS10, (0.01, 0.05, 0.1, 0.2)),
        ),
        Recipe(
            "fig3c",
            "time of selecting 80 % of WebVision",
            grid((WEBVISION,), ("sop+",), METHODS10, (0.8,)),
            (SECONDS,),
            select_only=True,
            remark="Seconds from signals to picks; warm-ups, which GraNd needs ten of, are not in them.",
        ),
        Recipe(
            "fig4",
            "the threshold tau of Prune4ReL_B on CIFAR-100N",
            grid(
                (NOISY,),
                ("sop+",),
                tuple(f"Prune4ReL_B (tau={tau:g})" for tau in (0.93, 0.95, 0.99)),
                USUAL_RATIOS,
            ),
            printed=1,
            as_printed={"Prune4ReL_B (tau=0.95)": "Prune4ReL_B"},
            remark="Of this figure only tau = 0.95 is printed, in Table 1.",
        ),
        Recipe(
            "budgets",
            "the same number of steps for subsets and for everything",
            (
                *grid((WORST, NOISY), ("sop+",), ("uniform", "small-loss"), (0.2,)),
                *grid((WORST, NOISY), ("sop+",), ("label-aware",), USUAL_RATIOS),
                *grid((WORST, NOISY), ("sop+", "trust", "dividemix"), (EVERYTHING,), (1.0,)),
            ),
            (ACCURACY, RIGHT, FOUND, STEPS, IN_ALL),
            steps=23_400,
            remark="The paper has no such table. Everybody gets the same number of steps in all: a warm-up counts as "
            "what it is, looking at all examples as a third. A step of DivideMix holds two batches and counts as two, "
            "so that all process the same number of images. Methods are balanced, prune4rel is label-aware at the "
            "paper's tau. Seconds are of one contender alone, its warm-up included.",
        ),
    )
}


def get(name: str) -> Recipe:
    """Relabeling a recipe up by name.

    >>> get("tabel1")
    Traceback (most recent call last):
    prune4rel.errors.InputError: unknown recipe 'tabel1'; did you mean 'table1'? Known: table1, ...
    """
    return look_up("recipe", name, RECIPES)


def with_ours(recipe: Recipe, *, ours: bool | None = None) -> tuple[PaperCell, ...]:
    """Return the cells of a recipe and, where wanted, our presets in each of its settings.

    >>> len(with_ours(RECIPES["table1"])), len(with_ours(RECIPES["table1"], ours=False))
    (288, 240)
    """
    if not (recipe.ours if ours is None else ours):
        return recipe.cells
    settings = dict.fromkeys((cell.dataset, cell.noise, cell.learner, cell.ratio) for cell in recipe.cells)
    beside = [
        PaperCell(dataset, noise, learner, method, ratio)
        for dataset, noise, learner, ratio in settings
        for method in OURS
    ]
    return (*recipe.cells, *beside)
