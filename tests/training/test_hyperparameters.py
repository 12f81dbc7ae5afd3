import math

import pytest

from prune4rel import InputError
from prune4rel.training import Hyperparameters


def test_cosine_by_hand():
    hyperparameters = Hyperparameters(epochs=4, lr=0.9, lr_min=0.1)
    expected = [0.1 + 0.8 * (1 + math.cos(math.pi * k / 4)) / 2 for k in range(4)]
    assert [hyperparameters.rate(epoch) for epoch in range(4)] == pytest.approx(expected)
    assert hyperparameters.rate(4) == hyperparameters.rate(40) == pytest.approx(0.1)


def test_a_warm_up_takes_the_horizon_of_the_whole():
    assert Hyperparameters(epochs=2, horizon=300).rate(1) == Hyperparameters(epochs=300).rate(1)


def test_multistep_by_hand():
    hyperparameters = Hyperparameters(epochs=10, lr=1.0, scheme="multistep", milestones=(3, 6))
    rates = [hyperparameters.rate(epoch) for epoch in range(10)]
    assert rates == pytest.approx([1.0] * 3 + [0.1] * 3 + [0.01] * 4)


def test_constant_and_a_rise_before_it():
    hyperparameters = Hyperparameters(epochs=5, lr=1.0, scheme="constant", rise=4)
    assert [hyperparameters.rate(epoch) for epoch in range(5)] == [0.25, 0.5, 0.75, 1.0, 1.0]


def test_cosine_begins_after_the_rise():
    hyperparameters = Hyperparameters(epochs=6, lr=1.0, lr_min=0.0, rise=2)
    assert [hyperparameters.rate(epoch) for epoch in (0, 1, 2, 4)] == pytest.approx([0.5, 1.0, 1.0, 0.5])


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("epochs", 0, "epochs must be a whole number of at least 1, not 0"),
        ("epochs", 1.5, "whole number"),
        ("epochs", True, "whole number"),
        ("batch", "many", "batch must be a whole number"),
        ("horizon", 0, "horizon must be"),
        ("rise", -1, "rise must be"),
        ("rise", 0.5, "rise must be"),
        ("lr", -1, "lr must be 0 or more"),
        ("lr", math.nan, "lr must be 0 or more"),
        ("lr", "high", "lr must be 0 or more, not 'high'"),
        ("weight_decay", math.inf, "weight_decay must be"),
        ("momentum", 1.0, "momentum must be at least 0 and below 1"),
        ("momentum", "much", "momentum must be"),
        ("ema", 1, "ema must be"),
        ("clip", 0, "clip must be above 0"),
        ("clip", "five", "clip must be above 0"),
        ("nesterov", "maybe", "nesterov must be true or false"),
        ("scheme", "cosin", "did you mean 'cosine'"),
        ("precision", "bfloat61", "did you mean 'bfloat16'"),
        ("precision", 16, "unknown precision 16"),
        ("milestones", "3,6", "milestones must be"),
        ("milestones", [1, "x"], "milestones must be"),
    ],
)
def test_bad_values_are_named(name, value, message):
    with pytest.raises(InputError, match=message):
        Hyperparameters(**{name: value})


def test_milestones_may_be_a_list_or_a_single_number():
    assert Hyperparameters(milestones=[3, 6]).milestones == (3, 6)
    assert Hyperparameters(milestones=7).milestones == (7,)


def test_changed_keeps_the_rest_and_refuses_unknown_names():
    hyperparameters = Hyperparameters(epochs=7).changed(lr=0.5, batch=None)
    assert (hyperparameters.epochs, hyperparameters.lr, hyperparameters.batch) == (7, 0.5, 128)
    with pytest.raises(InputError, match="did you mean 'epochs'"):
        hyperparameters.changed(epoch=3)


def test_it_is_a_json_value():
    import json

    hyperparameters = Hyperparameters(milestones=(1, 2), clip=5)
    assert Hyperparameters(**json.loads(json.dumps(hyperparameters.as_dict()))) == hyperparameters
