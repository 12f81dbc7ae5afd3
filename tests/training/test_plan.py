import json

import numpy as np
import pytest
import torch
from tests.training.small import digits, features, write_images

from prune4rel import InputError
from prune4rel.loading.schedule import Ranks
from prune4rel.training import make_plan
from prune4rel.training.hyperparameters import PRESETS, build, identity_of, resolve_subset, shape_of

CPU = torch.device("cpu")


def test_presets_give_way_to_what_is_given():
    plan = make_plan(digits(), epochs=7)
    assert (plan.learner, plan.network, plan.warmup_epochs, plan.seed) == ("sop+", "small-cnn", 10, 0)
    assert plan.hyperparameters == PRESETS["digits"].hyperparameters.changed(epochs=7)
    assert plan.network_options == {"width": 16}
    assert plan.learner_options["consistency"] == 0.9
    other = make_plan(
        digits(),
        "elr",
        learner_options={"beta": 0.5},
        network="mlp",
        look={"padding": 0},
        warmup_epochs=3,
        seed=5,
        batch=9,
    )
    assert other.learner_options == {"beta": 0.5, "lambda_elr": 3.0}
    assert other.network_options == {}
    assert other.look == {"mirror": 0.0, "padding": 0, "policy": "none", "cutout": 3}
    assert (other.warmup_epochs, other.seed, other.hyperparameters.batch, other.hyperparameters.epochs) == (
        3,
        5,
        9,
        PRESETS["digits"].hyperparameters.epochs,
    )


def test_options_of_the_presets_network_stay_unless_another_is_chosen():
    assert make_plan(digits(), network="small-cnn").network_options == {"width": 16}
    assert make_plan(digits(), network_options={"width": 4}).network_options == {"width": 4}


def test_learners_get_the_options_of_the_data_set():
    from dataclasses import replace

    hundred = make_plan(replace(digits(), name="cifar100n"))
    assert (hundred.learner_options["rate_u"], hundred.warmup_epochs) == (1.0, 30)


@pytest.mark.parametrize(
    ("learner", "options", "message"),
    [
        ("sopp", {}, "unknown learner 'sopp'; did you mean 'sop'"),
        ("sop+", {"network": "mpl"}, "unknown network 'mpl'; did you mean 'mlp'"),
        ("sop+", {"epoch": 3}, "training has no option 'epoch'; did you mean 'epochs'"),
        ("sop+", {"learner_options": {"rate": 1}}, "learner 'sop.' has no option 'rate'; did you mean 'rate_"),
        ("sop+", {"look": {"paddin": 1}}, "look has no option 'paddin'; did you mean 'padding'"),
        ("sop+", {"look": {"dtype": 1}}, "look has no option 'dtype'"),
        ("sop+", {"training": {"seed": 3}}, "training has no option 'seed'"),
        ("sop+", {"training": {"self": 3}}, "training has no option 'self'"),
        ("sop+", {"seed": -1}, "seed must be"),
        ("sop+", {"seed": True}, "seed must be"),
        ("sop+", {"seed": 0.5}, "seed must be"),
        ("sop+", {"warmup_epochs": 0}, "warmup_epochs must be"),
        ("sop+", {"warmup_epochs": "ten"}, "warmup_epochs must be"),
    ],
)
def test_unknown_names_and_bad_values_are_named_before_anything_heavy(learner, options, message):
    with pytest.raises(InputError, match=message):
        make_plan(digits(), learner, **options)


def test_settings_come_in_a_mapping_or_one_by_one():
    mapped = make_plan(digits(), training={"epochs": 7, "lr": 0.5}, lr=0.25)
    assert (mapped.hyperparameters.epochs, mapped.hyperparameters.lr) == (7, 0.25)


def test_shapes_of_all_kinds_of_examples(tmp_path):
    assert shape_of(digits()) == (3, 8, 8)
    assert shape_of(features()) == (6,)
    assert shape_of(write_images(tmp_path, size=9)) == (3, 9, 9)


def test_weights_are_decided_by_the_seed_and_nothing_else():
    def weights(seed):
        learner = build(make_plan(digits(), seed=seed), digits(), np.arange(9), CPU, Ranks())
        return torch.cat([p.detach().flatten() for p in learner.parameters()])

    before = torch.get_rng_state()
    first = weights(0)
    assert torch.equal(torch.get_rng_state(), before)
    torch.rand(3)
    assert torch.equal(weights(0), first)
    assert not torch.equal(weights(1), first)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"network_options": {"width": "wide"}}, "cannot be made with the options .*'width': 'wide'"),
        ({"learner_options": {"rate_u": "fast"}}, "rate_u must be at least 0, not 'fast'"),
    ],
)
def test_options_of_the_wrong_type_are_refused_with_their_names(options, message):
    plan = make_plan(digits(), **options)
    with pytest.raises(InputError, match=message):
        build(plan, digits(), np.arange(9), CPU, Ranks())


def test_subsets_are_resolved_and_checked():
    assert resolve_subset(digits(), None).tolist() == list(range(80))
    assert resolve_subset(digits(), [5, 2]).tolist() == [5, 2]
    with pytest.raises(InputError, match="holds 80"):
        resolve_subset(digits(), [80])
    with pytest.raises(InputError, match="more than once"):
        resolve_subset(digits(), [1, 1])


def test_the_identity_is_a_json_value_that_tells_data_subsets_and_options_apart():
    plan, subset = make_plan(digits()), np.arange(9)
    one = identity_of(plan, digits(), subset)
    assert json.loads(json.dumps(one)) == one
    for other in (
        identity_of(make_plan(digits(), lr=0.5), digits(), subset),
        identity_of(plan, digits(), subset[::-1]),
        identity_of(plan, digits(70), subset),
    ):
        assert other != one
