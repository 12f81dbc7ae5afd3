import numpy as np
import pytest
from sklearn.datasets import load_digits

from prune4rel import InputError
from prune4rel.data import load_dataset
from prune4rel.data.digits import _published
from prune4rel.noise import KINDS


def test_they_are_those_of_scikit_learn():
    pixels, labels = load_digits(return_X_y=True)
    assert all(np.array_equal(*both) for both in zip(_published(), (pixels, labels), strict=True))


def test_digits_need_no_files_and_use_all_grey_levels():
    data = load_dataset("digits")
    assert data.train.images.shape == (1348, 8, 8, 3)
    assert data.test.images.shape == (449, 8, 8, 3)
    assert (data.train.images.min(), data.train.images.max()) == (0, 255)
    assert (data.train.images[..., 0] == data.train.images[..., 2]).all()
    assert data.train.noise_rate == pytest.approx(0.4, abs=1e-3)
    assert data.test.noise_rate == 0


def test_the_seed_decides_split_and_noise():
    first, again, other = (load_dataset("digits", seed=seed) for seed in (3, 3, 4))
    assert (first.train.labels == again.train.labels).all()
    assert (first.train.images == again.train.images).all()
    assert not np.array_equal(first.train.clean_labels, other.train.clean_labels)


OTHER_RATES = ("symmetric-inclusive", "asymmetric-cifar10", "asymmetric-cifar100")


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in OTHER_RATES])
def test_every_kind_of_noise(kind):
    assert load_dataset("digits", noise=0.3, noise_kind=kind).train.noise_rate == pytest.approx(0.3, abs=1e-3)


def test_bad_noise_is_refused():
    with pytest.raises(InputError, match="between 0 and 1"):
        load_dataset("digits", noise=1.5)
    with pytest.raises(InputError, match="is for 100 classes, but there are only 10"):
        load_dataset("digits", noise_kind="asymmetric-cifar100")
    with pytest.raises(InputError, match="did you mean 'symmetric'"):
        load_dataset("digits", noise_kind="symetric")
