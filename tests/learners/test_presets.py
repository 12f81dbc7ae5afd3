import pytest
from tests.learners.tiny import tiny_setting

from prune4rel.data import list_datasets
from prune4rel.data.dataset import KINDS
from prune4rel.errors import InputError
from prune4rel.learners import PRESETS, list_learners, make_learner, preset_options
from prune4rel.learners.presets import get


def test_every_preset_is_of_a_known_learner_data_set_and_option():
    for (learner, dataset), options in PRESETS.items():
        assert learner in list_learners()
        assert dataset in (*list_datasets(), *KINDS)
        assert set(options) <= set(get(learner).options)
        make_learner(learner, tiny_setting(), **preset_options(learner, dataset))


@pytest.mark.parametrize(
    ("learner", "dataset", "published"),
    [
        ("sop+", "cifar10n", {"consistency": 0.9, "balance": 0.1, "rate_u": 10, "rate_v": 100}),
        ("sop+", "cifar100n", {"consistency": 0.9, "balance": 0.1, "rate_u": 1, "rate_v": 100}),
        ("sop+", "webvision", {"consistency": 0.1, "balance": 0, "rate_u": 0.1, "rate_v": 1}),
        ("sop+", "imagenet-n", {"consistency": 0, "balance": 0, "rate_u": 0.1, "rate_v": 1}),
        ("dividemix", "cifar10n", {"lambda_u": 1, "kappa": 0.5, "temperature": 0.5, "alpha": 4}),
        ("dividemix", "clothing1m", {"lambda_u": 0.1, "kappa": 0.5, "temperature": 0.5, "alpha": 0.5}),
        ("elr", "cifar10n", {"beta": 0.7, "lambda_elr": 3}),
        ("elr", "cifar100n", {"beta": 0.9, "lambda_elr": 7}),
        ("elr+", "cifar100n", {"beta": 0.9, "lambda_elr": 7, "refine": True, "ramp_steps": 40_000}),
        ("elr+", "clothing1m", {"beta": 0.7, "decay": 0.999, "decay_steps": 0}),
        ("cores", "cifar10n", {"beta": 2.0, "sieve_from": 0.3, "second_from": 0.4}),
    ],
)
def test_published_values(learner, dataset, published):
    assert published.items() <= preset_options(learner, dataset).items()


@pytest.mark.parametrize("learner", list_learners())
def test_sets_nobody_has_tried_get_the_defaults(learner):
    assert preset_options(learner, "my-pictures") == get(learner).options


def test_a_kind_of_examples_may_have_options_of_its_own():
    assert (
        preset_options("trust", "my-vectors", "features")["trust_from"]
        < preset_options("trust", "x", "images")["trust_from"]
    )
    assert preset_options("trust", "cifar10n", "features") == preset_options("trust", "cifar10n")


def test_the_answer_is_the_callers_own():
    preset_options("sop", "cifar10n")["rate_u"] = 7
    assert preset_options("sop", "cifar10n")["rate_u"] == 10


def test_an_unknown_learner_is_refused():
    with pytest.raises(InputError, match="unknown learner 'sopp'; did you mean"):
        preset_options("sopp", "cifar10n")
