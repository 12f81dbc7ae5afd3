"""Which options suit which data set: the papers' values, and ours where no paper has any."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from prune4rel.learners.registry import get

Options = Mapping[str, Any]

_TEN_CLASSES: Options = {"rate_u": 10.0, "rate_v": 100.0}
_HUNDRED_CLASSES: Options = {"rate_u": 1.0, "rate_v": 100.0}
_PHOTOGRAPHS: Options = {"rate_u": 0.1, "rate_v": 1.0}
_BOTH_TERMS: Options = {"consistency": 0.9, "balance": 0.1}
_LESS_CONSISTENCY: Options = {"consistency": 0.1, "balance": 0.0}
_NEITHER_TERM: Options = {"consistency": 0.0, "balance": 0.0}

PRESETS: Mapping[tuple[str, str], Options] = MappingProxyType(
    {
        ("sop", "cifar10n"): _TEN_CLASSES,
        ("sop", "cifar100n"): _HUNDRED_CLASSES,
        ("sop", "webvision"): _PHOTOGRAPHS,
        ("sop", "clothing1m"): _PHOTOGRAPHS,
        ("sop", "imagenet-n"): _PHOTOGRAPHS,
        ("sop+", "cifar10n"): {**_TEN_CLASSES, **_BOTH_TERMS},
        ("sop+", "cifar100n"): {**_HUNDRED_CLASSES, **_BOTH_TERMS},
        ("sop+", "webvision"): {**_PHOTOGRAPHS, **_LESS_CONSISTENCY},
        ("sop+", "clothing1m"): {**_PHOTOGRAPHS, **_LESS_CONSISTENCY},
        ("sop+", "imagenet-n"): {**_PHOTOGRAPHS, **_NEITHER_TERM},
        ("dividemix", "cifar10n"): {"lambda_u": 1.0, "alpha": 4.0, "warmup_epochs": 10},
        ("dividemix", "cifar100n"): {"lambda_u": 1.0, "alpha": 4.0, "warmup_epochs": 30},
        ("dividemix", "webvision"): {"lambda_u": 0.0, "alpha": 0.5, "warmup_epochs": 1},
        ("dividemix", "clothing1m"): {"lambda_u": 0.1, "alpha": 0.5, "warmup_epochs": 1, "warmup_penalty": 1.0},
        ("dividemix", "imagenet-n"): {"lambda_u": 1.0, "alpha": 0.5, "warmup_epochs": 10},
        ("elr", "cifar10n"): {"beta": 0.7, "lambda_elr": 3.0},
        ("elr", "cifar100n"): {"beta": 0.9, "lambda_elr": 7.0},
        ("elr", "imagenet-n"): {"beta": 0.9, "lambda_elr": 7.0},
        ("elr+", "cifar10n"): {"beta": 0.7, "lambda_elr": 3.0},
        ("elr+", "cifar100n"): {"beta": 0.9, "lambda_elr": 7.0, "refine": True, "ramp_steps": 40_000},
        ("elr+", "webvision"): {"beta": 0.7, "lambda_elr": 3.0, "decay_steps": 0},
        ("elr+", "clothing1m"): {"beta": 0.7, "lambda_elr": 3.0, "decay_steps": 0, "decay": 0.999},
        ("elr+", "imagenet-n"): {"beta": 0.9, "lambda_elr": 7.0, "refine": True, "ramp_steps": 40_000},
        ("cores", "cifar10n"): {"beta": 2.0, "consistency": 0.4},
        ("sop", "digits"): _TEN_CLASSES,
        ("sop+", "digits"): {**_TEN_CLASSES, **_BOTH_TERMS},
        ("dividemix", "digits"): {"warmup_penalty": 1.0},
        ("elr", "digits"): {"beta": 0.7, "lambda_elr": 3.0},
        ("elr+", "digits"): {"beta": 0.7, "lambda_elr": 3.0},
        ("cores", "digits"): {"sieve_at": -10.0},
    }
)
"""What differs from a learner's defaults or confirms them, by names of learner and data set."""


def preset_options(learner: str, dataset: str) -> dict[str, Any]:
    """Return all options of a learner, as they suit a data set; its defaults for sets nobody has tried.

    Parameters
    ----------
    learner
        One of `list_learners()`.
    dataset
        Name of a data set; it need not be a known one.

    Examples
    --------
    >>> preset_options("sop+", "cifar100n")
    {'rate_u': 1.0, 'rate_v': 100.0, 'consistency': 0.9, 'balance': 0.1}
    >>> preset_options("sop+", "my-pictures") == preset_options("sop+", "cifar10n")
    True
    """
    return get(learner).options | dict(PRESETS.get((learner, dataset), {}))
