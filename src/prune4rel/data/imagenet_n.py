"""ImageNet-N: ImageNet with labels moved to the next class."""

from dataclasses import replace
from pathlib import Path

from prune4rel.data.class_folders import check_same_classes, list_classes, read_class_folders
from prune4rel.data.dataset import Dataset
from prune4rel.data.files import require_folder
from prune4rel.data.flat_validation import DEVKIT, lies_flat, read_flat
from prune4rel.data.pixels import IMAGENET_MEAN, IMAGENET_STD
from prune4rel.data.registry import register_dataset
from prune4rel.noise import asymmetric

KAGGLE = Path("ILSVRC") / "Data" / "CLS-LOC"
"""Where the images lie in Kaggle's copy."""


@register_dataset(
    "imagenet-n",
    layout="""
    DATA/train/n01440764/*.JPEG ...   one folder a class
    DATA/val/n01440764/*.JPEG ...     the same classes; or
    DATA/val/*.JPEG                   with LOC_val_solution.csv (Kaggle), or ILSVRC2012_validation_ground_truth.txt and
                                      meta.mat (development kit), in DATA, DATA/val or the kit's folder
    """,
    citation="Russakovsky et al., ImageNet Large Scale Visual Recognition Challenge, IJCV 2015",
    licence="ImageNet: research and education, on request",
)
def load(root: Path, *, noise: float = 0.2, per_class: bool = True, seed: int = 0, image_size: int = 224) -> Dataset:
    """ImageNet with a share of the labels of class c moved to c + 1, by a seed.

    1,281,167 training and 50,000 validation images in 1,000 classes.

    Parameters
    ----------
    noise
        Share of wrong labels in the training split.
    per_class
        That share of every class, as the paper has it; or of the whole, as the official code has it.
    seed
        Of the noise.
    image_size
        Height and width a model gets to see.
    """
    images = root / KAGGLE if (root / KAGGLE).is_dir() else root
    train_folder = require_folder(images / "train", "expected train/ and val/, with one folder a class in each")
    test_folder = require_folder(images / "val", "expected train/ and val/, with one folder a class in each")
    names = list_classes(train_folder)
    train = read_class_folders(train_folder, names)
    if lies_flat(test_folder):
        test = read_flat(test_folder, names, _places(root, images))
    else:
        check_same_classes(names, list_classes(test_folder), train_folder, test_folder)
        test = read_class_folders(test_folder, names)
    noisy = asymmetric(train.labels, noise, mapping="next", n_classes=len(names), per_class=per_class, seed=seed)
    return Dataset(
        name="imagenet-n",
        train=replace(train, labels=noisy, clean_labels=train.labels),
        test=replace(test, clean_labels=test.labels),
        class_names=names,
        mean=IMAGENET_MEAN,
        std=IMAGENET_STD,
        image_size=image_size,
    )


def _places(root: Path, images: Path) -> list[Path]:
    """Folders in which the classes of the validation images may be listed."""
    places = [root, images / "val", root / DEVKIT]
    whole = images.resolve()
    return [*places, whole.parents[len(KAGGLE.parts) - 1]] if whole.match(str(KAGGLE)) else places
