import numpy as np
import pytest

from prune4rel import InputError
from prune4rel.confusion import CIFAR100_SUPERCLASSES
from prune4rel.data import load_dataset
from prune4rel.data.unpickle import unpickle


def test_the_public_files_have_the_published_sizes_and_noise(real_cifar):
    data = load_dataset("cifar100n", real_cifar)
    assert data.train.images.shape == (50_000, 32, 32, 3)
    assert data.test.images.shape == (10_000, 32, 32, 3)
    assert round(100 * data.train.noise_rate, 2) == 40.20
    sizes = np.bincount(data.train.labels, minlength=100)
    assert (sizes.min(), sizes.max()) == (199, 865)
    assert np.bincount(data.test.labels).tolist() == [100] * 100
    assert data.class_names[0] == "apple"


def test_superclasses_are_those_of_the_public_files(real_cifar):
    content = unpickle(real_cifar / "cifar-100-python" / "test")
    superclass = dict(zip(content["fine_labels"], content["coarse_labels"], strict=True))
    assert tuple(superclass[label] for label in range(100)) == CIFAR100_SUPERCLASSES


def test_a_made_up_folder(tiny_cifar100):
    data = load_dataset("cifar100n", tiny_cifar100, md5=False)
    assert len(data.train) == 20
    assert data.train.noise_rate == 1.0
    assert load_dataset("cifar100n", tiny_cifar100, md5=False, noise="clean").train.noise_rate == 0


def test_wrong_sums_order_and_noise_are_refused(tiny_cifar100, save_torch_zip):
    with pytest.raises(InputError, match=r"train: its md5 is .* the public file's is 16019d7e3df5f24257cddd939b257f8d"):
        load_dataset("cifar100n", tiny_cifar100)
    with pytest.raises(InputError, match="did you mean 'noisy'"):
        load_dataset("cifar100n", tiny_cifar100, noise="noise")
    clean = load_dataset("cifar100n", tiny_cifar100, md5=False).train.clean_labels
    save_torch_zip(tiny_cifar100 / "CIFAR-100_human.pt", {"clean_label": clean[::-1], "noisy_label": clean.tolist()})
    with pytest.raises(InputError, match="another order"):
        load_dataset("cifar100n", tiny_cifar100, md5=False)
