import numpy as np

from prune4rel.confusion import CIFAR10_OFFICIAL, CIFAR10_STANDARD, CIFAR100_SUPERCLASSES, resolve_mapping

NAMES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")


def pairs(goal):
    return {(NAMES[start], NAMES[end]) for start, end in enumerate(goal) if start != end}


def test_the_standard_map_of_cifar10():
    assert pairs(CIFAR10_STANDARD) == {
        ("truck", "automobile"),
        ("bird", "airplane"),
        ("deer", "horse"),
        ("cat", "dog"),
        ("dog", "cat"),
    }


def test_the_official_map_swaps_five_pairs():
    goal = np.array(CIFAR10_OFFICIAL)
    assert (goal[goal] == np.arange(10)).all()
    assert {frozenset(pair) for pair in enumerate(goal.tolist())} == {
        frozenset(pair) for pair in ((0, 2), (4, 7), (1, 9), (3, 5), (6, 8))
    }


def test_cifar100_goes_round_each_superclass():
    superclass = np.array(CIFAR100_SUPERCLASSES)
    assert np.bincount(superclass).tolist() == [5] * 20
    goal = resolve_mapping("cifar100", 100)
    assert sorted(goal) == list(range(100))
    assert (superclass[goal] == superclass).all()
    assert (goal != np.arange(100)).all()
    step = goal
    for _ in range(4):
        step = goal[step]
    assert (step == np.arange(100)).all()
