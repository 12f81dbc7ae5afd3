"""Digits: small handwritten numbers that come with scikit-learn."""

import gzip
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from prune4rel.data.dataset import Dataset, Split, hold_out
from prune4rel.data.pixels import as_rgb, look_of
from prune4rel.data.reader import register_dataset
from prune4rel.noise import make_noise
from prune4rel.reading import reading

SIZE = 8
BRIGHTEST = 16
TEST_SHARE = 0.25


@register_dataset(
    "digits",
    layout="nothing: it comes with scikit-learn",
    citation="Alpaydin and Kaynak, Optical Recognition of Handwritten Digits, UCI 1998",
    licence="CC BY 4.0",
    embedded=True,
)
def load(root: Path | None = None, *, noise: float = 0.4, noise_kind: str = "pair-flip", seed: int = 0) -> Dataset:
    """Handwritten digits from scikit-learn, with labels made wrong; needs no files.

    1,348 training and 449 test images of 8 x 8 grey pixels in 10 classes.

    Parameters
    ----------
    noise
        Share of wrong labels in every class of the training split.
    noise_kind
        One of `prune4rel.noise.KINDS`.
    seed
        Of the split and of the noise.

    Examples
    --------
    >>> data = load(noise=0.3, noise_kind="symmetric")
    >>> data.train.images.shape, data.n_classes, round(data.train.noise_rate, 2)
    ((1348, 8, 8, 3), 10, 0.3)
    """
    del root
    pixels, labels = _published()
    grey = np.rint(pixels * (255 / BRIGHTEST)).astype(np.uint8).reshape(-1, SIZE, SIZE)
    whole = Split(labels=labels, clean_labels=labels, images=as_rgb(grey, "digits"))
    train, test = hold_out(whole, TEST_SHARE, seed)
    if train.images is None or test is None:
        raise AssertionError("digits are images and large enough to be split")
    noisy = make_noise(train.labels, noise_kind, noise, features=train.images[..., 0], n_classes=10, seed=seed)
    return Dataset(
        name="digits",
        train=replace(train, labels=noisy),
        test=test,
        class_names=tuple(map(str, range(10))),
        **look_of(train.images),
    )


def _published() -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(1797, 64) brightness from 0 to 16, (1797,) labels; scikit-learn is not imported for it, which takes a second."""
    home = find_spec("sklearn")
    if home is None or home.origin is None:
        raise AssertionError("scikit-learn comes with this package")
    path = Path(home.origin).parent / "datasets" / "data" / "digits.csv.gz"
    with reading(path, "table of digits"), gzip.open(path, "rt", encoding="ascii") as lines:
        table = np.loadtxt(lines, delimiter=",", dtype=np.float64).astype(np.int64)
    return table[:, :-1], table[:, -1]
