"""CIFAR-100N: CIFAR-100 with labels from people."""

from pathlib import Path

from prune4rel.data.cifar import Edition, load_cifar
from prune4rel.data.dataset import Dataset
from prune4rel.data.registry import register_dataset

EDITION = Edition(
    name="cifar100n",
    folder="cifar-100-python",
    address="https://www.cs.toronto.edu/~kriz/cifar-100-python.tar.gz",
    train={"train": "16019d7e3df5f24257cddd939b257f8d"},
    test={"test": "f0ef6b0ae62326f3e7ffdfab6717acfc"},
    label_key="fine_labels",
    meta=("meta", "7973b15100ade9c7d40fb424638fde48"),
    names_key="fine_label_names",
    human=("CIFAR-100_human.pt", "a67b45c1d7992051865b5c755bd68bb1"),
    noises={"noisy": "noisy_label", "clean": "clean_label"},
    mean=(0.5071, 0.4865, 0.4409),
    std=(0.2673, 0.2564, 0.2762),
)


@register_dataset(
    "cifar100n",
    layout="""
    DATA/cifar-100-python/    train, test, meta
    DATA/CIFAR-100_human.pt   from https://github.com/UCSC-REAL/cifar-10-100n
    """,
    citation="Krizhevsky, 2009; Wei et al., Learning with Noisy Labels Revisited, ICLR 2022",
    licence="human labels: CC BY-NC 4.0",
)
def load(root: Path, *, noise: str = "noisy", md5: bool = True) -> Dataset:
    """CIFAR-100 with human labels, one person an image.

    50,000 training and 10,000 test images of 32 x 32 pixels in 100 classes.

    Parameters
    ----------
    noise
        ``"noisy"`` (40.20 % wrong) or ``"clean"``, which does without the file of human labels.
    md5
        Whether to compare the files with the published sums first.
    """
    return load_cifar(EDITION, root, noise=noise, md5=md5)
