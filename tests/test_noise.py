import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prune4rel import InputError
from prune4rel.noise import (
    CIFAR10_OFFICIAL,
    CIFAR10_STANDARD,
    CIFAR100_SUPERCLASSES,
    KINDS,
    OWN_STREAM,
    asymmetric,
    instance_dependent,
    make_noise,
    pair_flip,
    resolve_mapping,
    share_out,
    symmetric,
)

CLEAN = np.random.default_rng(0).permutation(np.repeat(np.arange(10), np.arange(40, 140, 10)))
SIZES = np.bincount(CLEAN)
FEATURES = np.random.default_rng(1).normal(size=(len(CLEAN), 6))
EXACT = [kind for kind in KINDS if kind not in ("symmetric-inclusive", "asymmetric-cifar10", "asymmetric-cifar100")]


def make(kind, rate=0.3, labels=CLEAN, **options):
    features = FEATURES if kind == "instance" else None
    return make_noise(labels, kind, rate, features=features, **options)


@pytest.mark.parametrize("rate", [0.0, 0.2, 0.37, 1.0])
@pytest.mark.parametrize("kind", EXACT)
def test_every_class_loses_its_exact_share(kind, rate):
    noisy = make(kind, rate)
    lost = np.bincount(CLEAN[noisy != CLEAN], minlength=10)
    assert lost.tolist() == share_out(SIZES, rate).tolist()
    assert (np.abs(lost - rate * SIZES) < 1).all()
    assert lost.sum() == round(rate * len(CLEAN))
    assert noisy.dtype == np.int64
    assert 0 <= noisy.min() <= noisy.max() < 10


@pytest.mark.parametrize("kind", EXACT)
def test_overall_counts_are_exact_when_classes_are_not_asked_for(kind):
    noisy = make(kind, 0.3, per_class=False)
    assert (noisy != CLEAN).sum() == round(0.3 * len(CLEAN))
    assert np.bincount(CLEAN[noisy != CLEAN]).tolist() != share_out(SIZES, 0.3).tolist()


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "asymmetric-cifar100"])
def test_the_seed_decides_and_the_input_stays(kind):
    labels = CLEAN.copy()
    labels.flags.writeable = False
    first, again, other = (make(kind, labels=labels, seed=seed) for seed in (5, 5, 6))
    assert (first == again).all()
    assert (first != other).any()


def test_symmetric_goes_to_all_other_classes_alike():
    clean = np.zeros(90_000, dtype=int)
    noisy = symmetric(clean, 1.0, n_classes=10)
    counts = np.bincount(noisy, minlength=10)
    assert counts[0] == 0
    assert (np.abs(counts[1:] - 10_000) < 500).all()


def test_symmetric_with_the_own_class_leaves_some_as_they_are():
    clean = np.repeat(np.arange(10), 10_000)
    noisy = symmetric(clean, 0.5, include_own=True)
    assert (noisy != clean).mean() == pytest.approx(0.45, abs=0.01)
    assert (symmetric(np.zeros(5, dtype=int), 1.0, include_own=True) == 0).all()


@pytest.mark.parametrize(
    ("kind", "goal"), [("asymmetric-cifar10", CIFAR10_STANDARD), ("asymmetric-cifar10-official", CIFAR10_OFFICIAL)]
)
def test_the_cifar10_maps_move_only_as_they_say(kind, goal):
    noisy = make(kind, 0.4)
    moved = noisy != CLEAN
    assert (noisy[moved] == np.array(goal)[CLEAN[moved]]).all()
    confused = np.array(goal) != np.arange(10)
    assert set(CLEAN[moved]) == set(np.flatnonzero(confused))
    assert moved.sum() == round(0.4 * SIZES[confused].sum())


def test_a_mapping_of_ones_own():
    noisy = asymmetric([0, 0, 1, 1, 2, 2], 0.5, mapping=[0, 2, 1])
    assert sorted(noisy[2:4]) == [1, 2]
    assert sorted(noisy[4:]) == [1, 2]
    assert noisy[:2].tolist() == [0, 0]


def test_pair_flip_is_next_class():
    assert (pair_flip(CLEAN, 0.3) == make("asymmetric-next", 0.3)).all()
    assert (pair_flip([0, 1, 2], 1.0) == [1, 2, 0]).all()
    assert (pair_flip([0, 1, 2], 1.0, n_classes=4) == [1, 2, 3]).all()


def softmax_without(logits, label):
    weights = np.exp(logits - logits.max())
    weights[label] = 0
    return weights / weights.sum()


def test_instance_noise_goes_where_the_softmax_says():
    x = np.random.default_rng(3).normal(size=4).astype(np.float32)
    n, classes, label, seed = 40_000, 5, 2, 11
    noisy = instance_dependent(np.full(n, label), 1.0, features=np.tile(x, (n, 1)), n_classes=classes, seed=seed)
    child = np.random.SeedSequence([seed, OWN_STREAM]).spawn(1 + classes)[1 + label]
    weights = np.random.default_rng(child).standard_normal((4, classes), dtype=np.float32)
    expected = softmax_without(x.astype(np.float64) @ weights, label)
    np.testing.assert_allclose(np.bincount(noisy, minlength=classes) / n, expected, atol=0.012)


def test_instance_noise_depends_on_the_features():
    twins = np.tile(50 * FEATURES[:1], (100, 1))
    noisy = instance_dependent(np.repeat([0, 1], 50), 0.5, features=twins, n_classes=10)
    assert len(set(noisy[:50]) - {0}) == 1
    assert len(set(noisy[50:]) - {1}) == 1


def test_instance_noise_flips_some_examples_more_often_than_others():
    labels = np.zeros(200, dtype=int)
    features = np.ones((200, 2))
    even = instance_dependent(labels, 0.5, features=features, n_classes=2, spread=0.0)
    wide = instance_dependent(labels, 0.5, features=features, n_classes=2, spread=0.5)
    assert even.sum() == wide.sum() == 100
    assert (even != wide).any()


def test_bytes_are_scaled_and_images_are_flattened():
    images = np.random.default_rng(0).integers(0, 256, (60, 4, 4, 3), dtype=np.uint8)
    labels = np.arange(60) % 3
    as_bytes = instance_dependent(labels, 0.5, features=images)
    as_floats = instance_dependent(labels, 0.5, features=(images / 255).reshape(60, -1))
    assert (as_bytes == as_floats).mean() > 0.95


@given(
    sizes=st.lists(st.integers(0, 1000), min_size=1, max_size=30),
    rate=st.floats(0, 1),
)
def test_shares_are_rounded_to_the_rounded_sum(sizes, rate):
    counts = share_out(sizes, rate)
    assert counts.sum() == round(float((rate * np.array(sizes, dtype=float)).sum()))
    assert (counts <= np.array(sizes)).all()
    assert (np.abs(counts - rate * np.array(sizes)) <= 1 + 1e-9).all()


BAD = [
    (lambda: symmetric([0, 1], 1.1), "rate must lie between 0 and 1"),
    (lambda: symmetric([0, 1], float("nan")), "rate must lie"),
    (lambda: symmetric([0, 1], "half"), "rate must lie"),
    (lambda: symmetric([0.5, 1], 0.5), "expected .* integers"),
    (lambda: symmetric([], 0.5), "labels: have shape"),
    (lambda: symmetric([0, -1], 0.5), "row 1 is -1"),
    (lambda: symmetric([0, 5], 0.5, n_classes=3), "row 1 is 5; labels must be 0 to 2"),
    (lambda: symmetric([0, 0], 0.5), "at least two classes"),
    (lambda: symmetric([0, 1], 0.5, seed=-1), "seed must be"),
    (lambda: asymmetric([0, 1], 0.5, mapping="cifar11"), "did you mean 'cifar100'|did you mean 'cifar10'"),
    (lambda: asymmetric([0, 10], 0.5, mapping="cifar10"), "there are 11 classes"),
    (lambda: asymmetric([0, 1], 0.5, mapping=[1, 2]), "a mapping needs"),
    (lambda: asymmetric([0, 1], 0.5, mapping="cifar100", n_classes=2), "is for 100 classes"),
    (lambda: instance_dependent([0, 1], 0.5, features=[[1.0]]), "has 1 rows, but labels has 2"),
    (lambda: instance_dependent([0, 1], 0.5, features=[1.0, 2.0]), "features: have shape"),
    (lambda: instance_dependent([0, 1], 1.0, features=[[1.0], [np.nan]]), "row 1 holds NaN"),
    (lambda: instance_dependent([0, 1], 0.5, features=np.eye(2), spread=2), "spread must lie"),
    (lambda: instance_dependent([0, 0], 0.5, features=np.eye(2)), "at least two classes"),
    (lambda: make_noise([0, 1], "instance", 0.5), "needs features"),
    (lambda: make_noise([0, 1], "pairflip", 0.5), "did you mean 'pair-flip'"),
]


@pytest.mark.parametrize(("call", "message"), BAD)
def test_bad_input_is_refused(call, message):
    with pytest.raises(InputError, match=message):
        call()


def test_noise_has_nothing_to_do_with_a_random_subset_of_the_same_seed():
    clean = np.repeat(np.arange(10), 100)
    for seed in range(5):
        wrong = symmetric(clean, 0.4, seed=seed) != clean
        scores = np.random.default_rng(seed).random(len(clean))
        assert abs(wrong[np.argsort(-scores)[:200]].mean() - 0.4) < 0.12


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
