"""CIFAR-10N and CIFAR-100N: CIFAR with labels from people."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prune4rel.data.classes import describe_difference
from prune4rel.data.dataset import Array, Dataset, Labels, Split
from prune4rel.data.files import check_md5, first_existing, require_file
from prune4rel.data.reader import register_dataset
from prune4rel.data.unpickle import unpickle
from prune4rel.errors import InputError, nearest

SIZE = 32
CHANNELS = 3


@dataclass(frozen=True)
class Edition:
    """One of the two sets: where things are, what they are called, and their published MD5 sums.

    `train` and `test` map file names to sums, in order; `noises` maps our names of the human labels to the file's.
    """

    name: str
    folder: str
    address: str
    train: Mapping[str, str]
    test: Mapping[str, str]
    label_key: str
    meta: tuple[str, str]
    names_key: str
    human: tuple[str, str]
    noises: Mapping[str, str]
    mean: tuple[float, float, float]
    std: tuple[float, float, float]


CIFAR10N = Edition(
    name="cifar10n",
    folder="cifar-10-batches-py",
    address="https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz",
    train={
        "data_batch_1": "c99cafc152244af753f735de768cd75f",
        "data_batch_2": "d4bba439e000b95fd0a9bffe97cbabec",
        "data_batch_3": "54ebc095f3ab1f0389bbae665268c751",
        "data_batch_4": "634d18415352ddfa80567beed471001a",
        "data_batch_5": "482c414d41f54cd18b22e5b47cb7c3cb",
    },
    test={"test_batch": "40351d587109b95175f43aff81a1287e"},
    label_key="labels",
    meta=("batches.meta", "5ff9c542aee3614f3951f8cda6e48888"),
    names_key="label_names",
    human=("CIFAR-10_human.pt", "96644db5574813cae939af5f7f2a0aec"),
    noises={
        "worst": "worse_label",
        "aggre": "aggre_label",
        "random1": "random_label1",
        "random2": "random_label2",
        "random3": "random_label3",
        "clean": "clean_label",
    },
    mean=(0.4914, 0.4822, 0.4465),
    std=(0.2023, 0.1994, 0.2010),
)

CIFAR100N = Edition(
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
    "cifar10n",
    layout="""
    DATA/cifar-10-batches-py/   data_batch_1 ... data_batch_5, test_batch, batches.meta
    DATA/CIFAR-10_human.pt      from https://github.com/UCSC-REAL/cifar-10-100n
    """,
    citation="Krizhevsky, 2009; Wei et al., Learning with Noisy Labels Revisited, ICLR 2022",
    licence="human labels: CC BY-NC 4.0",
)
def load_cifar10n(root: Path, *, noise: str = "worst", md5: bool = True) -> Dataset:
    """CIFAR-10 with human labels, three people an image.

    50,000 training and 10,000 test images of 32 x 32 pixels in 10 classes.

    Parameters
    ----------
    noise
        Which labels: ``"worst"`` (a wrong one if any of the three is wrong: 40.21 % wrong), ``"aggre"`` (the
        majority: 9.01 %), ``"random1"``, ``"random2"``, ``"random3"`` (one person each: 17.23, 18.12, 17.64 %) or
        ``"clean"``, which does without the file of human labels.
    md5
        Whether to compare the files with the published sums first.
    """
    return _read(CIFAR10N, root, noise=noise, md5=md5)


@register_dataset(
    "cifar100n",
    layout="""
    DATA/cifar-100-python/    train, test, meta
    DATA/CIFAR-100_human.pt   from https://github.com/UCSC-REAL/cifar-10-100n
    """,
    citation="Krizhevsky, 2009; Wei et al., Learning with Noisy Labels Revisited, ICLR 2022",
    licence="human labels: CC BY-NC 4.0",
)
def load_cifar100n(root: Path, *, noise: str = "noisy", md5: bool = True) -> Dataset:
    """CIFAR-100 with human labels, one person an image.

    50,000 training and 10,000 test images of 32 x 32 pixels in 100 classes.

    Parameters
    ----------
    noise
        ``"noisy"`` (40.20 % wrong) or ``"clean"``, which does without the file of human labels.
    md5
        Whether to compare the files with the published sums first.
    """
    return _read(CIFAR100N, root, noise=noise, md5=md5)


def _read(edition: Edition, root: Path, *, noise: str, md5: bool) -> Dataset:
    """Read images, true labels, and the human labels that `noise` names (none for ``"clean"``)."""
    if noise not in edition.noises:
        raise InputError(
            f"noise {noise!r} is none of the labels {edition.name} has; {nearest(str(noise), edition.noises)}"
        )
    folder = root
    if not (root / next(iter(edition.train))).is_file():
        folder = first_existing([root / edition.folder], f"unpack {edition.address} there")
    images, clean = _read_batches(folder, edition.train, edition.label_key, check=md5)
    test_images, test_labels = _read_batches(folder, edition.test, edition.label_key, check=md5)
    labels = clean if noise == "clean" else _read_human_labels(edition, root, folder, noise, clean, check=md5)
    return Dataset(
        name=edition.name,
        train=Split(labels=labels, clean_labels=clean, images=images),
        test=Split(labels=test_labels, clean_labels=test_labels, images=test_images),
        class_names=_read_names(folder, edition, check=md5),
        mean=edition.mean,
        std=edition.std,
        image_size=SIZE,
    )


def _read_public(path: Path, md5: str, *, check: bool) -> dict[str, Any]:
    """Read one of the published pickles, all of which hold a dictionary."""
    require_file(path)
    if check:
        check_md5(path, md5)
    content = unpickle(path)
    if not isinstance(content, dict):
        raise InputError(f"{path}: holds a {type(content).__name__}; expected a dictionary")
    return content


def _read_batches(
    folder: Path, md5s: Mapping[str, str], label_key: str, *, check: bool
) -> tuple[NDArray[np.uint8], Labels]:
    """Read batches in order: (n, 32, 32, 3) uint8 images and (n,) labels."""
    images, labels = [], []
    for name, md5 in md5s.items():
        path = folder / name
        content = _read_public(path, md5, check=check)
        rows = _column(content, "data", path)
        if rows.dtype != np.uint8 or rows.ndim != 2 or rows.shape[1] != CHANNELS * SIZE * SIZE:
            raise InputError(f"{path}: data has shape {rows.shape} and type {rows.dtype}; expected (n, 3072) uint8")
        images.append(rows.reshape(-1, CHANNELS, SIZE, SIZE).transpose(0, 2, 3, 1))
        labels.append(_label_column(content, label_key, path, len(rows)))
    whole = np.empty((sum(map(len, images)), SIZE, SIZE, CHANNELS), dtype=np.uint8)
    return np.concatenate(images, out=whole), np.concatenate(labels)


def _read_names(folder: Path, edition: Edition, *, check: bool) -> tuple[str, ...]:
    name, md5 = edition.meta
    names = _read_public(folder / name, md5, check=check).get(edition.names_key)
    if not isinstance(names, list) or not all(isinstance(word, str) for word in names):
        raise InputError(f"{folder / name}: has no list of names {edition.names_key!r}")
    return tuple(names)


def _read_human_labels(edition: Edition, root: Path, folder: Path, noise: str, clean: Labels, *, check: bool) -> Labels:
    """Read one column of human labels, after making sure that the file is in the order of the images."""
    name, md5 = edition.human
    what = "it is in the folder data of https://github.com/UCSC-REAL/cifar-10-100n (noise=clean does without it)"
    path = first_existing([root / name, *{folder / name, folder.parent / name} - {root / name}], what)
    content = _read_public(path, md5, check=check)
    recorded = _label_column(content, "clean_label", path, len(clean))
    if difference := describe_difference(recorded, clean):
        raise InputError(
            f"{path}: clean_label differs from the labels beside the images {difference}; the file is in another "
            "order (those named *_ordered are), or belongs to another data set"
        )
    return _label_column(content, edition.noises[noise], path, len(clean))


def _label_column(content: Mapping[str, Any], key: str, path: Path, n: int) -> Labels:
    column = _column(content, key, path)
    if column.shape != (n,) or column.dtype.kind not in "iu":
        raise InputError(
            f"{path}: {key} has shape {column.shape} and type {column.dtype}; expected one whole number for each of "
            f"{n} images"
        )
    return column.astype(np.int64)


def _column(content: Mapping[str, Any], key: str, path: Path) -> Array:
    if key not in content:
        raise InputError(f"{path}: has no {key!r}; it holds {', '.join(map(str, content))}")
    try:
        return np.asarray(content[key])
    except ValueError as error:
        raise InputError(f"{path}: {key!r} is no array ({error})") from None
