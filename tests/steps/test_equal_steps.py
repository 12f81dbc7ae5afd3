"""Contenders, and what each pays out of the same number of steps."""

from pathlib import Path

import numpy as np
import pytest
from tests.pipeline.tiny import tiny

from prune4rel.data import load_dataset
from prune4rel.errors import InputError
from prune4rel.steps import KINDS, Steps, TrainStep

EPOCH = 1348 // 64
"""Steps of an epoch on all digits."""

LOOK = -(-1348 // (3 * 64))


def lay(**changes):
    return Steps(tiny(equal_steps=True, epochs=None, **changes), load_dataset("digits"), Path("run"), KINDS)


def names(**changes):
    return [each.name for each in tiny(epochs=None, **changes).contenders]


def test_no_cross_product():
    methods = ["uniform", "prune4rel/coverage:0.4", "everything:1:trust", "small-loss:0.3:sop"]
    assert names(methods=methods, equal_steps=True) == [
        "uniform:0.2:sop+",
        "prune4rel (coverage):0.4:sop+",
        "everything:1:sop+",
        "small-loss:0.3:sop",
        "everything:1:trust",
    ]


def test_one_method_at_several_ratios():
    found = names(methods=["prune4rel:0.2", "prune4rel:0.4", "prune4rel:0.6:trust"], learners=["sop+", "elr"])
    assert found == [
        "prune4rel:0.2:sop+",
        "prune4rel:0.4:sop+",
        "prune4rel:0.2:elr",
        "prune4rel:0.4:elr",
        "prune4rel:0.6:trust",
    ]


@pytest.mark.parametrize(
    ("changes", "whole"),
    [
        ({}, []),
        ({"everything": True}, ["everything:1:sop+"]),
        ({"equal_steps": True}, ["everything:1:sop+"]),
        ({"equal_steps": True, "everything": False}, []),
        ({"equal_steps": True, "everything": False, "methods": ["everything:1:trust"]}, ["everything:1:trust"]),
        ({"methods": ["everything"], "learners": ["sop+", "elr"]}, ["everything:1:sop+", "everything:1:elr"]),
        ({"methods": ["everything"], "everything": True}, ["everything:1:sop+"]),
    ],
)
def test_everything_takes_part_where_steps_are_equal(changes, whole):
    assert [name for name in names(**changes) if name.startswith("everything")] == whole


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"methods": ["uniform:0.2", "uniform"]}, "'uniform:0.2:sop.' is there twice"),
        ({"methods": ["uniform:0.2:elrr"]}, "unknown learner 'elrr'; did you mean 'elr'"),
        ({"methods": ["uniform:2"]}, "each must be above 0 and at most 1, not 2.0"),
        ({"methods": ["uniform:1.2.3"]}, "'1.2.3' in 'uniform:1.2.3' is no ratio"),
        ({"methods": ["everything:0.5"]}, "everything is all examples"),
        ({"methods": [{"method": "everything", "label": "all"}]}, "everything is all examples"),
        ({"methods": ["prune4rel", {"method": "uniform", "label": "prune4rel", "ratios": [0.5]}]}, "another label"),
        ({"steps": 5}, "steps: is for --equal-steps"),
        ({"equal_steps": True, "steps": 0}, "steps: must be a whole number of at least 1"),
        ({"equal_steps": True, "steps": 5, "epochs": 3}, "leave epochs out"),
        ({"equal_steps": True, "steps": 5, "training": {"steps": 3}}, "leave epochs out"),
    ],
)
def test_what_is_refused(changes, words):
    with pytest.raises(InputError, match=words):
        tiny(**{"epochs": None, **changes})


def test_everybody_has_as_many_in_all():
    methods = ["uniform", "small-loss", "prune4rel:0.5", "forgetting", "everything:1:trust", "grand"]
    steps = lay(methods=methods, steps=400, warmup_epochs=3, repeats=2, views=2, extras=["grad_norms"])
    paid = {step.label: (step.paid, step.steps) for step in steps.of(TrainStep)}
    looks = -(-2 * 1348 // (3 * 64))
    usual = 3 * EPOCH + looks
    assert paid == {
        "uniform": (0, 400),
        "small-loss": (usual, 400 - usual),
        "prune4rel": (usual, 400 - usual),
        "forgetting": (usual, 400 - usual),
        "grand": (6 * EPOCH + -(-4 * 1348 // (3 * 64)), 400 - 6 * EPOCH - -(-4 * 1348 // (3 * 64))),
        "everything": (0, 400),
    }
    for step in steps.of(TrainStep):
        assert step.depends["plan"]["training"]["steps"] == step.steps


def test_two_networks_pay_for_both():
    (choice,) = [one for one in lay(methods=["small-loss:0.2:elr+"], steps=400).of(TrainStep) if one.ratio < 1]
    assert choice.paid == 2 * EPOCH + LOOK


def test_other_steps_spare_warm_ups_and_selections():
    few, many = lay(steps=100), lay(steps=200)
    for one, other in zip(few, many, strict=True):
        assert (one.key == other.key) == (not isinstance(one, TrainStep))


def test_judging_costs_no_steps(tmp_path):
    rng = np.random.default_rng(0)
    y = np.arange(90) % 3
    path = tmp_path / "data.npz"
    np.savez(path, features=rng.normal(size=(90, 4)) + 3 * np.eye(3, 4)[y], labels=y)
    config = tiny(dataset="arrays", data=str(path), methods=["small-loss"], equal_steps=True, epochs=None, steps=50)
    from prune4rel.steps.data import open_dataset

    steps = Steps(config, open_dataset(config), Path("run"), KINDS)
    assert [(step.paid, step.steps) for step in steps.of(TrainStep)] == [(0, 50), (0, 50)]


def test_too_few_to_train_anything():
    with pytest.raises(InputError, match=r"small-loss with sop\+ pays 29 steps .* there are 20: nothing is left"):
        lay(methods=["small-loss"], steps=20)
