"""What the names of a recipe stand for here: data sets with their labels, methods with their options."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from prune4rel.errors import InputError

Options = Mapping[str, Any]


@dataclass(frozen=True)
class Source:
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


SOURCES: Mapping[str, Source] = {
    "cifar10n": Source(
        "CIFAR-10N",
        50_000,
        10,
        0.975,
        {
            "random": {name: {"noise": name} for name in ("random1", "random2", "random3")},
            "worst": {"worst": {"noise": "worst"}},
        },
    ),
    "cifar100n": Source("CIFAR-100N", 50_000, 100, 0.95, {"noisy": {"noisy": {"noise": "noisy"}}}),
    "webvision": Source("WebVision", 65_944, 50, 0.95, {"real": {"": {}}}),
    "clothing1m": Source("Clothing-1M", 1_000_000, 14, 0.8, {"real": {"": {}}}),
    "imagenet-n": Source("ImageNet-N", 1_281_167, 1000, 0.95, {"asym20": {"asym20": {"noise": 0.2}}}),
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
