"""What a recipe is made of, what its names stand for here, and which of its cells are wanted."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from itertools import product
from typing import Any

from prune4rel.errors import InputError, nearest
from prune4rel.steps.select import EVERYTHING

ACCURACY, NOISE, CORRECTED = "test_acc", "noisy_ratio_in_subset_pct", "self_correct_pct"
SECONDS, BINS = "selection_seconds", "relabeling_by_bin"
RIGHT, FOUND, STEPS, IN_ALL = "labelled_right_pct", "wrong_label_ap", "steps", "seconds"

TITLES = {
    ACCURACY: "test accuracy, %",
    NOISE: "wrong labels in the subset, %",
    CORRECTED: "wrong labels in the subset that are corrected, %",
    SECONDS: "seconds of selecting",
    BINS: "re-labeling accuracy by neighbourhood confidence",
    RIGHT: "whole set labelled right, %",
    FOUND: "wrong labels found, AP",
    STEPS: "steps",
    IN_ALL: "seconds",
}
LOWER_FIRST = (NOISE, SECONDS)
"""Metrics whose ranking begins with the lowest."""


@dataclass(frozen=True, order=True)
class PaperCell:
    """One entry of a table, named as the paper names it, but for data sets and learners.

    Examples
    --------
    >>> str(PaperCell("cifar10n", "worst", "sop+", "Uniform", 0.2))
    'cifar10n worst, sop+, Uniform, 0.2'
    """

    dataset: str
    noise: str
    learner: str
    method: str
    ratio: float

    def __str__(self) -> str:
        return f"{self.dataset} {self.noise}, {self.learner}, {self.method}, {self.ratio:g}"


def grid(
    sets: Iterable[tuple[str, str]], learners: Iterable[str], methods: Iterable[str], ratios: Iterable[float]
) -> tuple[PaperCell, ...]:
    """Return all combinations of (data set, noise), learner, method and ratio.

    >>> len(grid([("cifar10n", "worst")], ["sop+"], ["Uniform", "SSP"], [0.2, 0.4]))
    4
    """
    return tuple(
        PaperCell(dataset, noise, learner, method, ratio)
        for (dataset, noise), learner, method, ratio in product(sets, learners, methods, ratios)
    )


Options = Mapping[str, Any]


@dataclass(frozen=True)
class PaperData:
    """A data set of the paper.

    Parameters
    ----------
    title
        The paper's name for it.
    n, classes
        Training examples and classes.
    tau
        The paper's threshold for it.
    labels
        By kind of noise: the label sets it is a mean over, each with the options that read it.
    """

    title: str
    n: int
    classes: int
    tau: float
    labels: Mapping[str, Mapping[str, Options]]


SOURCES: Mapping[str, PaperData] = {
    "cifar10n": PaperData(
        "CIFAR-10N",
        50_000,
        10,
        0.975,
        {
            "random": {name: {"noise": name} for name in ("random1", "random2", "random3")},
            "worst": {"worst": {"noise": "worst"}},
        },
    ),
    "cifar100n": PaperData("CIFAR-100N", 50_000, 100, 0.95, {"noisy": {"noisy": {"noise": "noisy"}}}),
    "webvision": PaperData("WebVision", 65_944, 50, 0.95, {"real": {"": {}}}),
    "clothing1m": PaperData("Clothing-1M", 1_000_000, 14, 0.8, {"real": {"": {}}}),
    "imagenet-n": PaperData("ImageNet-N", 1_281_167, 1000, 0.95, {"asym20": {"asym20": {"noise": 0.2}}}),
}


@dataclass(frozen=True)
class Signal:
    """A kind of warm-up, and the view it is asked about at its end.

    What methods of one kind go by lies in one folder, so that no kind spoils another.
    """

    suffix: str
    extras: tuple[str, ...]
    repeats: int = 1
    learner: str | None = None
    self_supervised: bool = False
    view: str = "none"


SHARED = Signal("", ("forgetting",), view="strong")
PLAIN = Signal("-plain", ())
TEN_NETWORKS = Signal("-ten-networks", ("grad_norms",), repeats=10)
BUDGET = Signal("-budget", (), view="strong")
SELF_SUPERVISED = Signal("-self-supervised", ("ssl_embeddings",), learner="cross-entropy", self_supervised=True)


@dataclass(frozen=True)
class PaperMethod:
    """A method of the paper as it is run here; `label` also names its folders."""

    method: str
    label: str
    options: Options = field(default_factory=dict)
    balanced: bool = False
    signal: Signal = SHARED


_PLAIN = {
    "Uniform": PaperMethod("uniform", "Uniform"),
    "SmallLoss": PaperMethod("small-loss", "SmallLoss", signal=PLAIN),
    "Margin": PaperMethod("margin", "Margin", signal=PLAIN),
    "kCenterGreedy": PaperMethod("kcenter", "kCenterGreedy", signal=PLAIN),
    "Forgetting": PaperMethod("forgetting", "Forgetting", {"never_learnt": "lowest", "same_share": True}),
    "GraNd": PaperMethod("grand", "GraNd", signal=TEN_NETWORKS),
    "SSP": PaperMethod("ssp", "SSP", {"direction": "hard"}, signal=SELF_SUPERVISED),
    "Moderate": PaperMethod("moderate", "Moderate", signal=PLAIN),
}

EQUALLY = ("uniform", "small-loss", "label-aware", EVERYTHING)
"""Contenders for the same number of steps, all balanced; by our own names, for the paper has no such table."""

OURS = {"Ours (coverage)": "coverage", "Ours (label-aware)": "label-aware"}
"""Our presets, at the paper's tau, so that nothing but the gain and the confidence differs from the paper's method."""


def paper_method(method: str, dataset: str) -> PaperMethod:
    """Return how a method of the paper is run on a data set.

    >>> paper_method("Prune4ReL_B", "clothing1m").options
    {'preset': 'official', 'tau': 0.8}
    >>> [paper_method(f"Prune4ReL_B (tau={tau})", "cifar100n").label for tau in (0.95, 0.99)]
    ['Prune4ReL_B', 'Prune4ReL_B (tau=0.99)']
    """
    if method in _PLAIN:
        return _PLAIN[method]
    own = SOURCES[dataset].tau
    if method == "label-aware":
        return PaperMethod("prune4rel", method, {"preset": method, "tau": own}, balanced=True, signal=BUDGET)
    if method in EQUALLY:
        return PaperMethod(method, method, balanced=True, signal=BUDGET)
    if method in OURS:
        return PaperMethod("prune4rel", method, {"preset": OURS[method], "tau": own}, balanced=True)
    found = re.fullmatch(r"(?P<name>Prune4ReL(?:_B)?)(?:-(?P<confidence>\w+)| \(tau=(?P<tau>[\d.]+)\))?", method)
    if found is None:
        raise InputError(f"unknown method {method!r} in a recipe")
    name, tau = found["name"], float(found["tau"] or own)
    label = name if tau == own else f"{name} (tau={tau:g})"
    options: dict[str, Any] = {"preset": "official", "tau": tau}
    if found["confidence"] == "DiffProb":
        options["confidence"] = "diff-prob"
        label += "-DiffProb"
    return PaperMethod("prune4rel", label, options, balanced=name == "Prune4ReL_B")


SAME = {
    "ce": "crossentropy",
    "standard": "crossentropy",
    "kcenter": "kcentergreedy",
    "coverage": "ourscoverage",
    "labelaware": "ourslabelaware",
}
"""Other words for the same."""


@dataclass(frozen=True)
class Wanted:
    """Which cells: those that match one of the words of every field that has any."""

    dataset: tuple[str, ...] = ()
    noise: tuple[str, ...] = ()
    learner: tuple[str, ...] = ()
    method: tuple[str, ...] = ()
    ratio: tuple[float, ...] = ()


def narrow(cells: Iterable[PaperCell], wanted: Wanted) -> tuple[PaperCell, ...]:
    """Return the cells that are wanted.

    >>> both = tuple(PaperCell("cifar10n", "worst", "sop+", method, 0.2) for method in ("Uniform", "SSP"))
    >>> [cell.method for cell in narrow(both, Wanted(dataset=("CIFAR-10N",), method=("ssp",)))]
    ['SSP']
    >>> narrow(both, Wanted(method=("unifrom",)))
    Traceback (most recent call last):
    prune4rel.errors.InputError: --method: 'unifrom' is not in this recipe; did you mean 'Uniform'? Known: Uniform, SSP
    """
    left = tuple(cells)
    for each in fields(Wanted):
        given = getattr(wanted, each.name)
        if given:
            left = _keep(tuple(cells), left, each.name, given)
    return left


def _keep(
    everything: tuple[PaperCell, ...], left: tuple[PaperCell, ...], name: str, given: Iterable[object]
) -> tuple[PaperCell, ...]:
    def of(cell: PaperCell) -> object:
        value: object = getattr(cell, name)
        return value

    fold: Callable[[object], object] = _number if name == "ratio" else _folded
    known = dict.fromkeys(of(cell) for cell in everything)
    folded = {fold(value): value for value in known}
    keep = []
    for word in given:
        if fold(word) not in folded:
            words = [_shown(value) for value in known]
            known_ones = f"it has {', '.join(words)}" if name == "ratio" else nearest(_shown(word), words)
            raise InputError(f"--{name}: {_shown(word)!r} is not in this recipe; {known_ones}")
        keep.append(folded[fold(word)])
    found = tuple(cell for cell in left if of(cell) in keep)
    if not found:
        here = ", ".join(dict.fromkeys(_shown(of(cell)) for cell in left))
        raise InputError(f"--{name}: nothing is left of this recipe; with the other filters it has {here}")
    return found


def _folded(word: object) -> str:
    plain = re.sub(r"[^a-z0-9+]", "", str(word).lower())
    return SAME.get(plain, plain)


def _number(value: object) -> float:
    return round(float(str(value)), 9)


def _shown(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
